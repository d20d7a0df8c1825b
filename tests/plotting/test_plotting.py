"""Every plot has labels with units, a legend beside the data, and the data."""

import builtins
import io

import numpy as np
import pytest

import ksparse as ks

pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("Agg")
pd = pytest.importorskip("pandas", reason="pandas is not installed")

import matplotlib.pyplot as plt  # noqa: E402

from ksparse import plotting  # noqa: E402


def drawn(ax):
    """Return the axes after drawing; check labels, and that no legend covers data."""
    ax.figure.canvas.draw()
    renderer = ax.figure.canvas.get_renderer()
    assert ax.get_xlabel() or ax.get_ylabel()
    if ax.get_legend() is not None:
        legend, inside = ax.get_legend().get_window_extent(renderer), ax.get_window_extent(renderer)
        assert legend.y0 >= inside.y1 - 1
    return ax


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture
def canvas():
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    FigureCanvasAgg(figure)
    return figure.subplots()


@pytest.fixture
def runs(rng):
    loss = ks.LeastSquares(rng.standard_normal((40, 60)), rng.standard_normal(40))
    return {name: ks.minimize_penalized(loss, ks.L1(0.5), method=name) for name in ("pdca", "apdca")}


@pytest.mark.parametrize("against", ["iterations", "time", "products"])
def test_convergence(runs, canvas, against):
    ax = drawn(plotting.plot_convergence(runs, against, ax=canvas))
    best = min(run.trace.F.min() for run in runs.values())
    for line, run in zip(ax.get_lines(), runs.values(), strict=True):
        shown = line.get_ydata()
        np.testing.assert_allclose(shown[np.isfinite(shown)], (run.trace.F - best)[np.isfinite(shown)])
        assert len(shown) == len(run.trace)
    assert ax.get_yscale() == "log"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["pdca", "apdca"]
    assert {"iterations": "iterations", "time": "time (s)", "products": "products with the data"}[
        against
    ] == ax.get_xlabel()


def test_convergence_takes_traces_and_mappings_and_refuses_the_rest(runs, canvas):
    trace = runs["pdca"].trace
    stored = {"iteration": [0, 1], "F": [2.0, None], "elapsed": [0.0, 0.1]}
    drawn(plotting.plot_convergence({"trace": trace, "stored": stored}, ax=canvas))
    with pytest.raises(ValueError, match="against must be one of iterations, time, products, got 'days'"):
        plotting.plot_convergence(runs, "days")
    with pytest.raises(ValueError, match="runs must hold at least one run"):
        plotting.plot_convergence({})


def test_starts(canvas, rng):
    table = pd.DataFrame({"method": ["a"] * 50 + ["b"] * 50, "objective": rng.standard_normal(100)})
    ax = drawn(plotting.plot_starts(table, reference=-3.0, ax=canvas))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b"]
    dots = np.concatenate([line.get_ydata() for line in ax.get_lines() if line.get_marker() == "."])
    np.testing.assert_allclose(np.sort(dots), np.sort(table["objective"]))


def test_objective_against_time(canvas):
    table = pd.DataFrame(
        {
            "instance": ["p", "p", "q", "q"],
            "method": ["a", "auto"] * 2,
            "objective": [-1.0, -2.0, 3.0, 2.0],
            "time": [1.0, 0.1, 9.0, 0.5],
        }
    )
    ax = drawn(plotting.plot_objective_time(table, ax=canvas))
    shown = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    np.testing.assert_allclose(shown["a"], [50.0, 50.0])
    np.testing.assert_allclose(shown["auto"], [0.0, 0.0])
    low, high = ax.get_ylim()
    assert low < 0
    assert high > 50
    with pytest.raises(ValueError, match="at least one row with an objective"):
        plotting.plot_objective_time(table.assign(objective=np.nan))


def test_each_seed_has_its_own_best(canvas):
    table = pd.DataFrame(
        {
            "instance": ["p"] * 4,
            "seed": [0, 0, 1, 1],
            "method": ["a", "auto"] * 2,
            "objective": [2.0, 1.0, 6.0, 5.0],
            "time": [1.0] * 4,
        }
    )
    shown = {line.get_label(): line.get_ydata() for line in plotting.plot_objective_time(table, ax=canvas).get_lines()}
    np.testing.assert_allclose(shown["auto"], 0.0)


