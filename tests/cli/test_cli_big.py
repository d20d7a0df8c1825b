"""The command regress on data that are read by blocks: .npy files and folders of parts."""

import json

import numpy as np
import pytest

import ksparse as ks

pd = pytest.importorskip("pandas", reason="pandas is not installed")

from command import ksparse  # noqa: E402

NAMES = [f"f{j}" for j in range(12)]


@pytest.fixture
def table(tmp_path, rng):
    """The same table in every form, its column 5 the target."""
    X = rng.standard_normal((400, 12)).astype(np.float32)
    X[:, 5] = 2.0 * X[:, 1] - X[:, 8] + 3.0 + 0.1 * rng.standard_normal(400)
    frame = pd.DataFrame(X.astype(float), columns=NAMES)
    frame.to_csv(tmp_path / "t.csv", index=False)
    np.save(tmp_path / "t.npy", X)
    np.save(tmp_path / "X.npy", np.delete(X, 5, axis=1))
    np.save(tmp_path / "y.npy", X[:, 5])
    (tmp_path / "parts").mkdir()
    for part, rows in enumerate(np.array_split(np.arange(400), 3)):
        np.save(tmp_path / "parts" / f"part{part}.npy", X[rows])
    return tmp_path


def regress(table, *arguments, **how):
    return ksparse("regress", *arguments, "-k", 2, "--json", cwd=table, **how)


@pytest.mark.parametrize(
    "arguments",
    [("t.npy", "--target", "5"), ("parts", "--target", "5"), ("X.npy", "--target", "y.npy")],
    ids=["column", "folder", "file"],
)
def test_the_answer_is_that_of_the_table(table, arguments):
    X, y = np.load(table / "X.npy").astype(float), np.load(table / "y.npy").astype(float)
    whole, found = ks.SparseRegressor(2).fit(X, y), json.loads(regress(table, *arguments).stdout)
    assert list(found["coefficients"]) == (["1", "7"] if arguments[0] == "X.npy" else ["1", "8"])
    np.testing.assert_allclose(list(found["coefficients"].values()), whole.coef_[[1, 7]], rtol=1e-6)
    assert found["intercept"] == pytest.approx(whole.intercept_, rel=1e-6)
    assert found["r2"] == pytest.approx(whole.score(X, y), rel=1e-6)
    assert 0 < found["passes"] <= 10


def test_a_folder_of_parquet_has_names(table):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    (table / "pq").mkdir()
    frame = pd.read_csv(table / "t.csv")
    frame[:150].to_parquet(table / "pq" / "a.parquet")
    frame[150:].to_parquet(table / "pq" / "b.parquet")
    done = regress(table, "pq", "--target", "f5", "--drop", "f8", "--forced-in", "f3", "--upper", "f1=1.5")
    found = json.loads(done.stdout)["coefficients"]
    assert set(found) == {"f1", "f3"}
    assert found["f1"] == 1.5
    frame.rename(columns={"f1": "g"})[150:].to_parquet(table / "pq" / "b.parquet")
    assert "name theirs differently" in regress(table, "pq", "--target", "f5", expect=2).stderr


def test_classes_and_a_file_for_the_coefficients(table):
    X = np.load(table / "X.npy")
    np.save(table / "class.npy", (X[:, 1] + 0.3 * np.random.default_rng(1).standard_normal(400) > 0).astype(int))
    done = ksparse(
        "regress", "X.npy", "--target", "class.npy", "-k", 1, "--loss", "logistic", "--out", "coef.csv", cwd=table
    )
    assert "log-odds of class.npy = 1" in done.stdout
    assert "passes over the data" in done.stdout
    assert "1" in set(pd.read_csv(table / "coef.csv")["feature"].astype(str))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("t.npy", "--target", "12"), "--target: there is no column '12'"),
        (("t.npy", "--target", "5", "--drop", "5"), "--drop: '5' is the target"),
        (("t.npy", "--target", "z.npy"), "--target: z.npy cannot be read"),
        (("t.npy", "--target", "t.npy"), "must hold one number per row, 400, got shape (400, 12)"),
        (("none.npy", "--target", "5"), "none.npy does not exist"),
        (("empty", "--target", "5"), "holds no .npy, .npz or .parquet file"),
        (("y.npy", "--target", "5"), "must name tables of the same columns"),
        (("nan.npy", "--target", "5"), "must not contain NaN"),
    ],
)
def test_bad_input_is_named(table, arguments, words):
    (table / "empty").mkdir()
    broken = np.load(table / "t.npy")
    broken[7, 3] = np.nan
    np.save(table / "nan.npy", broken)
    assert words in " ".join(regress(table, *arguments, expect=2).stderr.split())


def test_passes_are_printed(table):
    heard = []
    A = ks.blocks(table / "X.npy", 100, tell=lambda number, share: heard.append((number, share)))
    ks.minimize(ks.LeastSquares(A, np.load(table / "y.npy")), 2)
    assert [share for _, share in heard[:4]] == [0.25, 0.5, 0.75, 1.0]
    assert heard[-1] == (A.passes, 1.0)
    assert len(heard) == 4 * A.passes


def test_damaged_files_are_named(table):
    (table / "empty.npy").write_bytes(b"")
    assert "empty.npy, which cannot be read" in regress(table, "empty.npy", "--target", "5", expect=2).stderr
    assert "--target: empty.npy cannot be read" in regress(table, "X.npy", "--target", "empty.npy", expect=2).stderr
    (table / "parts" / "part9.npz").write_bytes(b"PK")
    assert "part9.npz, which cannot be read" in regress(table, "parts", "--target", "5", expect=2).stderr
