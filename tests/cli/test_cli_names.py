"""Names that look like other values (0700, NA, @ES, a comma) in files and options of portfolios and rules."""

import json
import sys

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("clarabel", reason="Clarabel is not installed")

from command import ksparse  # noqa: E402
from ksparse.cli.output import STANDARD, Output  # noqa: E402

NAMES = ["0700", "NA", "@ES", "Berkshire, B", "nan", "1e5"]
SECTORS = 'asset,sector\n0700,07\nNA,07\n@ES,N/A\n"Berkshire, B",N/A\nnan,1.50\n1e5,1.50\n'


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    pd.DataFrame(0.01 * rng.standard_normal((80, 6)) + 0.001, columns=NAMES).to_csv(
        tmp_path / "returns.csv", index=False
    )
    (tmp_path / "sectors.csv").write_text(SECTORS)
    return tmp_path


def portfolio(folder, *options, k=6, **how):
    return ksparse(
        "portfolio", "returns.csv", "--returns", "--long-only", "--min-variance", "-k", k, *options, cwd=folder, **how
    )


def weights(folder, *options, **how):
    found = json.loads(portfolio(folder, *options, "--json", **how).stdout)["weights"]
    return {name: found.get(name, 0.0) for name in NAMES}


def test_sectors_are_read_as_they_are_written(folder):
    found = weights(
        folder, "--sectors", "sectors.csv", "--sector-cap", 0.4, "--rule", "'07' <= 0.2", "--rule", "'1.50' >= 0.4"
    )
    assert found["0700"] + found["NA"] <= 0.2 + 1e-9
    assert found["nan"] + found["1e5"] == pytest.approx(0.4)


def test_a_blank_sector_is_none(folder):
    (folder / "sectors.csv").write_text(SECTORS.replace("nan,1.50", "nan,"))
    said = portfolio(folder, "--sectors", "sectors.csv", "--sector-cap", 0.5, expect=2).stderr
    assert "sectors.csv has no sector for 'nan'" in said
    (folder / "sectors.csv").write_text(SECTORS.replace("NA,07", ",07"))
    said = portfolio(folder, "--sectors", "sectors.csv", "--sector-cap", 0.5, expect=2).stderr
    assert "sectors.csv has no asset in row 2" in said


def test_what_was_written_is_read_as_holdings(folder):
    found = weights(folder, "--out", "held.csv")
    assert min(found.values()) > 0.01
    assert "'@ES," in (folder / "held.csv").read_text()
    again = weights(folder, "--holdings", "held.csv", "--cost", 0.001, "--max-turnover", 0)
    assert again == pytest.approx(found, abs=1e-7)


def test_bounds_may_be_blank(folder):
    (folder / "bounds.csv").write_text("asset,least,most\n0700,0.5,\nNA,NaN,0.01\n")
    found = weights(folder, "--bounds", "bounds.csv")
    assert found["0700"] >= 0.5 - 1e-9
    assert found["NA"] <= 0.01 + 1e-9


def test_a_number_that_is_a_name_needs_quotes(folder):
    said = portfolio(folder, "--rule", "0700 + NA >= 0.5", expect=2).stderr
    assert "'0700' in '0700 + NA >= 0.5' is a number and a name: put the name in quotes" in said
    assert weights(folder, "--rule", "'0700' >= 0.5")["0700"] >= 0.5 - 1e-9


def test_names_with_commas_in_options(folder):
    assert weights(folder, "--exclude", "Berkshire, B")["Berkshire, B"] == 0.0
    found = weights(folder, "--exclude", '"Berkshire, B", 0700', "--include", "NA", k=3)
    assert found["Berkshire, B"] == found["0700"] == 0.0 < found["NA"]
    assert "--include names 'IBM'" in portfolio(folder, "--include", "IBM", expect=2).stderr


def test_sides_that_are_left_out_or_negative(folder):
    found = weights(
        folder,
        "--sectors",
        "sectors.csv",
        "--sector-names",
        "07=2:",
        "--sector-names",
        "N/A=:0",
        "--min-weight",
        0.05,
        k=3,
    )
    assert min(found["0700"], found["NA"]) > 0
    assert found["@ES"] == found["Berkshire, B"] == 0.0
    assert (
        "--sector-names must be N"
        in portfolio(folder, "--sectors", "sectors.csv", "--sector-names", "07=:", expect=2).stderr
    )
    assert sum(weights(folder, "--budget", "-1:0.5").values()) <= 0.5 + 1e-9


@pytest.mark.parametrize("way", [("--frontier", 3), ("--walk", "40:20")], ids=["frontier", "walk"])
def test_a_limit_that_was_reached_exits_with_4(way, tmp_path):
    rng = np.random.default_rng(0)
    returns = 0.01 * rng.standard_normal((80, 60)) + 0.001
    pd.DataFrame(returns, columns=[f"A{j}" for j in range(60)]).to_csv(tmp_path / "returns.csv", index=False)
    assert portfolio(tmp_path, *way, "--limit", 0, "--out", "found.csv", expect=4)
    assert len(pd.read_csv(tmp_path / "found.csv")) == (3 if "--frontier" in way else 2)


