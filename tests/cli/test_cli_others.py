"""The commands pca and portfolio on real files, good and bad."""

import json

import numpy as np
import pytest

import ksparse as ks
from ksparse import datasets

pd = pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("clarabel", reason="Clarabel is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from command import ksparse  # noqa: E402


@pytest.fixture
def market(tmp_path):
    assets = datasets.factor_model(20, 300, seed=3)
    prices = pd.DataFrame(100 * np.cumprod(1 + assets.returns, axis=0), columns=assets.names)
    prices.insert(0, "Date", pd.bdate_range("2020-01-01", periods=300).strftime("%Y-%m-%d"))
    prices.to_csv(tmp_path / "prices.csv", index=False)
    return tmp_path


# --- pca ---


def test_pca_of_a_table_with_names(tmp_path):
    X, _, names = datasets.breast_cancer()
    np.savez(tmp_path / "tumours.npz", X=X, names=np.array(names))
    done = ksparse("pca", "tumours.npz", "-k", 5, "--components", 2, "--out", "loadings.csv", cwd=tmp_path)
    written = pd.read_csv(tmp_path / "loadings.csv")
    assert list(written.groupby("component").size()) == [5, 5]
    assert set(written["column"]) <= set(names)
    first = written[written["component"] == 1].set_index("column")["loading"]
    R = np.corrcoef(X.T)
    x = np.array([first.get(name, 0.0) for name in names])
    assert x @ R @ x == pytest.approx(-ks.minimize(ks.PrincipalComponent(R), 5, ks.L2Ball()).fun, rel=1e-9)
    assert "component 2: 5 of 30 columns" in done.stdout
    answer = json.loads(ksparse("pca", "tumours.npz", "-k", 5, "--components", 2, "--json", cwd=tmp_path).stdout)
    shares = [component["variance_share"] for component in answer["components"]]
    assert shares[0] > shares[1] > 0
    assert sum(shares) < 1


@pytest.mark.slow
def test_pca_refuses_constant_columns_and_too_many_components(tmp_path):
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.standard_normal((10, 3)), columns=list("abc")).assign(d=1.0).to_csv(
        tmp_path / "t.csv", index=False
    )
    assert (
        "column 'd' is constant and has no correlation"
        in ksparse("pca", "t.csv", "-k", 2, cwd=tmp_path, expect=2).stderr
    )
    assert (
        "--components must be between 1 and 4, got 9"
        in ksparse("pca", "t.csv", "-k", 2, "--components", 9, cwd=tmp_path, expect=2).stderr
    )
    ksparse("pca", "t.csv", "-k", 2, "--no-scale", cwd=tmp_path)
    ksparse("pca", "t.csv", "-k", 2, "--drop", "d", cwd=tmp_path)


# --- portfolio ---


@pytest.mark.slow
def test_portfolio_from_prices_obeys_every_rule(market):
    options = ("-k", 6, "--long-only", "--max-weight", 0.3, "--min-weight", 0.05)
    done = ksparse("portfolio", "prices.csv", *options, "--out", "weights.csv", cwd=market)
    weights = pd.read_csv(market / "weights.csv").set_index("asset")["weight"]
    assert len(weights) <= 6
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert weights.min() >= 0.05
    assert weights.max() <= 0.3
    assert "assets" in done.stdout
    prices = pd.read_csv(market / "prices.csv").drop(columns="Date").to_numpy()
    returns = prices[1:] / prices[:-1] - 1
    twin = ks.minimize(
        ks.MeanVariance(np.cov(returns.T), returns.mean(axis=0), 10), 6, ks.BudgetBox(1, 0, 0.3), min_nonzero=0.05
    )
    answer = json.loads(ksparse("portfolio", "prices.csv", *options, "--json", cwd=market).stdout)
    assert answer["objective"] == pytest.approx(twin.fun, rel=1e-9)
    assert answer["weights"] == pytest.approx(weights.to_dict())


def test_portfolio_with_a_target_return(market):
    answer = json.loads(
        ksparse(
            "portfolio", "prices.csv", "-k", 5, "--long-only", "--target-return", "0.0003", "--json", cwd=market
        ).stdout
    )
    assert answer["mean_return"] >= 0.0003 - 1e-12
    assert answer["objective"] == pytest.approx(answer["deviation"] ** 2, rel=1e-9)
    done = ksparse("portfolio", "prices.csv", "-k", 5, "--long-only", "--target-return", "0.5", cwd=market, expect=3)
    assert done.stderr.startswith("ksparse: infeasible: ")
    done = ksparse(
        "portfolio", "prices.csv", "-k", 3, "--long-only", "--max-weight", "0.2", "--json", cwd=market, expect=3
    )
    assert json.loads(done.stdout)["error"] == "infeasible"


