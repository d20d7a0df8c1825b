"""Cases in worker processes: a worker that hangs or dies is reported and replaced, the others continue."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
from multiprocessing.connection import wait

from .judge import Verdict
from .run import Outcome, run_case

HARD_LIMIT = 300.0  # seconds on the wall for one case, its judgement included: other processes may hold the machine


def _serve(connection):
    """Run the received cases, and detect output that bypasses Python."""
    with tempfile.TemporaryFile() as printed:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
        while True:
            number, case = connection.recv()
            printed.seek(0)
            printed.truncate()
            try:
                outcome = run_case(case)
            except Exception as error:  # of the fuzzer itself: to be repaired there
                outcome = Outcome(case, (Verdict("fuzzer", f"{type(error).__name__}: {error}"),), 0.0, "fuzzer")
            sys.stdout.flush()
            sys.stderr.flush()
            size = os.fstat(printed.fileno()).st_size
            if size:
                printed.seek(0)
                text = printed.read(300).decode(errors="replace")
                outcome = Outcome(
                    outcome.case, (*outcome.verdicts, Verdict("printed", text)), outcome.seconds, outcome.ended
                )
            connection.send((number, outcome))


class _Worker:
    def __init__(self, context):
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.task, self.since = None, 0.0

    def give(self, task):
        self.task, self.since = task, time.monotonic()
        if task is not None:
            self.connection.send(task)

    def take(self):
        """Return the outcome, also if the worker died or hangs; None while it works."""
        try:
            if self.connection.poll():
                return self.connection.recv()
        except EOFError:
            return self._lost("crash", "the process died")
        overdue = time.monotonic() - self.since > HARD_LIMIT
        return self._lost("hung", f"no answer after {HARD_LIMIT:.0f} s") if overdue else None

    def _lost(self, verdict, text):
        number, case = self.task
        return number, Outcome(case, (Verdict(verdict, text),), HARD_LIMIT, "lost")

    def end(self):
        self.process.kill()
        self.process.join()
        self.connection.close()


def run_cases(cases, jobs):
    """Yield the outcomes of (number, case) pairs as they come, each with its number."""
    context = multiprocessing.get_context("spawn")
    waiting = iter(cases)
    workers = [_Worker(context) for _ in range(jobs)]
    try:
        for worker in workers:
            worker.give(next(waiting, None))
        while busy := [i for i, worker in enumerate(workers) if worker.task is not None]:
            wait([workers[i].connection for i in busy], timeout=1.0)
            for i in busy:
                said = workers[i].take()
                if said is None:
                    continue
                if said[1].ended == "lost":
                    workers[i].end()
                    workers[i] = _Worker(context)
                workers[i].give(next(waiting, None))
                yield said
    finally:
        for worker in workers:
            worker.end()
