"""Rules about which features a model may have together, on the command line: groups, limits per label, parents."""

from __future__ import annotations

import argparse
import csv
import re
from pathlib import Path
from typing import Any

from ksparse.cli.exits import InputError
from ksparse.cli.tables import choose, pairs, read_table, texts
from ksparse.estimators.factors import factors

LIMIT = re.compile(r"(.+)=(\d*)\.\.(\d*)")


def add_rules(parser: argparse.ArgumentParser) -> None:
    """The options of the rules."""
    parser.add_argument(
        "--groups",
        default="",
        metavar="FILE|NAME,NAME",
        help="features that enter together, k counting groups: a table of two columns, feature and group, or factors whose dummies are "
        "called NAME_...",
    )
    parser.add_argument("--labels", type=Path, metavar="FILE", help="a table of two columns: feature, label, for --group-limits")
    parser.add_argument(
        "--group-limits", default="", metavar="LIMITS", help="how many of a label of --labels: LABEL=LEAST..MOST,LABEL=..MOST,LABEL=LEAST.."
    )
    parser.add_argument(
        "--requires",
        default="",
        metavar="FILE|RULES",
        help="features only with others: CHILD=PARENT+PARENT,CHILD=PARENT, or a table of two columns, child and parent",
    )


def read_rules(options: argparse.Namespace, features: Any) -> dict[str, Any]:
    """Keyword arguments of `minimize` from the options, in indices of the features."""
    rules, names = dict[str, Any](), list(features.columns)
    if options.groups:
        rules["groups"] = _groups(options.groups, names)
    if options.group_limits or options.labels is not None:
        if not options.group_limits or options.labels is None:
            raise InputError(
                "--group-limits and --labels need each other: a table of two columns, feature and label, and LABEL=LEAST..MOST"
            )
        labels = _labels(options.labels, "label", names)
        rules["group_limits"] = [labels.get(name) for name in names], _limits(options.group_limits, set(labels.values()))
    if options.requires:
        rules["requires"] = {
            names.index(child): [names.index(p) for p in of] for child, of in _requires(options.requires, features).items()
        }
    return rules


def _groups(given: str, names: list[str]) -> list[Any]:
    """A label for each feature; those without are groups of their own."""
    if Path(given).is_file():
        of = _labels(Path(given), "group", names)
        return [of.get(name, (name,)) for name in names]
    try:
        return list(factors(*(name.strip() for name in next(csv.reader([given])) if name.strip()))(names))
    except ValueError as error:
        raise InputError(f"--groups: there is no file {given}, and as names of factors: {error}") from error


def _labels(path: Path, what: str, names: list[str]) -> dict[str, str]:
    found = pairs(path, "feature", what, names)
    strange = [feature for feature in found if feature not in names]
    if strange:
        raise InputError(f"{path} names {strange[0]!r}, which is not a feature")
    lacking = [feature for feature, label in found.items() if not label]
    if lacking:
        raise InputError(f"{path} has no {what} for {lacking[0]!r}")
    return found


def _limits(text: str, known: set[str]) -> dict[str, tuple[int, int | None]]:
    """LABEL=LEAST..MOST, either of them left out where there is none."""
    found = {}
    for part in next(csv.reader([text], skipinitialspace=True)):
        match = LIMIT.fullmatch(part.strip())
        if match is None or not (match[2] or match[3]):
            raise InputError(f"--group-limits must be LABEL=LEAST..MOST,LABEL=..MOST, got {part!r}")
        if match[1] not in known:
            raise InputError(f"--group-limits speaks of label {match[1]!r}, which no feature of --labels has")
        found[match[1]] = int(match[2] or 0), int(match[3]) if match[3] else None
    return found


def _requires(given: str, features: Any) -> dict[str, list[str]]:
    """The parents of each child, by their names."""
    found: dict[str, list[str]] = {}
    if Path(given).is_file():
        table = read_table(Path(given), as_text=True)
        if len(table.columns) < 2:
            raise InputError(f"{given} must have two columns, child and parent, got {len(table.columns)}")
        rows = [(child, [parent]) for child, parent in zip(texts(table.iloc[:, 0]), texts(table.iloc[:, 1]), strict=True)]
    else:
        parts = next(csv.reader([given], skipinitialspace=True))
        rows = [(part.rpartition("=")[0].strip(), [name.strip() for name in part.rpartition("=")[2].split("+")]) for part in parts]
    for child, parents in rows:
        if not child:
            raise InputError(f"--requires must be CHILD=PARENT+PARENT,CHILD=PARENT, or a file that is there, got {given!r}")
        for name in (child, *parents):
            if name not in features.columns:
                choose(features, f'"{name}"', "--requires")
        found.setdefault(child, []).extend(parents)
    return found
