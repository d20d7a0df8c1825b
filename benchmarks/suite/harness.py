"""Run a contender on a problem in a fresh process with pinned threads and a time limit, and check the answer."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from suite.contenders import Contender
from suite.judge import judge
from suite.problem import Problem
from suite.row import Row

BENCHMARKS = Path(__file__).resolve().parents[1]
THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)
OWN_CLOCK = 0.9  # of the limit is given to solvers with a clock of their own, so that their best answer is seen


def cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Settings:
    """Settings for every contender of a run."""

    repeats: int = 3
    limit: float = 120.0  # seconds for imports and warm-up, and again for each solve
    threads: int = field(default_factory=cores)
    quick: bool = False
    processor: bool = (
        False  # whether a solve is timed by the processor's clock, which other work beside it does not slow
    )


@dataclass
class _Heard:
    """Output of a child process."""

    runs: list[dict[str, Any]] = field(default_factory=list)
    warm_up: float = float("nan")
    reason: str = ""
    missing: bool = False


def run(group: str, name: str, problem: Problem, contender: Contender, settings: Settings) -> Row:
    """Return the row of one contender on one problem."""
    common = {"kind": problem.kind, "size": problem.size, "k": problem.k, "limit": settings.limit}
    absent = contender.missing()
    if absent:
        return Row(group, name, contender.name, reason=absent, missing=True, **common)
    wanted = {
        "group": group, "problem": name, "quick": settings.quick, "kind": problem.kind,
        "module": type(contender).__module__, "contender": contender.name,
        "repeats": settings.repeats, "threads": settings.threads, "seconds": OWN_CLOCK * settings.limit,
        "processor": settings.processor,
    }  # fmt: skip
    heard = _listen(wanted, settings)
    if not heard.runs:
        return Row(
            group, name, contender.name, reason=heard.reason, missing=heard.missing, warm_up=heard.warm_up, **common
        )
    last = heard.runs[-1]
    x = np.zeros(last["n"])
    x[last["index"]] = last["value"]
    try:
        verdict = judge(problem, x)
    except ValueError as error:
        return Row(group, name, contender.name, reason=f"no answer to judge: {error}", warm_up=heard.warm_up, **common)
    return Row(
        group, name, contender.name, objective=verdict.objective, violation=verdict.violation,
        nonzeros=verdict.nonzeros, feasible=verdict.feasible, proved=last["proved"], bound=last["bound"],
        seconds=[one["seconds"] for one in heard.runs], warm_up=heard.warm_up,
        before=heard.runs[0]["before"], peak=max(one["peak"] for one in heard.runs), note=last["note"],
        reason="" if verdict.finite else "the answer is not finite", **common,
    )  # fmt: skip


def _environment(threads: int) -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(BENCHMARKS), os.environ.get("PYTHONPATH"))))
    return os.environ | dict.fromkeys(THREADS, str(threads)) | {"PYTHONPATH": path, "JAX_PLATFORMS": "cpu"}


def _listen(wanted: dict[str, Any], settings: Settings) -> _Heard:
    """Start the child and read its lines; each line must come within the time limit."""
    heard = _Heard()
    with tempfile.TemporaryFile() as errors:
        command = [sys.executable, "-m", "suite.child", json.dumps(wanted)]
        environment = _environment(settings.threads)
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, env=environment, text=True, encoding="utf-8"
        ) as child:
            try:
                for message in _messages(child.stdout, settings.limit):
                    _take_in(heard, message, settings.limit)
            finally:
                child.kill()  # of one that has ended, nothing
        if not heard.runs and not heard.reason:
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip().splitlines()
            heard.reason = f"the process ended with code {child.returncode}{': ' + said[-1] if said else ''}"
    return heard


def _messages(stdout: IO[str] | None, limit: float) -> Iterator[dict[str, Any]]:
    """Yield the child's lines; {"event": "late"} and no more if one does not come in time."""
    lines: queue.Queue[str | None] = queue.Queue()

    def pump() -> None:
        for line in stdout or ():
            lines.put(line)
        lines.put(None)

    threading.Thread(target=pump, daemon=True).start()
    began = time.perf_counter()
    allowed = 2 * limit  # a problem is built and warmed up on; then each solve has the limit
    while True:
        try:
            line = lines.get(timeout=max(0.0, allowed - (time.perf_counter() - began)))
        except queue.Empty:
            yield {"event": "late"}
            return
        if line is None:
            return
        yield json.loads(line)
        began, allowed = time.perf_counter(), limit


def _take_in(heard: _Heard, message: dict[str, Any], limit: float) -> None:
    match message.pop("event"):
        case "ready":
            heard.warm_up = message["warm_up"]
        case "run":
            heard.runs.append(message)
        case "missing":
            heard.reason, heard.missing = message["why"], True
        case "error":
            heard.reason = message["why"]
        case "late":
            heard.reason = (
                f"not done in {limit:g} s" if heard.warm_up == heard.warm_up else f"no warm-up in {2 * limit:g} s"
            )
