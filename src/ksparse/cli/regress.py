"""`ksparse regress`: the best linear model of a column by at most k others."""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.cli.output import InputError, Output, Part, Report, around, exit_code, facts, warnings_of
from ksparse.cli.tables import at_most, choose, dropped, numbers, pairs, read_table, refuse_unnamed, texts
from ksparse.data.blocks import blocks
from ksparse.data.products import columns
from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.linear.factors import factors
from ksparse.linear.losses import LOSSES
from ksparse.linear.problem import LinearFit, LinearProblem, linear_problem
from ksparse.result import Status
from ksparse.util.checks import SMALLEST, check_size

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Data:
    """A target and the features beside it."""

    target: pd.Series
    features: Any  # whose `columns` are their names
    numbers: Callable[[], Any]  # the features as a matrix
    out: list[int]  # features that may not be used: of a table on disk the target is one
    rows: int

    @property
    def names(self) -> list[str]:
        """Of the features."""
        return list(self.features.columns)


def is_big(path: Path) -> bool:
    """Whether a file is read by blocks: a .npy array, or a folder of .npy or Parquet parts, unless its name says that it is a table."""
    return (
        path.suffix.lower() not in (".csv", ".tsv", ".npz", ".gz") if path.is_dir() else path.suffix.lower() == ".npy"
    )


def read_data(options: argparse.Namespace) -> Data:
    """The file that a command names, and the target in it or in a file of its own."""
    return _from_blocks(options) if is_big(options.file) else _from_table(options)


def _from_table(options: argparse.Namespace) -> Data:
    table = read_table(options.file)
    (name,) = choose(table, options.target, "--target")[:1] or [""]
    table = dropped(table, options.drop, options.file)
    if name not in table.columns:
        raise InputError(f"--drop: {name!r} is the target")
    features = refuse_unnamed(table.drop(columns=name))
    if features.columns.empty:
        raise InputError(f"{options.file} has no column beside the target")
    return Data(table[name], features, lambda: numbers(features), [], len(table))


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
    features = SimpleNamespace(columns=names)
    out = [names.index(name) for name in choose(features, options.drop, "--drop")]
    if options.target.lower().endswith(".npy"):
        y, name = _vector(Path(options.target), m), Path(options.target).stem
    else:
        (name,) = choose(features, options.target, "--target")[:1] or [""]
        place = names.index(name) if name in names else -1
        if place < 0:
            raise InputError("--target must name a column, or a .npy file with one number per row")
        if place in out:
            raise InputError(f"--drop: {name!r} is the target")
        y, out = np.asarray(design.columns(np.array([place])))[:, 0], [*out, place]
    if len(out) >= n:
        raise InputError(f"{options.file} has no column beside the target")
    return Data(pd.Series(y, name=name), features, lambda: design, out, m)


