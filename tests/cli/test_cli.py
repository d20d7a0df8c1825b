"""The command regress on real files, good and bad."""

import json
import subprocess
import sys

import numpy as np
import pytest

import ksparse as ks
from ksparse import datasets

pd = pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("clarabel", reason="Clarabel is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from command import ENVIRONMENT, ksparse  # noqa: E402


@pytest.fixture
def patients(tmp_path):
    X, y, names = datasets.diabetes()
    pd.DataFrame(X, columns=names).assign(progression=y).to_csv(tmp_path / "patients.csv", index=False)
    return tmp_path


def test_regress_prints_writes_and_obeys(patients):
    done = ksparse(
        "regress",
        "patients.csv",
        "--target",
        "progression",
        "-k",
        4,
        "--nonnegative",
        "bmi,s5",
        "--out",
        "coef.csv",
        cwd=patients,
    )
    written = pd.read_csv(patients / "coef.csv").set_index("feature")["coefficient"]
    assert len(written) == 5
    assert written["bmi"] > 0
    X, y, names = datasets.diabetes()
    fitted = X @ np.array([written.get(name, 0.0) for name in names]) + written["(intercept)"]
    twin = ks.minimize(ks.LeastSquares(X - X.mean(axis=0), y - y.mean()), 4)
    assert 0.5 * np.sum((y - fitted) ** 2) == pytest.approx(twin.fun, rel=1e-9)
    for word in ("bmi", "(intercept)", "R²", "written: coef.csv"):
        assert word in done.stdout
    assert all(name in names for name in written.index if name != "(intercept)")


def test_regress_as_json_with_bounds(patients):
    done = ksparse(
        "regress",
        "patients.csv",
        "--target",
        "progression",
        "-k",
        3,
        "--upper",
        "bmi=300",
        "--lower",
        "-100",
        "--drop",
        "sex",
        "--json",
        cwd=patients,
    )
    answer = json.loads(done.stdout)
    assert answer["coefficients"]["bmi"] == 300.0
    assert min(answer["coefficients"].values()) >= -100.0
    assert "sex" not in answer["coefficients"]
    assert answer["nonzeros"] == len(answer["coefficients"]) <= 3
    assert answer["status"] == "optimal"  # so few features that all subsets were tried
    assert answer["success"] is True


@pytest.mark.parametrize("loss", ["logistic", "huber", "poisson", "gamma", "quantile"])
def test_regress_with_other_losses(loss, tmp_path):
    X, y, names = datasets.breast_cancer()
    target = {
        "logistic": np.where(y == 1, "benign", "malignant"),
        "huber": X[:, 0] + X[:, 1],
        "poisson": np.round(X[:, 0]),
    }.get(loss, X[:, 0])
    table = pd.DataFrame(X[:, 2:12], columns=names[2:12]).assign(target=target)
    table.to_parquet(tmp_path / "t.parquet")
    answer = json.loads(
        ksparse("regress", "t.parquet", "--target", "target", "-k", 3, "--loss", loss, "--json", cwd=tmp_path).stdout
    )
    assert len(answer["coefficients"]) <= 3
    measure = {"logistic": "accuracy", "huber": "r2"}.get(loss, "deviance_explained")
    assert answer[measure] > 0.5
    assert answer["classes"] == (["benign", "malignant"] if loss == "logistic" else None)


def test_regress_does_not_offer_classes_that_share_features(patients):
    done = ksparse(
        "regress", "patients.csv", "--target", "progression", "-k", 2, "--loss", "multinomial", cwd=patients, expect=2
    )
    assert "invalid choice: 'multinomial'" in done.stderr


def test_regress_proves_other_losses_with_a_ridge(tmp_path):
    X, y, names = datasets.breast_cancer()
    pd.DataFrame(X[:, 2:12], columns=names[2:12]).assign(target=y).to_csv(tmp_path / "t.csv", index=False)
    command = ("regress", "t.csv", "--target", "target", "-k", 3, "--loss", "logistic", "--gap", "10%", "--json")
    answers = [json.loads(ksparse(*command, "--ridge", ridge, cwd=tmp_path).stdout) for ridge in ("0", "0.1")]
    assert answers[0]["objective"] < answers[1]["objective"]
    assert 0.9 * answers[1]["objective"] <= answers[1]["lower_bound"] <= answers[1]["objective"]
    for wrong in ("-1", "inf", "x"):
        assert "--ridge: must be" in ksparse(*command, "--ridge", wrong, cwd=tmp_path, expect=2).stderr


def test_quiet_prints_nothing_and_still_writes(patients):
    done = ksparse(
        "regress",
        "patients.csv",
        "--target",
        "progression",
        "-k",
        2,
        "--all-nonnegative",
        "--no-intercept",
        "--quiet",
        "--out",
        "c.csv",
        cwd=patients,
    )
    assert done.stdout == done.stderr == ""
    written = pd.read_csv(patients / "c.csv")
    assert (written["coefficient"] >= 0).all()
    assert "(intercept)" not in set(written["feature"])


def test_files_are_not_overwritten_without_force(patients):
    (patients / "coef.csv").write_text("mine")
    command = ("regress", "patients.csv", "--target", "progression", "-k", 2, "--out", "coef.csv")
    done = ksparse(*command, cwd=patients, expect=2)
    assert "coef.csv exists: give another name, or --force to replace it" in done.stderr
    assert (patients / "coef.csv").read_text() == "mine"
    ksparse(*command, "--force", cwd=patients)
    assert (patients / "coef.csv").read_text().startswith("feature,coefficient")
    assert sorted(path.name for path in patients.iterdir()) == ["coef.csv", "patients.csv"]


def test_a_time_limit_exits_with_4_and_the_best_so_far(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "big.npz", X=rng.standard_normal((300, 600)), y=rng.standard_normal(300))
    ksparse(
        "regress", "big.npz", "--target", "y", "-k", 50, "--limit", "0.001", "--out", "c.csv", cwd=tmp_path, expect=4
    )
    assert 1 <= len(pd.read_csv(tmp_path / "c.csv")) <= 51


BAD_TABLES = {
    "a text cell": ("a,b,y\n1,2,3\n4,red,6\n7,8,9\n1,1,1\n", "column 'b' is not numeric: row 2 holds 'red'"),
    "a gap": ("a,b,y\n1,2,3\n4,,6\n7,8,9\n1,1,1\n", "column 'b' has 1 missing value, the first in row 2"),
    "a gap in the target": ("a,b,y\n1,2,3\n4,5,\n7,8,9\n1,1,1\n", "column 'y' has 1 missing value, the first in row 2"),
    "an infinity": ("a,b,y\n1,2,3\n4,inf,6\n7,8,9\n1,1,1\n", "column 'b' is infinite in row 2"),
    "a name twice": ("a,a,y\n1,2,3\n4,5,6\n", "more than one column named 'a'"),
    "too few rows": ("a,b,y\n1,2,3\n4,5,6\n", "has 2 rows, too few to fit 1 coefficients: at least 3 are needed"),
    "no rows": ("a,b,y\n", "holds no rows below its header"),
    "nothing": ("", "t.csv is empty"),
    "longer rows": ("a,b,y\n1,2,3,4\n1,2,3,5\n", "row 1 has 4 fields, the header 3"),
    "semicolons": ("a;b;y\n1;2;3\n", "seems to be separated by semicolons"),
    "a saved index": (",a,y\n0,1,2\n1,3,4\n2,5,7\n", "the first column has no heading and may be a saved row index"),
    "spaces before names": ("a, a,y\n1,2,3\n4,5,6\n", "more than one column named 'a'"),
    "nothing to explain": ("a,b,y\n1,2,3\n4,5,3\n7,9,3\n", "the target column 'y' is constant (3)"),
    "only a target": ("y\n1\n2\n3\n", "has no column except the target"),
    "no target": ("a,b\n1,2\n", "--target: there is no column 'y'; the columns are a, b"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables_are_refused_by_column_and_row(case, tmp_path):
    content, message = BAD_TABLES[case]
    (tmp_path / "t.csv").write_text(content)
    done = ksparse("regress", "t.csv", "--target", "y", "-k", 1, cwd=tmp_path, expect=2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


BAD_OPTIONS = {
    "k": (("-k", "-1"), "-k must be at least 0, got -1"),
    "k of words": (("-k", "many"), "argument -k: invalid int value: 'many'"),
    "a column": (("-k", "2", "--nonnegative", "bmi,weight"), "--nonnegative: there is no column 'weight'"),
    "crossing bounds": (
        ("-k", "2", "--lower", "2", "--upper", "age=1"),
        "bounds on age are inconsistent: lower 2, upper 1",
    ),
    "a bound": (("-k", "2", "--lower", "age=low"), "--lower must be a number, or COL=NUMBER,COL=NUMBER, got 'age=low'"),
    "classes": (("-k", "2", "--loss", "logistic"), "must hold two classes for --loss logistic, it holds 214"),
    "a folder": (("-k", "2", "--out", "no/c.csv"), "the folder no does not exist"),
    "a limit": (("-k", "2", "--limit", "-1"), "must be >= 0, got -1"),
    "a limit of words": (("-k", "2", "--limit", "soon"), "must be a number of seconds, got 'soon'"),
    "two signs": (("-k", "2", "--all-nonnegative", "--nonnegative", "bmi"), "not allowed with argument"),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_bad_options_are_named(case, patients):
    options, message = BAD_OPTIONS[case]
    done = ksparse("regress", "patients.csv", "--target", "progression", *options, cwd=patients, expect=2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_negative_numbers_with_exponents_are_values(patients):
    answer = json.loads(
        ksparse(
            "regress",
            "patients.csv",
            "--target",
            "progression",
            "-k",
            2,
            "--lower",
            "-1e-3",
            "--upper",
            "2e2",
            "--json",
            cwd=patients,
        ).stdout
    )
    assert min(answer["coefficients"].values()) >= -1e-3
    done = ksparse(
        "regress", "patients.csv", "--target", "progression", "-k", 2, "--lower", "1", cwd=patients, expect=3
    )
    assert "the bounds keep 10 coefficients away from 0 (age, sex, bmi, bp, s1, ...), more than k = 2" in done.stderr


def test_names_may_hold_anything(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((30, 4)), columns=["[/foo]", "p,q", "a=b", "größe [red]"])
    table.assign(y=table.sum(axis=1)).to_csv(tmp_path / "t.csv", index=False)
    done = ksparse(
        "regress",
        "t.csv",
        "--target",
        "y",
        "-k",
        4,
        "--nonnegative",
        '"p,q",[/foo]',
        "--lower",
        "a=b=0.5",
        "--out",
        "c.csv",
        cwd=tmp_path,
    )
    for name in table.columns:
        assert name in done.stdout
    assert set(pd.read_csv(tmp_path / "c.csv")["feature"]) == {*table.columns, "(intercept)"}
    assert "p,q" in ksparse("pca", "t.csv", "-k", 5, "--drop", "y", "-k", 4, cwd=tmp_path).stdout
    narrow = {**ENVIRONMENT, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "ksparse", "regress", "t.csv", "--target", "y", "-k", "2", "--out", "d.csv"]
    assert subprocess.run(command, cwd=tmp_path, env=narrow, capture_output=True).returncode == 0


def test_trouble_on_the_screen_does_not_lose_the_answer(patients):
    command = f"{sys.executable} -m ksparse regress patients.csv --target progression -k 2 --out"
    done = subprocess.run(
        f"{command} a.csv | true", shell=True, cwd=patients, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert "Traceback" not in done.stderr
    subprocess.run(f"{command} b.csv >&-", shell=True, cwd=patients, env=ENVIRONMENT, check=True)
    assert (patients / "a.csv").read_text() == (patients / "b.csv").read_text()


def test_what_cannot_be_written_is_said_before_any_work(patients):
    (patients / "link.csv").symlink_to(patients / "nowhere")
    (patients / "loop.csv").symlink_to(patients / "loop.csv")
    for out, words in (
        ("link.csv", "link.csv exists"),
        ("/dev/null", "/dev/null exists"),
        ("x" * 300 + ".csv", "cannot be written"),
    ):
        done = ksparse(
            "regress", "patients.csv", "--target", "progression", "-k", 2, "--out", out, cwd=patients, expect=2
        )
        assert words in done.stderr
    done = ksparse(
        "regress",
        "patients.csv",
        "--target",
        "progression",
        "-k",
        2,
        "--out",
        "/dev/null",
        "--force",
        cwd=patients,
        expect=2,
    )
    assert "/dev/null is not a regular file" in done.stderr
    done = ksparse(
        "regress",
        "patients.csv",
        "--target",
        "progression",
        "-k",
        2,
        "--out",
        "loop.csv",
        "--force",
        cwd=patients,
        expect=2,
    )
    assert "loop.csv cannot be written: " in done.stderr
    for command in (["demo"], ["reproduce"]):
        assert "--out must name a folder" in ksparse(*command, "--out", "loop.csv", cwd=patients, expect=2).stderr


def test_separated_classes_are_reported(tmp_path):
    pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20.0) % 3, "y": np.arange(20) > 9}).to_csv(
        tmp_path / "t.csv", index=False
    )
    done = ksparse("regress", "t.csv", "--target", "y", "-k", 1, "--loss", "logistic", cwd=tmp_path)
    assert "the classes are separable: coefficients diverge and only their direction is meaningful" in done.stdout


def test_errors_are_json_where_asked(patients):
    done = ksparse("regress", "nowhere.csv", "--target", "y", "-k", 1, "--json", cwd=patients, expect=2)
    assert json.loads(done.stdout) == {"error": "error", "message": "nowhere.csv does not exist", "exit_code": 2}
    (patients / "notes.txt").write_text("hello")
    assert (
        "must be a .csv, .csv.gz, .tsv, .parquet or .npz file"
        in ksparse("pca", "notes.txt", "-k", 1, cwd=patients, expect=2).stderr
    )
    (patients / "fake.npz").write_text("hello")
    assert "fake.npz cannot be read" in ksparse("pca", "fake.npz", "-k", 1, cwd=patients, expect=2).stderr


def test_no_features_leave_the_intercept(patients):
    done = ksparse("regress", "patients.csv", "--target", "progression", "-k", 0, "--json", cwd=patients)
    answer, table = json.loads(done.stdout), pd.read_csv(patients / "patients.csv")
    assert answer["coefficients"] == {}
    assert answer["intercept"] == pytest.approx(table["progression"].mean())