def test_portfolio_from_returns(market):
    prices = pd.read_csv(market / "prices.csv").drop(columns="Date")
    prices.pct_change().iloc[1:].to_csv(market / "returns.csv", index=False)
    first = json.loads(ksparse("portfolio", "prices.csv", "-k", 4, "--json", cwd=market).stdout)
    second = json.loads(ksparse("portfolio", "returns.csv", "-k", 4, "--returns", "--json", cwd=market).stdout)
    assert second["objective"] == pytest.approx(first["objective"], rel=1e-9)
    assert sum(first["weights"].values()) == pytest.approx(1, abs=1e-12)


def test_portfolio_with_a_mandate(market):
    names = [name for name in pd.read_csv(market / "prices.csv").columns if name != "Date"]
    pd.DataFrame({"asset": names, "sector": [f"s{i % 3}" for i in range(len(names))]}).to_csv(
        market / "sectors.csv", index=False
    )
    pd.DataFrame({"asset": names[:4], "weight": [0.25] * 4}).to_csv(market / "held.csv", index=False)
    rules = (
        "--sectors",
        "sectors.csv",
        "--sector-cap",
        0.5,
        "--rule",
        f"{names[0]} + {names[1]} >= 0.1",
        "--exclude",
        names[2],
    )
    trades = ("--holdings", "held.csv", "--cost", 0.0002, "--max-turnover", 1.0)
    options = ("portfolio", "prices.csv", "-k", 6, "--long-only", "--min-variance", *rules, *trades)
    answer = json.loads(ksparse(*options, "--json", cwd=market).stdout)
    w = pd.Series(answer["weights"]).reindex(names).fillna(0.0)
    assert w.sum() == pytest.approx(1, abs=1e-12)
    assert max(w[i::3].sum() for i in range(3)) <= 0.5 + 1e-12
    assert w.iloc[0] + w.iloc[1] >= 0.1 - 1e-12
    assert w.iloc[2] == 0
    held = np.r_[np.full(4, 0.25), np.zeros(len(names) - 4)]
    assert answer["turnover"] == pytest.approx(np.abs(w.to_numpy() - held).sum())
    assert answer["turnover"] <= 1 + 1e-12
    for wrong, words in (
        (("--cost", 0.1), "--cost needs --holdings"),
        (("--sector-cap", 0.1), "--sector-cap needs --sectors"),
        (("--sectors", "held.csv", "--sector-cap", 0.5), "has no sector for"),
        (("--holdings", "sectors.csv"), "which is not a number"),
        (("--exclude", "NOBODY"), "--exclude names 'NOBODY', which is not an asset of prices.csv"),
        (("--rule", "NOBODY <= 0.1"), "is neither an asset nor a group"),
    ):
        assert words in ksparse("portfolio", "prices.csv", "-k", 6, *wrong, cwd=market, expect=2).stderr


def test_portfolio_tracks_a_column(market):
    prices = pd.read_csv(market / "prices.csv").drop(columns="Date")
    index = prices.columns[0]
    done = ksparse("portfolio", "prices.csv", "-k", 5, "--long-only", "--index", index, "--json", cwd=market)
    answer = json.loads(done.stdout)
    assert index not in answer["weights"]
    X = prices.pct_change().iloc[1:]
    w = pd.Series(answer["weights"]).reindex(X.columns).fillna(0.0)
    assert answer["objective"] == pytest.approx(np.mean((X @ w - X[index]) ** 2), rel=1e-9)
    wrong = ksparse("portfolio", "prices.csv", "-k", 5, "--index", "NOBODY", cwd=market, expect=2)
    assert "--index 'NOBODY' is not a column of prices.csv" in wrong.stderr
    wrong = ksparse("portfolio", "prices.csv", "-k", 5, "--index", index, "--min-variance", cwd=market, expect=2)
    assert "--min-variance cannot be used with --index" in wrong.stderr


