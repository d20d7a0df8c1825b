"""`ksparse regress`: the best linear model of a column by at most k others."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.cli.input_tables import (
    at_most,
    choose,
    dropped,
    nonnegative,
    numbers,
    pairs,
    read_table,
    refuse_missing,
    refuse_unnamed,
    split,
    texts,
)
from ksparse.cli.output import InputError, Output, Part, exit_code, facts, objectives_by_k, report, warnings_of
from ksparse.data.blocks import blocks
from ksparse.data.products import columns
from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.linear.factors import factors
from ksparse.linear.loss_names import LOSSES
from ksparse.linear.problem import linear_problem
from ksparse.result import Status
from ksparse.util.checks import SMALLEST, check_size

if TYPE_CHECKING:
    import pandas as pd

HELP = "the best linear model of one column by at most k others"
EXAMPLES = (
    "ksparse regress houses.csv --target price -k 10 --nonnegative rooms,area --out coef.csv",
    "ksparse regress patients.csv --target ill -k 5 --loss logistic --report page.html",
    "ksparse regress houses.csv --target price -k 6 --groups city,style --requires rooms:area=rooms+area",
    "cat houses.csv | ksparse regress - --target price -k 10 --gap 1% --out - > coef.csv",
)
POWERS = {"poisson": 1.0, "negative_binomial": 1.0, "tweedie": 1.5, "gamma": 2.0}  # of the explained deviance
LIMITS = re.compile(r"(.+)=(\d*)\.\.(\d*)")  # LABEL=MIN..MAX


@dataclass(frozen=True)
class Data:
    """A target and the features."""

    target: pd.Series
    names: list[str]  # of the features
    matrix: Callable[[], Any]  # returns the features
    out: list[int]  # features that may not be used; the target is one in data read by blocks
    rows: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add = parser.add_argument
    text = "table with a header: CSV, Parquet, NPZ; or a .npy array or folder of .npy or Parquet parts, read by blocks"
    add("file", type=Path, metavar="FILE", help=text)
    text = "target column: its name, or for .npy data its number or a .npy file with one number per row"
    add("--target", required=True, metavar="COLUMN", help=text)
    add("-k", type=int, required=True, help="maximum number of features; 0: the intercept alone")
    text = (
        "logistic: binary target; poisson, negative_binomial: counts; gamma, tweedie: positive or nonnegative amounts; "
        "huber: robust; quantile: median (default: squared)"
    )
    names = [name for name in LOSSES if name != "multinomial"]  # SparseClassifier has several classes
    add("--loss", choices=names, default="squared", help=text)
    signs = parser.add_mutually_exclusive_group()
    signs.add_argument("--nonnegative", default="", metavar="COL,COL", help="features with nonnegative coefficients")
    signs.add_argument("--all-nonnegative", action="store_true", help="all coefficients are nonnegative")
    text = "lower bound of the coefficients: one number, or COL=NUMBER,COL=NUMBER"
    add("--lower", default="", metavar="BOUND", help=text)
    add("--upper", default="", metavar="BOUND", help="upper bound, in the same form")
    add("--forced-in", default="", metavar="COL,COL", help="features that are always in the model")
    text = (
        "groups selected as a whole; k counts groups: a table of two columns, feature and group, or factors whose "
        "dummy columns are called NAME_..."
    )
    add("--groups", default="", metavar="FILE|NAME,NAME", help=text)
    add("--labels", type=Path, metavar="FILE", help="table of two columns, feature and label, for --group-limits")
    text = "minimum and maximum number of features per label: LABEL=MIN..MAX,LABEL=..MAX,LABEL=MIN.."
    add("--group-limits", default="", metavar="LIMITS", help=text)
    text = "select CHILD only with its PARENTs: CHILD=PARENT+PARENT,CHILD=PARENT, or a table of columns child, parent"
    add("--requires", default="", metavar="FILE|RULES", help=text)
    add("--drop", default="", metavar="COL,COL", help="columns to leave out")
    text = (
        "add ½·RIDGE·‖z‖² per row, z the coefficients of the standardised columns (default: 0); --gap needs it with "
        "most losses"
    )
    add("--ridge", type=nonnegative, default=0.0, metavar="RIDGE", help=text)
    add("--no-intercept", action="store_true", help="a model through the origin")
    add("--out", type=Path, metavar="FILE.csv", help="write the coefficients here")


def run(options: argparse.Namespace, output: Output) -> int:
    """Fit the model; write and print it."""
    output.check_destinations(options.out, options.report)
    data = _from_blocks(options) if _is_big(options.file) else _from_table(options)
    names, rules = data.names, _rules(options, data.names)
    usable = {name for place, name in enumerate(rules.get("groups", names)) if place not in data.out}
    k = at_most(options.k, len(usable), "group" if "groups" in rules else "feature", output.note, least=0)
    if data.rows < k + 2:
        needed = f"too few to fit {k} coefficients: at least {k + 2} are needed"
        raise InputError(f"{options.file} has {data.rows} rows, {needed}")
    lower, upper = _bounds(options, names)
    y, classes = _target(data.target, options.loss)
    forced = [names.index(name) for name in choose(names, options.forced_in, "--forced-in")]
    X = data.matrix()
    problem = linear_problem(
        X, y, loss=options.loss, lower=lower, upper=upper, fit_intercept=not options.no_intercept, alpha=options.ridge,
        forced_in=forced, forced_out=data.out,
    )  # fmt: skip
    how: dict[str, Any] = {"max_time": options.limit, "random_state": options.seed, **rules}
    fit = problem.minimize(k, effort=options.effort, gap=options.gap, **how)
    result = fit.result
    if result.status is Status.UNBOUNDED:
        raise UnboundedError("the loss has no minimum: bound the coefficients with --lower and --upper")
    support = np.flatnonzero(fit.coef)
    selected, coef = columns(X, support), fit.coef[support]
    effect = coef * selected.std(axis=0)  # of one standard deviation
    order = np.argsort(-np.abs(effect), kind="stable")
    coefficients = {names[support[i]]: float(coef[i]) for i in order}
    intercept = {} if options.no_intercept else {"(intercept)": fit.intercept}
    count = f"{len(coefficients)} of {len(names) - len(data.out)} features"
    if options.report is not None:

        def solve(near: int) -> float:
            return result.fun if near == k else problem.minimize(near, **how).result.fun

        about = {name.strip("()"): f"{value:.8g}" for name, value in intercept.items()}
        most = len(set(rules["groups"])) if "groups" in rules else len(names) - len(data.out)
        # of data on disk only the selected columns are checked
        in_memory = isinstance(X, np.ndarray)
        warnings = warnings_of(X, names) if in_memory else warnings_of(selected, [names[j] for j in support])
        parts = [Part("The model", result, coefficients, "coefficient", about)]
        title, near = f"{options.target}: {count}", objectives_by_k(k, most, solve)
        output.write(options.report, report(title, options.command_line, parts, near, k, warnings))
    if options.out is not None:  # before printing, which may fail
        output.write_csv(options.out, ("feature", "coefficient"), list((coefficients | intercept).items()))
    score = selected @ coef + fit.intercept
    measure, value = _quality(score, y, options.loss)
    what = f"log-odds of {options.target} = {classes[1]}" if classes else options.target
    rows = [(names[support[i]], f"{coef[i]:.6g}", f"{effect[i]:.4g}") for i in order]
    rows += [(name, f"{number:.6g}", "") for name, number in intercept.items()]
    output.table(f"{what}: {count}, {options.loss} loss", ("feature", "coefficient", "standardised"), rows)
    label = {"r2": "R²", "deviance_explained": "deviance explained"}.get(measure, measure)
    output.print(f"{label} {value:.4f} on {len(y)} rows")
    output.print(result.message)
    output.print(f"{result.elapsed:.2f} s" + (f", {result.passes} passes over the data" if result.passes else ""))
    separable = bool(classes) and bool(((2 * y - 1) * score > 0).all())
    if separable:
        output.print("note: the classes are separable: coefficients diverge and only their direction is meaningful")
    output.written(options.out, options.report)
    described = {"target": options.target, "k": options.k, "loss": options.loss, "rows": len(y)}
    found = {"nonzeros": len(coefficients), "coefficients": coefficients, "intercept": intercept.get("(intercept)")}
    found |= {measure: value} | ({"separable": separable} if classes else {})
    output.json({"command": "regress", **described, "classes": classes or None, **facts(result), **found})
    return exit_code(result.status)


def _is_big(path: Path) -> bool:
    """Return whether a file is read by blocks: a .npy array, or a folder of parts without the suffix of a table."""
    suffix = path.suffix.lower()
    return suffix not in (".csv", ".tsv", ".npz", ".gz") if path.is_dir() else suffix == ".npy"


def _from_table(options: argparse.Namespace) -> Data:
    table = read_table(options.file)
    (name,) = choose(list(table.columns), options.target, "--target")[:1] or [""]
    table = dropped(table, options.drop, options.file)
    if name not in table.columns:
        raise InputError(f"--drop: {name!r} is the target")
    features = refuse_unnamed(table.drop(columns=name))
    if features.columns.empty:
        raise InputError(f"{options.file} has no column except the target")
    return Data(table[name], list(features.columns), lambda: numbers(features), [], len(table))


def _from_blocks(options: argparse.Namespace) -> Data:
    try:
        import pandas as pd
    except ImportError as error:
        raise InputError("reading tables needs pandas: pip install 'ksparse[cli]'") from error
    if not options.file.exists():
        raise InputError(f"{options.file} does not exist")
    try:
        design = blocks(options.file)
    except ImportError as error:
        raise InputError("reading Parquet needs pyarrow: pip install 'ksparse[cli]'") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{options.file}: {error}") from error
    m, n = design.shape
    names = getattr(design.source, "names", None) or [str(j) for j in range(n)]
    out = [names.index(name) for name in choose(names, options.drop, "--drop")]
    if options.target.lower().endswith(".npy"):
        y, name = _vector(Path(options.target), m), Path(options.target).stem
    else:
        (name,) = choose(names, options.target, "--target")[:1] or [""]
        if name not in names:
            raise InputError("--target must name a column, or a .npy file with one number per row")
        place = names.index(name)
        if place in out:
            raise InputError(f"--drop: {name!r} is the target")
        y, out = np.asarray(design.columns(np.array([place])))[:, 0], [*out, place]
    if len(out) >= n:
        raise InputError(f"{options.file} has no column except the target")
    return Data(pd.Series(y, name=name), names, lambda: design, out, m)


def _vector(path: Path, rows: int) -> np.ndarray[Any, Any]:
    """Return a target from its own file."""
    try:
        y = np.load(path, allow_pickle=False)
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"--target: {path} cannot be read: {error}") from error
    if y.shape not in ((rows,), (rows, 1)) or y.dtype.kind not in "iubf":
        raise InputError(f"--target: {path} must hold one number per row, {rows}, got shape {y.shape} of {y.dtype}")
    return np.ravel(y)


def _rules(options: argparse.Namespace, names: list[str]) -> dict[str, Any]:
    """Return the support constraints as options of `minimize`, in feature indices."""
    rules = dict[str, Any]()
    if options.groups:
        rules["groups"] = _groups(options.groups, names)
    if options.group_limits or options.labels is not None:
        if not options.group_limits or options.labels is None:
            kinds = "LABEL=MIN..MAX, and a table of two columns, feature and label"
            raise InputError(f"--group-limits and --labels must be given together: {kinds}")
        labels = _labels(options.labels, "label", names)
        rules["group_limits"] = list(map(labels.get, names)), _limits(options.group_limits, set(labels.values()))
    if options.requires:
        rules["requires"] = _requires(options.requires, names)
    return rules


def _groups(given: str, names: list[str]) -> list[Any]:
    """Return a label for each feature; features without a group are their own group."""
    if Path(given).is_file():
        group_of = _labels(Path(given), "group", names)
        return [group_of.get(name, (name,)) for name in names]
    try:
        return list(factors(*(name.strip() for name in split(given) if name.strip()))(names))
    except ValueError as error:
        raise InputError(f"--groups: there is no file {given}, and as names of factors: {error}") from error


def _labels(path: Path, what: str, names: list[str]) -> dict[str, str]:
    found = pairs(path, "feature", what, names)
    for feature, label in found.items():
        if feature not in names:
            raise InputError(f"{path} names {feature!r}, which is not a feature")
        if not label:
            raise InputError(f"{path} has no {what} for {feature!r}")
    return found


def _limits(text: str, known: set[str]) -> dict[str, tuple[int, int | None]]:
    found = {}
    for part in split(text):
        match = LIMITS.fullmatch(part.strip())
        if match is None or not (match[2] or match[3]):
            raise InputError(f"--group-limits must be LABEL=MIN..MAX,LABEL=..MAX, got {part!r}")
        if match[1] not in known:
            raise InputError(f"--group-limits refers to label {match[1]!r}, which is not in --labels")
        found[match[1]] = int(match[2] or 0), int(match[3]) if match[3] else None
    return found


def _requires(given: str, names: list[str]) -> dict[int, list[int]]:
    """Return the parents of each child."""
    if Path(given).is_file():
        table = read_table(Path(given), as_text=True)
        if len(table.columns) < 2:
            raise InputError(f"{given} must have two columns, child and parent, got {len(table.columns)}")
        children, parents = texts(table.iloc[:, 0]), texts(table.iloc[:, 1])
        rows = [(child, [parent]) for child, parent in zip(children, parents, strict=True)]
    else:
        parts = (part.rpartition("=") for part in split(given))
        rows = [(child.strip(), [name.strip() for name in of.split("+")]) for child, _, of in parts]
    found: dict[int, list[int]] = {}
    for child, of in rows:
        if not child:
            kinds = "CHILD=PARENT+PARENT,CHILD=PARENT, or an existing file"
            raise InputError(f"--requires must be {kinds}, got {given!r}")
        for name in (child, *of):
            if name not in names:
                choose(names, f'"{name}"', "--requires")
        found.setdefault(names.index(child), []).extend(map(names.index, of))
    return found


def _bounds(options: argparse.Namespace, names: list[str]) -> tuple[Any, Any]:
    low = _bound(options.lower, "--lower", -np.inf, names)
    high = _bound(options.upper, "--upper", np.inf, names)
    signed = names if options.all_nonnegative else choose(names, options.nonnegative, "--nonnegative")
    for name in signed:
        low[names.index(name)] = max(low[names.index(name)], 0.0)
    for name, least, most in zip(names, low, high, strict=True):
        if least > most or least == np.inf or most == -np.inf:
            raise InputError(f"bounds on {name} are inconsistent: lower {least:g}, upper {most:g}")
    off = [name for name, least, most in zip(names, low, high, strict=True) if least > 0 or most < 0]
    if len(off) > options.k:
        few = ", ".join(off[:5]) + (", ..." if len(off) > 5 else "")
        raise InfeasibleError(f"the bounds keep {len(off)} coefficients away from 0 ({few}), more than k = {options.k}")
    return low, high


def _bound(text: str, option: str, default: float, names: list[str]) -> Any:
    bound = np.full(len(names), default)
    for part in split(text):
        name, equals, number = part.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            raise InputError(f"{option} must be a number, or COL=NUMBER,COL=NUMBER, got {part!r}") from None
        if np.isnan(value):
            raise InputError(f"{option} must not be nan, got {part!r}")
        bound[[names.index(column) for column in choose(names, name, option)] if equals else slice(None)] = value
    return bound


def _target(column: Any, loss: str) -> tuple[Any, list[str]]:
    """Return the target, for the logistic loss as 0 and 1, and the names of the two classes."""
    advice = "a row without a target cannot be used"
    if loss == "logistic":
        refuse_missing(column, advice)
        classes = sorted(column.unique())
        if len(classes) != 2:
            held = f"must hold two classes for --loss logistic, it holds {len(classes)}"
            raise InputError(f"column {column.name!r} {held}")
        return (column == classes[1]).to_numpy().astype(float), [str(label) for label in classes]
    y = numbers(column.to_frame(), advice)[:, 0]
    check_size(y, f"column {column.name!r}", least=SMALLEST)
    if loss in POWERS and (y.min() < 0 or (loss == "gamma" and y.min() == 0)):
        what = {"gamma": "amounts above 0", "tweedie": "amounts"}.get(loss, "counts")
        held = f"row {int(y.argmin()) + 1} holds {y.min():g}"
        raise InputError(f"column {column.name!r} must hold {what} for --loss {loss}: {held}")
    if np.ptp(y) == 0:
        raise InputError(f"the target column {column.name!r} is constant ({y[0]:g})")
    return y, []


def _quality(score: Any, y: Any, loss: str) -> tuple[str, float]:
    """Return the name and value of the usual measure of fit."""
    from sklearn.metrics import d2_pinball_score, d2_tweedie_score, r2_score

    if loss == "logistic":
        return "accuracy", float(np.mean((score > 0) == (y > 0)))
    if loss in POWERS:
        mean = np.exp(np.clip(score, -700.0, 700.0))
        return "deviance_explained", float(d2_tweedie_score(y, mean, power=POWERS[loss]))
    if loss == "quantile":
        return "deviance_explained", float(d2_pinball_score(y, score, alpha=0.5))
    return "r2", float(r2_score(y, score))
