"""How much memory there is to be had, so that what will not fit is refused before it is begun."""

from __future__ import annotations

import math
from pathlib import Path

GIB = 2**30


def available_memory() -> float:
    """Bytes: what the system can give without swapping, or less where this process has a limit; ∞ where nothing says."""
    return min(_of_the_system(), _of_this_process())


def _of_the_system() -> float:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:  # elsewhere than on Linux
        return math.inf
    sizes = {name: rest.split() for name, _, rest in (line.partition(":") for line in lines)}
    return float(sizes["MemAvailable"][0]) * 1024 if "MemAvailable" in sizes else math.inf


def _of_this_process() -> float:
    """What is left of a limit on its address space or its data."""
    try:
        import resource

        words = Path("/proc/self/statm").read_text(encoding="ascii").split()
    except (ImportError, OSError):
        return math.inf
    page, left = resource.getpagesize(), math.inf
    for limit, used in ((resource.RLIMIT_AS, words[0]), (resource.RLIMIT_DATA, words[5])):
        most = resource.getrlimit(limit)[0]
        if most != resource.RLIM_INFINITY:
            left = min(left, most - page * int(used))
    return max(0.0, left)
