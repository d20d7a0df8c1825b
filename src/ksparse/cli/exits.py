"""Exit codes, the same for every command."""

from __future__ import annotations

from collections.abc import Iterable

from ksparse.result import Status

SOLVED, FAILED, BAD_INPUT, NO_SOLUTION, LIMIT, INTERRUPTED = 0, 1, 2, 3, 4, 130
TEXT = """Exit codes:
  0    solved
  1    numerical trouble, or output cut off
  2    bad input
  3    infeasible or unbounded
  4    limit reached; the best answer is still written
  130  interrupted"""


class InputError(ValueError):
    """What the user gave cannot be used; the message says why and what to do."""


def worst(codes: Iterable[int]) -> int:
    """How a command with several answers exits: as the worst of them would."""
    return max(codes, key=(SOLVED, LIMIT, NO_SOLUTION, FAILED, INTERRUPTED).index)


def exit_code(status: Status) -> int:
    """How a command that ended with this status exits."""
    if status.good:
        return SOLVED
    codes = {Status.TIME_LIMIT: LIMIT, Status.ITERATION_LIMIT: LIMIT, Status.INTERRUPTED: INTERRUPTED, Status.UNBOUNDED: NO_SOLUTION}
    return codes.get(status, FAILED)