def test_labels_and_parents_are_names(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    table = pd.DataFrame(X, columns=["07", "NA", "c", "d"]).assign(y=X @ [3.0, 2.0, 1.0, 0.0])
    table.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "labels.csv").write_text("feature,label\n07,01\nNA,01\n")
    (tmp_path / "parents.csv").write_text("child,parent\nc,07\n")
    regress = (
        "regress",
        "t.csv",
        "--target",
        "y",
        "-k",
        2,
        "--json",
        "--labels",
        "labels.csv",
        "--group-limits",
        "01=..1",
    )
    found = json.loads(ksparse(*regress, "--requires", "parents.csv", cwd=tmp_path).stdout)
    assert set(found["coefficients"]) == {"07", "c"}
    (tmp_path / "labels.csv").write_text("feature,label\n07,\nNA,01\n")
    assert "labels.csv has no label for '07'" in ksparse(*regress, cwd=tmp_path, expect=2).stderr


def test_percentages_are_shares(folder):
    (folder / "bounds.csv").write_text("asset,least,most\n0700,10%,\nNA,,25%\n")
    (folder / "shares.csv").write_text("asset,least,most\n0700,0.1,\nNA,,0.25\n")
    sectors = ("--sectors", "sectors.csv")
    percent = (
        "--max-weight",
        "30%",
        "--min-weight",
        "5%",
        "--sector-cap",
        "40%",
        "--rule",
        "'07' <= 35%",
        "--budget",
        "90%:100%",
    )
    share = (
        "--max-weight",
        0.3,
        "--min-weight",
        0.05,
        "--sector-cap",
        0.4,
        "--rule",
        "'07' <= 0.35",
        "--budget",
        "0.9:1",
    )
    found = weights(folder, *sectors, *percent, "--bounds", "bounds.csv")
    assert found == pytest.approx(weights(folder, *sectors, *share, "--bounds", "shares.csv"), abs=1e-12)
    assert max(found.values()) <= 0.3 + 1e-12


@pytest.mark.parametrize("option", ["--max-weight", "--min-weight", "--max-short", "--sector-cap", "--sector-floor"])
def test_a_weight_above_1_is_asked_about(folder, option):
    said = portfolio(folder, option, 20, expect=2).stderr
    assert f"argument {option}: 20 is 2000 % of the portfolio: write 20% or 2000%, whichever is meant" in said
    assert "must be a number such as 0.2 or 20%, got 'much'" in portfolio(folder, option, "much", expect=2).stderr


def test_a_bound_above_1_is_asked_about(folder):
    (folder / "bounds.csv").write_text("asset,least,most\n0700,,20\n")
    assert (
        "the most weight of '0700': 20 is 2000 % of the portfolio"
        in portfolio(folder, "--bounds", "bounds.csv", expect=2).stderr
    )


def test_names_command_no_spreadsheet_and_no_terminal(tmp_path):
    rng = np.random.default_rng(0)
    names = ['=HYPERLINK("http://a.b","c")', "\x1b[2Jwiped", "\x9b31mred", "@ES"]
    pd.DataFrame(0.01 * rng.standard_normal((80, 4)) + 0.001, columns=names).to_csv(
        tmp_path / "returns.csv", index=False
    )
    for more in (("--frontier", 3), ("--walk", "40:20")):
        done = portfolio(tmp_path, *more, "--out", "found.csv", "--force", k=4)
        heading = (tmp_path / "found.csv").read_text().splitlines()[0]
        assert "\"'=HYPERLINK(" in heading
        assert "'@ES" in heading
    done = portfolio(tmp_path, k=4)
    refused = portfolio(tmp_path, "--include", "\x1b[2Jnobody", k=4, expect=2)
    missing = ksparse("regress", "returns.csv", "--target", "y", "-k", 1, cwd=tmp_path, expect=2)
    for text in (done.stdout, done.stderr, refused.stderr, missing.stderr):
        assert "\x1b[2J" not in text
        assert "\x9b" not in text
    assert r"\x1b[2Jwiped" in done.stdout
    assert r"\x1b[2Jwiped" in missing.stderr


def test_a_table_on_a_terminal_commands_it_neither(monkeypatch, capsys):
    output = Output(as_json=False, quiet=False, force=False)
    for terminal, shown in ((False, "\x1b[2Jwiped"), (True, r"\x1b[2Jwiped")):
        monkeypatch.setattr(sys.stdout, "isatty", lambda terminal=terminal: terminal)
        output.write_csv(STANDARD, ["name", "weight"], [["\x1b[2Jwiped", 0.5]])
        assert capsys.readouterr().out == f"name,weight\n{shown},0.5\n"
