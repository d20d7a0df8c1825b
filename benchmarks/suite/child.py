"""Run one contender on one problem: `python -m suite.child '{...}'` writes JSON lines to stdout."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from suite import memory
from suite.contenders import Answer, find
from suite.contenders.base import quietly
from suite.problems import build

ENOUGH = 10.0  # seconds of repetitions after which no other is begun: so long a run needs no median
Tell = Callable[..., None]


def _speaker() -> Tell:
    """Reserve stdout for the result lines: whatever a library prints goes to stderr."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)

    def tell(event: str, **values: Any) -> None:
        out.write(json.dumps({"event": event, **values}) + "\n")

    return tell


def _pin(threads: int) -> None:
    """Pin the process to as many cores as threads, because some thread pools count cores."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def _answer(answer: Answer) -> dict[str, Any]:
    x = np.asarray(answer.x, dtype=np.float64).ravel()
    where = np.flatnonzero(x)
    return {
        "n": x.size,
        "index": where.tolist(),
        "value": x[where].tolist(),
        "note": answer.note,
        "proved": bool(answer.proved),
        "bound": answer.bound,
    }


def main() -> None:
    wanted, tell = json.loads(sys.argv[1]), _speaker()
    _pin(wanted["threads"])
    began = time.perf_counter()
    try:
        contender = find(wanted["module"], wanted["contender"], wanted["kind"])
        contender.load()
    except ImportError as error:
        tell("missing", why=f"cannot be imported: {error}")
        return
    loaded = time.perf_counter() - began
    try:
        problem = build(wanted["group"], wanted["problem"], wanted["quick"])
        began = time.perf_counter()
        quietly(contender.warm_up, problem)
        tell("ready", warm_up=loaded + time.perf_counter() - began)
        _repeat(tell, wanted, lambda: quietly(contender.solve, problem, wanted["seconds"]))
    except Exception as error:
        tell("error", why=f"{type(error).__name__}: {error}")


def _repeat(tell: Tell, wanted: dict[str, Any], solve: Callable[[], Answer]) -> None:
    total, clock = 0.0, time.process_time if wanted["processor"] else time.perf_counter
    for _ in range(wanted["repeats"]):
        gc.collect()
        before = memory.now()
        memory.reset_peak()
        began = clock()
        answer = solve()
        seconds = clock() - began
        tell("run", seconds=seconds, before=before, peak=memory.peak(), **_answer(answer))
        total += seconds
        if total > ENOUGH:
            break


if __name__ == "__main__":
    main()
