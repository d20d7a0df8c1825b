"""Rules about supports on the command line: groups and limits from files or in words, parents."""

import json

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="pandas is not installed")

from command import ksparse  # noqa: E402


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((60, 4)), columns=["rooms", "area", "age", "noise"])
    town = rng.integers(0, 3, 60)
    table["city_Paris"], table["city_New York"] = (town == 1) * 1.0, (town == 2) * 1.0
    table["rooms:area"] = table["rooms"] * table["area"]
    table["price"] = (
        2 * table["rooms:area"]
        + 3 * table["city_Paris"]
        + 0.2 * table["city_New York"]
        + table["age"]
        + 0.1 * rng.standard_normal(60)
    )
    table.to_csv(tmp_path / "houses.csv", index=False)
    pd.DataFrame({"feature": ["city_Paris", "city_New York"], "group": "city"}).to_csv(
        tmp_path / "groups.csv", index=False
    )
    pd.DataFrame({"feature": ["age", "rooms:area", "area"], "label": ["x", "x", "y"]}).to_csv(
        tmp_path / "labels.csv", index=False
    )
    pd.DataFrame({"child": ["rooms:area"] * 2, "parent": ["rooms", "area"]}).to_csv(
        tmp_path / "parents.csv", index=False
    )
    return tmp_path


def chosen(folder, k, *options):
    done = ksparse("regress", "houses.csv", "--target", "price", "-k", k, "--json", *options, cwd=folder)
    return set(json.loads(done.stdout)["coefficients"])


@pytest.mark.parametrize("groups", ["groups.csv", "city"])
def test_groups_enter_whole(folder, groups):
    assert chosen(folder, 2, "--groups", groups) == {"rooms:area", "city_Paris", "city_New York"}


@pytest.mark.parametrize("requires", ["parents.csv", "rooms:area=rooms+area"])
def test_children_come_with_their_parents(folder, requires):
    assert chosen(folder, 5, "--requires", requires) == {"rooms", "area", "rooms:area", "city_Paris", "age"}


def test_limits_per_label(folder):
    found = chosen(folder, 3, "--labels", "labels.csv", "--group-limits", "x=..1,y=1..")
    assert {"rooms:area", "area"} < found
    assert "age" not in found


WRONG = {
    "no such file": (("--groups", "nothing.csv"), 2, "no file nothing.csv"),
    "a strange feature": (("--labels", "parents.csv", "--group-limits", "x=..1"), 2, "names 'rooms:area' twice"),
    "limits alone": (("--group-limits", "x=..1"), 2, "must be given together"),
    "no limits": (("--labels", "labels.csv", "--group-limits", "x=1"), 2, "LABEL=MIN..MAX"),
    "an unknown label": (
        ("--labels", "labels.csv", "--group-limits", "z=..1"),
        2,
        "label 'z', which is not in --labels",
    ),
    "an unknown parent": (("--requires", "rooms:area=garden"), 2, "no column 'garden'"),
    "limits that cannot be met": (
        ("--labels", "labels.csv", "--group-limits", "y=2.."),
        3,
        "at least 2 of label 'y', of which 1 variables",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_say_what_is_wrong(folder, case):
    options, code, message = WRONG[case]
    done = ksparse("regress", "houses.csv", "--target", "price", "-k", 3, *options, cwd=folder, expect=code)
    assert message in " ".join(done.stderr.split())