def _vector(path: Path, rows: int) -> np.ndarray[Any, Any]:
    """The target, in a file of its own."""
    try:
        y = np.load(path, allow_pickle=False)
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"--target: {path} cannot be read: {error}") from error
    if y.shape not in ((rows,), (rows, 1)) or y.dtype.kind not in "iubf":
        raise InputError(f"--target: {path} must hold one number per row, {rows}, got shape {y.shape} of {y.dtype}")
    return np.ravel(y)


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
    parser.add_argument(
        "--labels", type=Path, metavar="FILE", help="a table of two columns: feature, label, for --group-limits"
    )
    parser.add_argument(
        "--group-limits",
        default="",
        metavar="LIMITS",
        help="how many of a label of --labels: LABEL=LEAST..MOST,LABEL=..MOST,LABEL=LEAST..",
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
        rules["group_limits"] = (
            [labels.get(name) for name in names],
            _limits(options.group_limits, set(labels.values())),
        )
    if options.requires:
        rules["requires"] = {
            names.index(child): [names.index(p) for p in of]
            for child, of in _requires(options.requires, features).items()
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
        rows = [
            (child, [parent]) for child, parent in zip(texts(table.iloc[:, 0]), texts(table.iloc[:, 1]), strict=True)
        ]
    else:
        parts = next(csv.reader([given], skipinitialspace=True))
        rows = [
            (part.rpartition("=")[0].strip(), [name.strip() for name in part.rpartition("=")[2].split("+")])
            for part in parts
        ]
    for child, parents in rows:
        if not child:
            raise InputError(
                f"--requires must be CHILD=PARENT+PARENT,CHILD=PARENT, or a file that is there, got {given!r}"
            )
        for name in (child, *parents):
            if name not in features.columns:
                choose(features, f'"{name}"', "--requires")
        found.setdefault(child, []).extend(parents)
    return found


HELP = "the best linear model of one column by at most k others"
POWERS = {
    "poisson": 1.0,
    "negative_binomial": 1.0,
    "tweedie": 1.5,
    "gamma": 2.0,
}  # of the deviance that is explained, log link
EXAMPLES = (
    "ksparse regress houses.csv --target price -k 10 --nonnegative rooms,area --out coef.csv",
    "ksparse regress patients.csv --target ill -k 5 --loss logistic --report page.html",
    "ksparse regress houses.csv --target price -k 6 --groups city,style --requires rooms:area=rooms+area",
    "cat houses.csv | ksparse regress - --target price -k 10 --gap 1% --out - > coef.csv",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="table with a header: CSV, Parquet or NPZ; or a .npy array, or a folder of .npy or Parquet parts, read by blocks",
    )
    parser.add_argument(
        "--target",
        required=True,
        metavar="COLUMN",
        help="the column to explain; for data read by blocks its number or name, or a .npy file with one number per row",
    )
    parser.add_argument("-k", type=int, required=True, help="how many features at most; 0: the intercept alone")
    parser.add_argument(
        "--loss",
        choices=[name for name in LOSSES if name != "multinomial"],  # its classes share features: SparseClassifier
        default="squared",
        help="logistic: two classes; poisson, negative_binomial: counts; gamma, tweedie: amounts; quantile: the median (default: squared)",
    )
    signs = parser.add_mutually_exclusive_group()
    signs.add_argument(
        "--nonnegative", default="", metavar="COL,COL", help="features whose coefficient may not be negative"
    )
    signs.add_argument("--all-nonnegative", action="store_true", help="no coefficient may be negative")
    parser.add_argument(
        "--lower", default="", metavar="BOUND", help="least coefficient: a number for all, or COL=NUMBER,COL=NUMBER"
    )
    parser.add_argument("--upper", default="", metavar="BOUND", help="greatest coefficient, in the same way")
    parser.add_argument("--forced-in", default="", metavar="COL,COL", help="features that keep a seat")
    add_rules(parser)
    parser.add_argument("--drop", default="", metavar="COL,COL", help="columns to leave out")
    told = "add ½·RIDGE·‖z‖² per row, z the coefficients of the standardised columns (default: 0); --gap needs it with most losses"
    parser.add_argument("--ridge", type=_nonnegative, default=0.0, metavar="RIDGE", help=told)
    parser.add_argument("--no-intercept", action="store_true", help="a model through the origin")
    parser.add_argument("--out", type=Path, metavar="FILE.csv", help="write the coefficients here")


def _nonnegative(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number >= 0, got {text!r}") from None
    if not 0 <= value < np.inf:
        raise argparse.ArgumentTypeError(f"must be >= 0 and finite, got {text}")
    return value


def run(options: argparse.Namespace, output: Output) -> int:
    """Read, solve, show, write."""
    output.claim(options.out)
    output.claim(options.report)
    data = read_data(options)
    rules = read_rules(options, data.features)
    usable = [name for place, name in enumerate(rules.get("groups", data.names)) if place not in data.out]
    k = at_most(options.k, len(set(usable)), "group" if "groups" in rules else "feature", output.note, least=0)
    if data.rows < k + 2:
        raise InputError(
            f"{options.file} has {data.rows} rows, too few to fit {k} coefficients: at least {k + 2} are needed"
        )
    lower, upper = _bounds(options, data.features)
    y, classes = _target(data.target, options.loss)
    forced = [data.names.index(name) for name in choose(data.features, options.forced_in, "--forced-in")]
    X = data.numbers()
    problem = linear_problem(
        X, y, loss=options.loss, lower=lower, upper=upper, fit_intercept=not options.no_intercept, alpha=options.ridge, forced_in=forced,
        forced_out=data.out,
    )  # fmt: skip
    fit = problem.minimize(
        k, max_time=options.limit, effort=options.effort, random_state=options.seed, gap=options.gap, **rules
    )
    if fit.result.status is Status.UNBOUNDED:
        raise UnboundedError("the loss has no minimum: bound the coefficients with --lower and --upper")
    seen = columns(X, np.flatnonzero(fit.coef))
    chosen = _by_weight(fit, seen)
    if options.report is not None:
        output.write(options.report, _report(fit, problem, X, seen, chosen, data, k, options, rules).html())
    _tell(fit, seen, chosen, y, data, classes, options, output)
    return exit_code(fit.result.status)


def _bounds(options: argparse.Namespace, features: Any) -> tuple[Any, Any]:
    names = list(features.columns)
    low = _bound(options.lower, "--lower", -np.inf, features)
    high = _bound(options.upper, "--upper", np.inf, features)
    signed = names if options.all_nonnegative else choose(features, options.nonnegative, "--nonnegative")
    for name in signed:
        low[names.index(name)] = max(low[names.index(name)], 0.0)
    for name, least, most in zip(names, low, high, strict=True):
        if least > most or least == np.inf or most == -np.inf:
            raise InputError(f"the bounds of {name!r} leave nothing: at least {least:g} and at most {most:g}")
    bound = [name for name, least, most in zip(names, low, high, strict=True) if least > 0 or most < 0]
    if len(bound) > options.k:
        shown = ", ".join(bound[:5]) + (", ..." if len(bound) > 5 else "")
        raise InfeasibleError(
            f"the bounds keep {len(bound)} coefficients away from 0 ({shown}), more than k = {options.k}"
        )
    return low, high


def _bound(text: str, option: str, default: float, features: Any) -> Any:
    """One number for all, or COL=NUMBER,COL=NUMBER."""
    names = list(features.columns)
    bound = np.full(len(names), default)
    for part in next(csv.reader([text], skipinitialspace=True), []):
        name, equals, number = part.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            raise InputError(f"{option} must be a number, or COL=NUMBER,COL=NUMBER, got {part!r}") from None
        if np.isnan(value):
            raise InputError(f"{option} must not be nan, got {part!r}")
        if equals:
            bound[[names.index(column) for column in choose(features, name, option)]] = value
        else:
            bound[:] = value
    return bound


def _target(column: Any, loss: str) -> tuple[Any, list[str]]:
    """The column to explain; for logistic as 0 and 1, with the names of the two classes."""
    advice = "a row without a target cannot be used"
    if loss != "logistic":
        y = numbers(column.to_frame(), advice)[:, 0]
        check_size(y, f"column {column.name!r}", least=SMALLEST)
        if loss in POWERS and (y.min() < 0 or (loss == "gamma" and y.min() == 0)):
            what = "amounts above 0" if loss == "gamma" else "amounts" if loss == "tweedie" else "counts"
            raise InputError(
                f"column {column.name!r} must hold {what} for --loss {loss}: row {int(y.argmin()) + 1} holds {y.min():g}"
            )
        if np.ptp(y) == 0:
            raise InputError(f"column {column.name!r} is {y[0]:g} in every row: there is nothing to explain")
        return y, []
    missing = column.isna().to_numpy()
    if missing.any():
        raise InputError(
            f"column {column.name!r} has {missing.sum()} missing values, the first in row {int(missing.argmax()) + 1}: {advice}"
        )
    classes = sorted(column.unique())
    if len(classes) != 2:
        raise InputError(f"column {column.name!r} must hold two classes for --loss logistic, it holds {len(classes)}")
    return (column == classes[1]).to_numpy().astype(float), [str(label) for label in classes]


def _quality(score: Any, y: Any, loss: str) -> tuple[str, float]:
    """How well the model explains the rows it was fitted to, in the measure people know."""
    from sklearn.metrics import d2_pinball_score, d2_tweedie_score, r2_score

    if loss == "logistic":
        return "accuracy", float(np.mean((score > 0) == (y > 0)))
    if loss in POWERS:
        return "deviance_explained", float(
            d2_tweedie_score(y, np.exp(np.clip(score, -700.0, 700.0)), power=POWERS[loss])
        )
    if loss == "quantile":
        return "deviance_explained", float(d2_pinball_score(y, score, alpha=0.5))
    return "r2", float(r2_score(y, score))


def _by_weight(fit: LinearFit, seen: Any) -> list[int]:
    """The chosen features, by what a deviation of each moves; `seen` are their columns."""
    support = np.flatnonzero(fit.coef)
    return [int(j) for j in support[np.argsort(-np.abs(fit.coef[support]) * seen.std(axis=0), kind="stable")]]


def _report(
    fit: LinearFit, problem: LinearProblem, X: Any, seen: Any, chosen: list[int], data: Data, k: int, options: argparse.Namespace,
    rules: dict[str, Any],
) -> Report:  # fmt: skip
    """Of data on disk only the chosen columns are looked at for warnings."""
    names, support = data.names, np.flatnonzero(fit.coef)
    intercept = {} if options.no_intercept else {"intercept": f"{fit.intercept:.8g}"}
    features = len(names) - len(data.out)
    title = f"{options.target}: {len(chosen)} of {features} features"
    values = {names[j]: float(fit.coef[j]) for j in chosen}
    told = warnings_of(X, names) if isinstance(X, np.ndarray) else warnings_of(seen, [names[j] for j in support])

    def solve(near: int) -> float:
        options_of = {"max_time": options.limit, "random_state": options.seed, **rules}
        return fit.result.fun if near == k else problem.minimize(near, **options_of).result.fun

    return Report(
        title, options.command_line, [Part("The model", fit.result, values, "coefficient", intercept)],
        around(k, len(set(rules["groups"])) if "groups" in rules else features, solve), k, told,
    )  # fmt: skip


def _tell(
    fit: LinearFit,
    seen: Any,
    chosen: list[int],
    y: Any,
    data: Data,
    classes: list[str],
    options: argparse.Namespace,
    output: Output,
) -> None:
    """Write the file, then print: trouble on the screen does not lose the answer. `seen` are the columns of the chosen features."""
    names, features = data.names, len(data.names) - len(data.out)
    support = np.flatnonzero(fit.coef)
    score, deviation = seen @ fit.coef[support] + fit.intercept, np.zeros(fit.coef.size)
    deviation[support] = seen.std(axis=0)
    measure, value = _quality(score, y, options.loss)
    coefficients = {names[j]: float(fit.coef[j]) for j in chosen}
    intercept = {} if options.no_intercept else {"(intercept)": fit.intercept}
    if options.out is not None:
        output.write_csv(options.out, ("feature", "coefficient"), list((coefficients | intercept).items()))
    what = f"log-odds of {options.target} = {classes[1]}" if classes else options.target
    rows = [(names[j], f"{fit.coef[j]:.6g}", f"{fit.coef[j] * deviation[j]:.4g}") for j in chosen]
    rows += [(name, f"{number:.6g}", "") for name, number in intercept.items()]
    output.table(
        f"{what}: {len(chosen)} of {features} features, {options.loss} loss",
        ("feature", "coefficient", "per deviation"),
        rows,
    )
    separable = bool(classes) and bool(((2 * y - 1) * score > 0).all())
    shown = {"r2": "R²", "deviance_explained": "deviance explained"}.get(measure, measure)
    passes = f", {fit.result.passes} passes over the data" if fit.result.passes else ""
    output.say(f"{shown} {value:.4f} on {len(y)} rows; {fit.result.message}; {fit.result.elapsed:.2f} s{passes}")
    if separable:
        output.say(
            "note: these features separate the classes; the coefficients have no finite optimum, only their direction counts"
        )
    output.written(options.out, options.report)
    output.json(
        {
            "command": "regress",
            "target": options.target,
            "k": options.k,
            "loss": options.loss,
            "rows": len(y),
            "classes": classes or None,
        }
        | facts(fit.result)
        | {
            "nonzeros": len(chosen),
            "coefficients": coefficients,
            "intercept": intercept.get("(intercept)"),
            measure: value,
        }
        | ({"separable": separable} if classes else {})
    )
