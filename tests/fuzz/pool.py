"""Cases in worker processes: one that hangs or dies is noted and its worker replaced, the others go on."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
from multiprocessing.connection import wait

from .case import case_number
from .judge import Verdict
from .run import Outcome, run_case

HARD_LIMIT = 90.0  # seconds for one case, its judgement included


def _serve(connection, seed):
    """Run the cases whose numbers come in, and notice what is printed past Python."""
    with tempfile.TemporaryFile() as printed:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
        while (number := connection.recv()) is not None:
            printed.seek(0)
            printed.truncate()
            try:
                outcome = run_case(case_number(number, seed))
            except Exception as error:  # of the fuzzer itself: to be repaired there
                outcome = Outcome(case_number(number, seed), (Verdict("fuzzer", f"{type(error).__name__}: {error}"),), 0.0, "fuzzer")
            sys.stdout.flush()
            sys.stderr.flush()
            size = os.fstat(printed.fileno()).st_size
            if size:
                printed.seek(0)
                text = printed.read(300).decode(errors="replace")
                outcome = Outcome(outcome.case, (*outcome.verdicts, Verdict("printed", text)), outcome.seconds, outcome.ended)
            connection.send((number, outcome))


class _Worker:
    def __init__(self, context, seed):
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, seed), daemon=True)
        self.process.start()
        theirs.close()
        self.number, self.since = None, 0.0

    def give(self, number):
        self.number, self.since = number, time.monotonic()
        self.connection.send(number)

    def end(self):
        self.process.kill()
        self.process.join()
        self.connection.close()


def run_cases(numbers, seed, jobs):
    """Outcomes as they come, each with its number."""
    context = multiprocessing.get_context("spawn")
    waiting = iter(numbers)
    workers = [_Worker(context, seed) for _ in range(jobs)]
    try:
        for worker in workers:
            _give_next(worker, waiting)
        while any(worker.number is not None for worker in workers):
            busy = [worker for worker in workers if worker.number is not None]
            ready = wait([worker.connection for worker in busy], timeout=1.0)
            for worker in busy:
                if worker.connection in ready:
                    number, outcome = _take(worker, seed)
                elif time.monotonic() - worker.since > HARD_LIMIT:
                    number, outcome = worker.number, _lost(worker.number, seed, "hung", f"no answer after {HARD_LIMIT:.0f} s")
                else:
                    continue
                if outcome.ended == "lost":
                    worker.end()
                    worker.__init__(context, seed)
                _give_next(worker, waiting)
                yield number, outcome
    finally:
        for worker in workers:
            worker.end()


def _take(worker, seed):
    try:
        return worker.connection.recv()
    except EOFError:
        return worker.number, _lost(worker.number, seed, "crash", "the process died")


def _lost(number, seed, verdict, text):
    return Outcome(case_number(number, seed), (Verdict(verdict, text),), HARD_LIMIT, "lost")


def _give_next(worker, waiting):
    number = next(waiting, None)
    worker.number = None
    if number is not None:
        worker.give(number)