def test_odd_values_do_not_break_a_picture(canvas):
    table = pd.DataFrame(
        {
            "instance": ["p"] * 3,
            "method": ["a", "b", "$\\foo$"],
            "objective": [0.0, 1e9, np.inf],
            "time": [1.0, 2.0, 3.0],
        }
    )
    assert drawn(plotting.plot_objective_time(table, ax=canvas)).get_ylim()[1] < 1e6
    with pytest.raises(ValueError, match="table must hold at least one row"):
        plotting.plot_starts(table.iloc[:0])
    nothing = {"iteration": [0], "F": [None], "elapsed": [0.0]}
    something = {"iteration": [0, 1], "F": [2.0, 1.0], "elapsed": [0, 1]}
    ax = plotting.plot_convergence({"nothing": nothing, "something $x$": something})
    assert np.nanmax(ax.get_lines()[1].get_ydata()) == 1.0
    with pytest.raises(ValueError, match="at least one finite value"):
        plotting.plot_convergence({"nothing": nothing})
    with pytest.raises(ValueError, match="must hold F and products to be plotted against products"):
        plotting.plot_convergence({"nothing": nothing}, "products")
    ax = plotting.plot_coefficients(["$\\foo$ and a name that is longer than the picture is wide"], [1.0])
    ax.figure.savefig(io.BytesIO(), format="png")


@pytest.mark.parametrize(("plot", "factor"), [(plotting.plot_coefficients, 1.0), (plotting.plot_weights, 100.0)])
def test_bars_show_the_nonzeros_by_size_with_their_names(plot, factor):
    ax = plot(["p", "q", "r", "s"], [0.1, 0.0, -0.7, 0.2])
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], [-0.7 * factor, 0.2 * factor, 0.1 * factor])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["r", "s", "p"]
    assert "2 smaller ones not shown" in plot(["p", "q", "r", "s"], [0.1, 0.0, -0.7, 0.2], limit=1).get_xlabel()
    plot(["p"], [0.0])  # nothing to show is no error
    with pytest.raises(ValueError, match="names and values must have the same length, got 1 and 2"):
        plot(["p"], [1.0, 2.0])


def test_paths_and_frontiers(canvas, rng):
    A, b = rng.standard_normal((30, 20)), rng.standard_normal(30)
    path = ks.k_path(ks.LeastSquares(A, b), [1, 3, 6, 10])
    ax = drawn(plotting.plot_path(path, [f"v{j}" for j in range(20)], limit=4, ax=canvas))
    ever = np.flatnonzero(path.x.any(axis=0))
    assert len(ax.get_lines()) == ever.size
    assert len(ax.get_legend().get_texts()) == 4
    assert f"{ever.size - 4} further variables in grey" in ax.get_xlabel()
    largest = int(np.argmax(np.abs(path.x).max(axis=0)))
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), path.x[:, largest])
    frontier = plotting.plot_frontier(path)
    np.testing.assert_array_equal(frontier.get_lines()[0].get_ydata(), path.objective)
    assert plotting.plot_frontier(path, np.arange(4), label="risk").get_ylabel() == "risk"
    with pytest.raises(ValueError, match="values must hold one number per k, 4, got 3"):
        plotting.plot_frontier(path, [1, 2, 3])


def test_colours_of_methods_are_apart():
    names = ("l2-PDCA", "l2-APDCA", "l1-DCA", "MIP-DCA", "auto")
    assert len({plotting.style(name)[0] for name in names}) == 5
    assert len({plotting.style(name)[1] for name in names}) == 5


def test_a_missing_matplotlib_is_named(monkeypatch):
    real_import = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"plots need matplotlib: pip install 'ksparse\[plot\]'"):
        plotting.plot_weights(["a"], [1.0])


def test_figures_are_those_of_pyplot_unless_axes_are_given(canvas):
    ax = plotting.plot_weights(["a"], [1.0])
    assert plt.gcf() is ax.figure
    assert plotting.plot_weights(["a"], [1.0], ax=canvas) is canvas
    assert len(plt.get_fignums()) == 1


def test_the_gap_closes(canvas):
    told = [
        {"elapsed": 0.1},
        {"elapsed": 0.2, "gap": np.inf},
        {"elapsed": 0.3, "gap": 0.5},
        {"elapsed": 0.5, "gap": 0.01},
    ]
    ax = drawn(plotting.plot_gap({"ours": told, "none": []}, ax=canvas))
    np.testing.assert_allclose(ax.get_lines()[0].get_xydata(), [[0.3, 50.0], [0.5, 1.0]])
    with pytest.raises(ValueError, match="at least one entry with a finite gap"):
        plotting.plot_gap(told[:2])