BAD_PRICES = {
    "a date twice": (
        "Date,A,B\n2020-01-01,1,2\n2020-01-02,2,3\n2020-01-02,3,4\n",
        "duplicate date 2020-01-02 in column 'Date', in rows 2 and 3",
    ),
    "time running back": (
        "Date,A,B\n2020-01-03,1,2\n2020-01-02,2,3\n2020-01-04,3,4\n",
        "must ascend: row 2 (2020-01-02) comes after row 1 (2020-01-03)",
    ),
    "no date": ("Date,A,B\n2020-01-01,1,2\nmonday,2,3\n2020-01-03,3,4\n", "should hold dates: row 2 holds 'monday'"),
    "a price of zero": (
        "Date,A,B\n2020-01-01,1,2\n2020-01-02,0,3\n2020-01-03,3,4\n",
        "column 'A' holds 0 in row 2 (2020-01-02)",
    ),
    "a gap": (
        "Date,A,B\n2020-01-01,1,2\n2020-01-02,,3\n2020-01-03,3,4\n",
        "column 'A' has 1 missing value, the first in row 2",
    ),
    "too few rows": (
        "Date,A,B\n2020-01-01,1,2\n2020-01-02,2,3\n",
        "has 2 rows of prices, too few for a covariance: at least 3 are needed",
    ),
    "only dates": ("Date\n2020-01-01\n2020-01-02\n2020-01-03\n", "has no column of prices"),
}


@pytest.mark.parametrize("case", BAD_PRICES)
def test_bad_prices_are_refused_by_column_and_row(case, tmp_path):
    content, message = BAD_PRICES[case]
    (tmp_path / "p.csv").write_text(content)
    done = ksparse("portfolio", "p.csv", "-k", 1, "--prices", cwd=tmp_path, expect=2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_dates_of_all_kinds_are_no_assets(market):
    prices = pd.read_csv(market / "prices.csv")
    dates = pd.to_datetime(prices["Date"])
    rest = prices.drop(columns="Date")
    wanted = json.loads(ksparse("portfolio", "prices.csv", "-k", 3, "--long-only", "--json", cwd=market).stdout)[
        "weights"
    ]
    kinds = {
        "int.csv": rest.set_axis(dates.dt.strftime("%Y%m%d").astype(int)).rename_axis("trade_date").reset_index(),
        "unnamed.csv": rest.set_axis(dates.dt.strftime("%Y%m%d").astype(int)).rename_axis("").reset_index(),
        "rows.csv": rest.rename_axis("").reset_index(),
        "dayfirst.csv": rest.set_axis(dates.dt.strftime("%d/%m/%Y")).rename_axis("when").reset_index(),
        "zone.csv": rest.set_axis(dates.dt.tz_localize("Asia/Tokyo").astype(str)).rename_axis("when").reset_index(),
    }
    for name, table in kinds.items():
        table.to_csv(market / name, index=False)
        answer = json.loads(ksparse("portfolio", name, "-k", 3, "--long-only", "--json", cwd=market).stdout)
        assert answer["weights"] == pytest.approx(wanted), name
    rest.set_axis(pd.DatetimeIndex(dates)).to_parquet(market / "index.parquet")
    assert json.loads(ksparse("portfolio", "index.parquet", "-k", 3, "--long-only", "--json", cwd=market).stdout)[
        "weights"
    ] == pytest.approx(wanted)
    rest.set_axis(pd.DatetimeIndex(dates)).iloc[::-1].to_parquet(market / "back.parquet")
    assert "must ascend" in ksparse("portfolio", "back.parquet", "-k", 3, cwd=market, expect=2).stderr


@pytest.mark.slow
def test_an_unbounded_portfolio_is_no_answer(tmp_path):
    rng = np.random.default_rng(0)
    pd.DataFrame(np.exp(rng.standard_normal((4, 8)).cumsum(axis=0) / 10), columns=list("abcdefgh")).to_csv(
        tmp_path / "p.csv", index=False
    )
    done = ksparse("portfolio", "p.csv", "-k", 6, "--prices", "--out", "w.csv", cwd=tmp_path, expect=3)
    assert "set --long-only or --max-weight" in done.stderr
    assert not (tmp_path / "w.csv").exists()
    pd.DataFrame({"only": [1.0, 2.0, 1.5]}).to_csv(tmp_path / "one.csv", index=False)
    assert "100.00 %" in ksparse("portfolio", "one.csv", "-k", 1, "--prices", cwd=tmp_path).stdout
