"""Good and bad tables given to the three commands that read them: an answer or a message, no traceback or warning."""

import csv
import json
import re

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("clarabel", reason="Clarabel is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from ksparse.cli import main  # noqa: E402
from ksparse.cli.output import harmless  # noqa: E402

COMMANDS = {
    "regress": ("--target", "a", "-k", "1"),
    "pca": ("-k", "1"),
    "portfolio": ("-k", "1", "--long-only", "--prices"),
}


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in its own folder and return (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        assert "Warning" not in said.err
        return code, said.out, said.err

    return call


def rows(count, *names, seed=0):
    """Return a table of positive numbers, like prices."""
    table = 100 * np.exp(np.cumsum(0.01 * np.random.default_rng(seed).standard_normal((count, len(names))), axis=0))
    return pd.DataFrame(table, columns=list(names))


def spoiled(value, count=20):
    table = rows(count, "a", "b", "c").astype(object)
    table.loc[4, "b"] = value
    return table.to_csv(index=False)


BAD = {
    "nothing": (b"", "is empty"),
    "blank lines": (b"\n\n\n", "is empty"),
    "a header only": (b"a,b,c\n", "holds no rows below its header"),
    "a longer row": (rows(9, "a", "b", "c").to_csv(index=False) + "1,2,3,4\n", "cannot be read"),
    "longer rows": ("a,b,c\n" + "1,2,3,4\n" * 9, "row 1 has 4 fields, the header 3"),
    "a shorter row": (
        rows(9, "a", "b", "c").to_csv(index=False) + "1,2\n",
        "column 'c' has 1 missing value, the first in row 10",
    ),
    "a name twice": ("a,b,b\n" + "1,2,3\n" * 9, "more than one column named 'b'"),
    "a text cell": (spoiled("red"), "column 'b' is not numeric: row 5 holds 'red'"),
    "NaN": (spoiled("NaN"), "column 'b' has 1 missing value, the first in row 5"),
    "inf": (spoiled("inf"), "column 'b' is infinite in row 5"),
    "-inf": (spoiled("-inf"), "column 'b' is infinite in row 5"),
    "1e300": (spoiled("1e300"), "column 'b' holds 1e+300 in row 5: absolute values must not exceed 1e+100"),
    "1e400": (spoiled("1e400"), "column 'b' is infinite in row 5"),
    "semicolons": (rows(9, "a", "b", "c").to_csv(index=False, sep=";"), "seems to be separated by semicolons"),
    "bytes of no text": (b"\xff\xfe\x00\x01a,b\n", "cannot be read"),
    "one row": (rows(1, "a", "b", "c").to_csv(index=False), "has 1 rows"),
    "a complex number": (spoiled("1+2j"), "column 'b' is not numeric: row 5 holds '1+2j'"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", BAD)
def test_bad_tables(command, case, run, tmp_path):
    content, message = BAD[case]
    (tmp_path / "t.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    code, _, said = run(command, "t.csv", *COMMANDS[command])
    assert code == 2
    assert message in said


@pytest.mark.parametrize("command", COMMANDS)
def test_bad_files(command, run, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 this is not Parquet PAR1")
    (tmp_path / "empty.parquet").write_bytes(b"")
    rows(0, "a", "b").to_parquet(tmp_path / "rowless.parquet")
    for name, message in (
        ("nowhere.csv", "nowhere.csv does not exist"),
        ("folder.csv", "folder.csv is not a file"),
        ("bad.parquet", "bad.parquet cannot be read"),
        ("empty.parquet", "empty.parquet cannot be read"),
        ("rowless.parquet", "holds no rows"),
    ):
        code, _, said = run(command, name, *COMMANDS[command])
        assert code == 2, name
        assert message in said
    code, answer, _ = run(command, "nowhere.csv", *COMMANDS[command], "--json")
    assert json.loads(answer)["exit_code"] == code == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_good_tables_of_every_kind_are_the_same_table(command, run, tmp_path):
    table = rows(25, "a", "b", "c")
    table.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "bom.csv").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "t.csv").read_bytes())
    (tmp_path / "crlf.csv").write_bytes((tmp_path / "t.csv").read_bytes().replace(b"\n", b"\r\n"))
    table.to_csv(tmp_path / "t.csv.gz", index=False)
    table.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    table.to_parquet(tmp_path / "t.parquet")
    table.astype("Float64").to_parquet(tmp_path / "nullable.parquet")
    np.savez(tmp_path / "t.npz", X=table.to_numpy(), names=np.array(list("abc")))
    answers = []
    for name in ("t.csv", "bom.csv", "crlf.csv", "t.csv.gz", "t.tsv", "t.parquet", "nullable.parquet", "t.npz"):
        code, answer, _ = run(command, name, *COMMANDS[command], "--json")
        assert code == 0, name
        answers.append(json.loads(answer))
    for answer in answers:
        for found, wanted in zip(_numbers(answer), _numbers(answers[0]), strict=True):
            assert found == pytest.approx(wanted, rel=1e-9)


def _numbers(answer):
    """Return the numbers of an answer without times."""
    if isinstance(answer, dict):
        return [number for key, value in answer.items() if key != "seconds" for number in _numbers(value)]
    if isinstance(answer, list):
        return [number for value in answer for number in _numbers(value)]
    return [answer] if isinstance(answer, float) else []


@pytest.mark.parametrize("command", COMMANDS)
def test_all_columns_dropped(command, run, tmp_path):
    rows(25, "a", "b", "c").to_csv(tmp_path / "t.csv", index=False)
    code, _, said = run(command, "t.csv", *COMMANDS[command], "--drop", "a,b,c")
    assert code == 2
    assert "--drop leaves no column of t.csv" in said
    rows(25, "a", "b", "c").assign(Date=pd.bdate_range("2020-01-01", periods=25)).to_csv(
        tmp_path / "d.csv", index=False
    )
    code, _, said = run("portfolio", "d.csv", "-k", 1, "--drop", "a,b,c")
    assert code == 2
    assert "has no column of prices" in said


@pytest.mark.parametrize("command", COMMANDS)
def test_one_column(command, run, tmp_path):
    rows(25, "a").to_csv(tmp_path / "t.csv", index=False)
    code, _, said = run(command, "t.csv", *COMMANDS[command])
    assert code == (2 if command == "regress" else 0)
    assert command != "regress" or "has no column except the target" in said


@pytest.mark.parametrize(
    ("command", "what"), [("regress", "2 features"), ("pca", "3 columns"), ("portfolio", "3 assets")]
)
def test_more_than_there_are_is_no_restriction(command, what, run, tmp_path):
    rows(25, "a", "b", "c").to_csv(tmp_path / "t.csv", index=False)
    options = [option if option != "1" else "99" for option in COMMANDS[command]]
    for how in ((), ("--json",)):
        code, _, said = run(command, "t.csv", *options, *how)
        assert code == 0
        assert f"note: -k 99 is no restriction, there are {what}" in said
    least = 0 if command == "regress" else 1
    code, _, said = run(
        command, "t.csv", *[option if option != "1" else str(least - 1) for option in COMMANDS[command]]
    )
    assert code == 2
    assert f"-k must be at least {least}, got {least - 1}" in said


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("scale", [1e98, 1e-90, 1e-300])
def test_numbers_of_any_size_give_an_answer_or_a_message(command, scale, run, tmp_path):
    (rows(25, "a", "b", "c") * scale).to_csv(tmp_path / "t.csv", index=False)
    for options in ((), ("--no-scale",) if command == "pca" else ()):
        code, answer, said = run(command, "t.csv", *COMMANDS[command], *options, "--json")
        assert code == 0 or (code == 2 and "rescale the data" in said)
        found = json.loads(answer)
        assert code == 2 or all(np.isfinite(number) for number in _numbers(found))
        if command == "portfolio" and code == 0:
            assert sum(found["weights"].values()) == pytest.approx(1, abs=1e-12)


def test_returns_of_any_size_give_an_answer_or_a_message(run, tmp_path):
    returns = rows(25, "a", "b", "c").pct_change().dropna()
    for scale, words in ((1e101, "must not exceed 1e+100"), (1e-200, "must be at least 1e-120")):
        (scale * 100 * returns).to_csv(tmp_path / "t.csv", index=False)
        code, _, said = run("portfolio", "t.csv", "-k", 2, "--returns", "--long-only")
        assert code == 2
        assert words in said or "absolute values must not exceed 1e+100" in said
    pd.DataFrame({"a": [1e-90, 1e90, 1e-90, 1e80], "b": [1.0, 2, 3, 4]}).to_csv(tmp_path / "t.csv", index=False)
    code, _, said = run("portfolio", "t.csv", "-k", 1, "--prices")
    assert code == 2
    assert "absolute values in the returns of t.csv must not exceed 1e+100, got 1e+180 in column 'a'" in said


# --- formulas ---


def test_texts_that_a_spreadsheet_would_run_are_neutralised(run, tmp_path):
    names = ["=cmd()", "+1+1", "-2+3", "@SUM(A1)", "\tx", "plain", "-1.5"]
    table = rows(60, *names)
    table.assign(y=table.sum(axis=1)).to_csv(tmp_path / "t.csv", index=False)
    runs = {
        "regress": ("--target", "y", "-k", "7"),
        "pca": ("-k", "7", "--drop", "y"),
        "portfolio": ("-k", "7", "--drop", "y", "--max-weight", "0.2", "--min-weight", "0.05"),
    }
    for command, options in runs.items():
        assert run(command, "t.csv", *options, "--out", f"{command}.csv")[0] == 0
        with (tmp_path / f"{command}.csv").open(newline="") as file:
            written = list(csv.reader(file))[1:]
        texts, figures = [row[-2] for row in written], [row[-1] for row in written]
        assert {"'=cmd()", "'+1+1", "'-2+3", "'@SUM(A1)", "plain", "-1.5"} <= set(texts)
        assert not any(text.startswith(("=", "+", "@", "\t")) for text in texts)
        assert any(figure.startswith("-") for figure in figures) or command == "portfolio"
        assert all(np.isfinite(float(figure)) for figure in figures)  # numbers stay numbers
    assert [harmless(cell) for cell in (-1.0, "-1", "-", "\r=1", "", None)] == [-1.0, "-1", "'-", "'\r=1", "", None]


# --- which column holds the dates ---


def test_a_ticker_called_day_is_no_date(run, tmp_path):
    prices = rows(30, "DAY", "MONTH", "C")
    dates = pd.bdate_range("2020-01-01", periods=30)
    tables = {
        "unnamed dates": prices.set_axis(dates),
        "unnamed whole dates": prices.set_axis(dates.strftime("%Y%m%d").astype(int)),
        "unnamed rows": prices,
        "named dates": prices.set_axis(dates).rename_axis("Date"),
    }
    for name, table in tables.items():
        table.to_csv(tmp_path / "t.csv")
        code, answer, _ = run(
            "portfolio", "t.csv", "-k", 3, "--max-weight", 0.4, "--min-weight", 0.2, "--long-only", "--json"
        )
        assert code == 0, name
        assert set(json.loads(answer)["weights"]) == {"DAY", "MONTH", "C"}, name
    prices.to_csv(tmp_path / "t.csv", index=False)  # no dates at all
    assert run("portfolio", "t.csv", "-k", 1)[0] == 0
    code, _, said = run("portfolio", "t.csv", "-k", 1, "--dates", "DAY")  # named by the user: then it must hold some
    assert code == 2
    assert "column 'DAY' should hold dates: row 1 holds" in said


def test_dates_are_in_the_first_column_or_named(run, tmp_path):
    prices = rows(30, "A", "B").assign(Date=pd.bdate_range("2020-01-01", periods=30).astype(str))
    prices.to_csv(tmp_path / "t.csv", index=False)
    code, _, said = run("portfolio", "t.csv", "-k", 1)
    assert code == 2
    assert "column 'Date' is called dates but is not the first: name it with --dates" in said
    prices.rename(columns={"Date": "when"}).to_csv(tmp_path / "w.csv", index=False)
    code, _, said = run("portfolio", "w.csv", "-k", 1)
    assert code == 2
    assert "column 'when' is not numeric" in said
    assert "if it holds dates, name it with --dates" in said
    code, answer, _ = run("portfolio", "t.csv", "-k", 2, "--dates", "Date", "--json")
    assert code == 0
    assert set(json.loads(answer)["weights"]) == {"A", "B"}


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (range(43831, 43861), "column 'Date' should hold dates: row 1 holds '43831'; name another with --dates"),
        (
            ["2020-01-01"] * 30,
            "duplicate date 2020-01-01 in column 'Date', in rows 1 and 2; if these are not dates, name another column "
            "with --dates",
        ),
        (
            pd.bdate_range("2020-01-01", periods=30)[::-1],
            "must ascend: .*; if these are not dates, name another column with --dates",
        ),
    ],
)
def test_errors_about_dates_hint_at_the_option(cells, words, run, tmp_path):
    rows(30, "A", "B").assign(Date=list(cells))[["Date", "A", "B"]].to_csv(tmp_path / "t.csv", index=False)
    code, _, said = run("portfolio", "t.csv", "-k", 1)
    assert code == 2
    assert re.search(words, said)


def test_prices_given_as_returns_are_reported(run, tmp_path):
    prices = rows(30, "A", "B")
    prices.to_csv(tmp_path / "t.csv", index=False)
    assert "looks like prices" in run("portfolio", "t.csv", "-k", 1, "--returns")[2]
    (100 * prices.pct_change().dropna()).to_csv(tmp_path / "r.csv", index=False)
    assert run("portfolio", "r.csv", "-k", 1, "--returns")[2] == ""


def test_prices_and_returns_are_told_apart_or_asked_for(run, tmp_path):
    prices, returns = rows(30, "A", "B"), rows(30, "A", "B").pct_change().dropna()
    tables = {
        "prices": [prices, prices / prices.iloc[0], 1e4 * prices],
        "returns": [returns, 100 * returns],
        None: [1 + returns, 1e-4 + returns.abs(), 1e-4 * prices],  # growth factors, a savings account, either
    }
    for what, kinds in tables.items():
        for table in kinds:
            table.to_csv(tmp_path / "t.csv", index=False)
            code, answer, said = run("portfolio", "t.csv", "-k", 1, "--long-only", "--json")
            if what is None:
                assert code == 2
                assert "say --prices or --returns" in said
                for asked in ("prices", "returns"):
                    assert (
                        json.loads(run("portfolio", "t.csv", "-k", 1, "--long-only", f"--{asked}", "--json")[1])[
                            "read_as"
                        ]
                        == asked
                    )
            else:
                assert code == 0
                assert json.loads(answer)["read_as"] == what
    with pytest.raises(SystemExit):
        run("portfolio", "t.csv", "-k", 1, "--prices", "--returns")


# --- mandates ---


@pytest.fixture
def mandate(tmp_path):
    """Write prices of an index and nine assets in three sectors and files about them; return each asset's sector."""
    assets = [f"N{i}" for i in range(9)]
    prices = rows(160, "IDX", *assets)
    prices.to_csv(tmp_path / "p.csv", index=False)
    sector = {name: ("tech", "banks", "energy")[i % 3] for i, name in enumerate(assets)}
    pd.DataFrame(sector.items(), columns=["asset", "sector"]).to_csv(tmp_path / "sectors.csv", index=False)
    pd.DataFrame({"asset": ["N0", "N1"], "least": [0.05, None], "most": [None, 0.1]}).to_csv(
        tmp_path / "bounds.csv", index=False
    )
    pd.DataFrame({"asset": assets[:4], "weight": 0.25}).to_csv(tmp_path / "before.csv", index=False)
    pd.DataFrame({"asset": assets, "cost": 1e-4}).to_csv(tmp_path / "costs.csv", index=False)
    return sector


PORTFOLIO = ("portfolio", "p.csv", "-k", 5, "--long-only", "--min-weight", "0.02")
COUNTED = ("--sectors", "sectors.csv", "--sector-names", "2", "--sector-names", "banks=1:1")


def test_mandates_by_files(mandate, run):
    def weights(*options):
        code, answer, said = run(*PORTFOLIO, *options, "--json")
        assert code == 0, said
        return json.loads(answer)["weights"]

    held = [mandate[name] for name in weights(*COUNTED, "--drop", "IDX", "--bounds", "bounds.csv", "--budget", "0.9:1")]
    assert held.count("banks") == 1
    assert max(held.count("tech"), held.count("energy")) <= 2
    found = weights("--drop", "IDX", "--bounds", "bounds.csv")
    assert found["N0"] >= 0.05 - 1e-12
    assert found.get("N1", 0.0) <= 0.1 + 1e-12
    one, table = (
        weights("--drop", "IDX", "--holdings", "before.csv", "--cost", cost) for cost in ("0.0001", "costs.csv")
    )
    assert one == pytest.approx(table)


def test_an_index_is_stayed_near_to(mandate, run, tmp_path):
    returns = pd.read_csv(tmp_path / "p.csv").pct_change().dropna()

    def away(options):
        answer = json.loads(run(*PORTFOLIO, "--index", "IDX", *COUNTED[:4], *options, "--json")[1])["weights"]
        return float(
            np.sqrt(np.mean((sum(weight * returns[name] for name, weight in answer.items()) - returns["IDX"]) ** 2))
        )

    limit = 1.1 * away(())
    assert away(("--max-tracking-error", limit, "--min-variance")) <= limit


def test_frontiers_and_walks_are_tables(mandate, run, tmp_path):
    frontier = run(*PORTFOLIO, "--drop", "IDX", *COUNTED, "--frontier", 4, "--out", "f.csv", "--json")
    points = json.loads(frontier[1])["frontier"]
    assert len(points) == len(pd.read_csv(tmp_path / "f.csv")) == 4
    trades = ("--walk", "100:20", "--cost", "costs.csv", "--max-turnover", "0.4", "--min-variance", "--out", "w.csv")
    walk = json.loads(run(*PORTFOLIO, "--drop", "IDX", *COUNTED, *trades, "--json")[1])["walk"]
    assert len(walk) == len(pd.read_csv(tmp_path / "w.csv")) == 3
    assert all(
        step["turnover"] <= 0.4 + 1e-9 and step["cost"] == pytest.approx(1e-4 * step["turnover"]) for step in walk[1:]
    )
    assert all(sum(mandate[name] == "banks" for name in row["weights"]) == 1 for row in (*points, *walk))


@pytest.mark.parametrize(
    ("wrong", "code", "words"),
    [
        (("--sector-names", "2"), 2, "--sector-names needs --sectors"),
        (
            ("--sectors", "sectors.csv", "--sector-names", "steel=2"),
            2,
            "--sector-names names 'steel', which is not among the groups",
        ),
        (
            ("--sectors", "sectors.csv", "--sector-names", "x"),
            2,
            "--sector-names must be N, SECTOR=N or SECTOR=LEAST:MOST",
        ),
        (
            ("--sectors", "sectors.csv", "--sector-names", "2:3"),
            3,
            "forced-in assets and minimum counts in --sector-names need 6 assets",
        ),
        (("--max-tracking-error", "0.1"), 2, "--max-tracking-error needs --index"),
        (("--frontier", "5", "--target-return", "0.1"), 2, "--target-return cannot be combined with --frontier"),
        (("--frontier", "1"), 2, "--frontier must be at least 2 points"),
        (("--walk", "100"), 2, "--walk must be WINDOW:STEP"),
        (("--walk", "9999:1"), 2, "window must leave rows to hold the portfolio in"),
        (("--walk", "100:20", "--frontier", "3"), 2, "--walk cannot be combined with --frontier"),
        (("--budget", "all"), 2, "--budget must be a number or LEAST:MOST"),
        (("--holdings", "before.csv", "--cost", "sectors.csv"), 2, "which is not a number"),
        (("--cost", "0.1"), 2, "--cost needs --holdings"),
    ],
)
def test_mandates_that_cannot_be_are_named_by_their_options(mandate, run, wrong, code, words):
    found, _, said = run(*PORTFOLIO, "--drop", "IDX", *wrong)
    assert found == code, said
    assert words in said


def test_an_index_that_cannot_be_kept_near_to(mandate, run):
    code, _, said = run(*PORTFOLIO, "--index", "IDX", "--max-tracking-error", "1e-9")
    assert code == 3
    assert "--max-tracking-error 1e-09 is infeasible" in said
