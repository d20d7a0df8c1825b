"""Report of a run: a table of verdicts, coverage, the slowest cases, and a snippet for each kind of failure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from .judge import COUNTED, FORBIDDEN, TOLD
from .problems import build

RATE = 1e-3  # of the problems with n ≤ 8 may be suboptimal
EACH = 2  # snippets per kind of failure, the smallest problems first


def group_of(case, verdict):
    """Return what distinguishes failures: the verdict and its place."""
    if verdict.name in ("crash", "warning", "fuzzer"):
        lines = re.findall(r"(\w+\.py)\W+(?:line )?(\d+)", verdict.text)
        kind = verdict.text.split(":")[0]
        return verdict.name, f"{kind} {' '.join(lines[-1]) if lines else verdict.text[:60]}"
    scaled = "" if case.scale == (1.0, 1.0) else " scaled"
    how = case.method if case.method != "auto" else case.call
    return (
        verdict.name,
        f"{case.loss.split()[0]} on {case.set.split()[0]}{scaled}{' float32' if case.single else ''} by {how}",
    )


def failures(outcomes):
    """Return {(verdict, place): [(number, outcome, verdict)]}, small problems first."""
    groups = defaultdict(list)
    for number, outcome in outcomes.items():
        for verdict in outcome.verdicts:
            groups[group_of(outcome.case, verdict)].append((number, outcome, verdict))
    for rows in groups.values():
        rows.sort(key=lambda row: (len(row[1].case.options), row[1].case.n, row[1].case.m))
    return dict(sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]))))


def failed(outcomes):
    """Whether a run has a forbidden verdict, or too many verdicts that are only counted."""
    names = Counter(verdict.name for outcome in outcomes.values() for verdict in outcome.verdicts)
    small = sum(outcome.case.enumerable for outcome in outcomes.values())
    # where enumeration was switched off, to test the claims of the search, the optimum may be missed
    missed = sum(
        any(v.name in COUNTED for v in o.verdicts) and o.case.enumerable and not o.case.search
        for o in outcomes.values()
    )
    return any(names[name] for name in (*FORBIDDEN, "fuzzer")) or missed > RATE * max(small, 1)


def summary(outcomes, seconds):
    """Return the tables."""
    names = Counter(verdict.name for outcome in outcomes.values() for verdict in outcome.verdicts)
    ends = Counter(outcome.ended for outcome in outcomes.values())
    small = sum(outcome.case.enumerable for outcome in outcomes.values())
    lines = [f"{len(outcomes)} problems, {small} with n <= 8, {seconds:.0f} s", "", "verdicts:"]
    lines += [
        f"  {name:<20} {names[name]:>6}"
        for name in (*FORBIDDEN, *COUNTED, *TOLD, "fuzzer")
        if names[name] or name in FORBIDDEN
    ]
    lines += ["", "ended:", *(f"  {name:<20} {count:>6}" for name, count in ends.most_common())]
    lines += ["", "coverage, loss by set:", *_coverage(outcomes), "", "slowest:"]
    slowest = sorted(outcomes.items(), key=lambda item: -item[1].seconds)[:8]
    lines += [f"  {outcome.seconds:7.2f} s  case {number}: {_words(outcome.case)}" for number, outcome in slowest]
    return "\n".join(lines)


def _coverage(outcomes):
    counts = Counter((o.case.loss.split()[0], o.case.set.split()[0]) for o in outcomes.values())
    losses, sets = (sorted({key[side] for key in counts}) for side in (0, 1))
    yield " " * 32 + " ".join(f"{name[:7]:>7}" for name in sets)
    for loss in losses:
        yield f"  {loss:<30}" + " ".join(f"{counts[loss, name]:>7}" for name in sets)


def _words(case):
    more = [
        case.layout,
        case.regime,
        *([f"scale {case.scale}"] if case.scale != (1.0, 1.0) else []),
        case.call,
        case.method,
        *case.options,
    ]
    more += ["search"] * case.search
    return f"{case.loss} on {case.set}, {case.m} x {case.n}, k = {case.k}, {', '.join(more)}"


def snippet(number, seed, outcome, verdict):
    """Return the problem as code to paste, with the verdicts."""
    text = verdict.text.strip().replace("\n", "\n# ")
    head = f"# case {number}, seed {seed}: {_words(outcome.case)}\n# {outcome.case}\n# {verdict.name}: {text}"
    return f"{head}\n{build(outcome.case).source}\nprint(result)"


def details(outcomes, seed, each=EACH):
    """Yield every kind of failure with its smallest problems."""
    for (name, place), rows in failures(outcomes).items():
        yield f"\n### {name}: {place}: {len(rows)} (cases {', '.join(str(row[0]) for row in rows[:12])})\n"
        for number, outcome, verdict in rows[:each]:
            yield f"```python\n{snippet(number, seed, outcome, verdict)}\n```"