def test_the_curve_of_cross_validation_shows_both_choices(canvas):
    X, y, _ = ks.datasets.diabetes()
    model = ks.SparseRegressorCV(range(1, 7), cv=5).fit(X, y)
    ax = drawn(plotting.plot_cv(model, ax=canvas))
    np.testing.assert_allclose(ax.lines[0].get_ydata(), model.cv_errors_.mean(axis=0))
    shown = [text.get_text() for text in ax.get_legend().get_texts()]
    strict = ks.SparseRegressorCV(range(1, 7), cv=5, one_standard_error=True).fit(X, y)
    assert f"selected k = {model.k_}" in shown
    assert f"within 1 standard error: k = {strict.k_}" in shown
    ax = plotting.plot_cv(ks.SparseRegressorCV(range(1, 7), criterion="bic").fit(X, y))
    assert ax.get_ylabel() == "BIC"
    with pytest.raises(ValueError, match="model must be a fitted estimator that chooses k"):
        plotting.plot_cv(ks.SparseRegressor())


def test_loadings_and_stability(canvas):
    table = np.array([[0.8, 0.0, -0.6, 0.0], [0.0, 0.0, 0.0, 1.0]])
    ax = plotting.plot_loadings(table, ["p", "q", "r", "s"], ax=canvas)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["p", "r", "s"]
    np.testing.assert_allclose(
        np.nan_to_num(np.asarray(ax.images[0].get_array().filled(0))), [[0.8, 0], [-0.6, 0], [0, 1]]
    )
    assert "1 variables with smaller loadings not shown" in plotting.plot_loadings(table, limit=2).get_xlabel()
    ax = plotting.plot_stability(table, ["p", "q", "r", "s"])
    assert [bar.get_width() for bar in ax.patches] == [50.0, 50.0, 50.0]
    for plot in (plotting.plot_loadings, plotting.plot_stability):
        with pytest.raises(ValueError, match="must be a table with one row"):
            plot([1.0, 2.0])
        with pytest.raises(ValueError, match="the same length, got 2 and 4"):
            plot(table, ["a", "b"])


def test_efficient_frontiers(canvas):
    returns = ks.datasets.factor_model(12, 100, seed=0).returns
    points = ks.SparsePortfolio(k=3).frontier(returns, 4)
    ax = plotting.plot_efficient_frontier(points, periods=250, assets=returns, label="3 assets")
    line = ax.get_lines()[-1]
    np.testing.assert_allclose(line.get_xdata(), 100 * np.sqrt(250 * points.variances))
    np.testing.assert_allclose(line.get_ydata(), 100 * 250 * points.mean_returns)
    assert len(ax.get_lines()[0].get_xdata()) == 12
    assert plotting.plot_efficient_frontier(points, ax=ax, label="again").get_legend() is not None


def test_runs_are_compared_with_those_of_the_same_objective(canvas, rng):
    loss = ks.LeastSquares(rng.standard_normal((20, 10)), rng.standard_normal(20))
    runs = {
        f"{method} {rho:g}": ks.minimize(loss, 3, method=method, rho=rho)
        for method in ("pdca", "apdca")
        for rho in (0.1, 10.0)
    }
    runs["l1"] = ks.minimize(loss, 3, method="l1pdca", rho=10.0)
    ax = drawn(plotting.plot_convergence(runs, ax=canvas))
    for name, line in zip(runs, ax.get_lines(), strict=True):
        alike = ["l1"] if name == "l1" else [other for other in runs if other.split()[-1] == name.split()[-1]]
        best = min(runs[other].trace.F.min() for other in alike)
        shown = line.get_ydata()
        np.testing.assert_allclose(shown[np.isfinite(shown)], (runs[name].trace.F - best)[np.isfinite(shown)])
    assert ax.get_ylabel() == "F − best F at the same ρ"
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert (labels[0], labels[-1]) == ("pdca 0.1, ρ = 0.1", "l1, top-(k,1) ρ = 10")
    with pytest.raises(
        ValueError, match=r"best requires runs with one penalty and one rho, got ρ = 0.1, ρ = 10, top-\(k,1\) ρ = 10"
    ):
        plotting.plot_convergence(runs, best=0.0)


@pytest.mark.parametrize(
    "names",
    [["l2-PDCA", "mine", "l2-APDCA"], ["l2-APDCA", "APDCA fix"], [*"abcdef", "auto"], [f"run {j}" for j in range(20)]],
    ids=len,
)
def test_no_two_lines_look_the_same(names):
    ax = plotting.plot_convergence({name: {"iteration": [0, 1], "F": [2.0, 1.0]} for name in names})
    assert len({(line.get_color(), str(line._dash_pattern)) for line in ax.get_lines()}) == len(names)
    table = pd.DataFrame({"instance": "p", "method": names, "objective": 1.0, "time": 1.0})
    points = plotting.plot_objective_time(table).get_lines()
    assert len({(line.get_color(), line.get_marker()) for line in points}) == len(names)
