"""Objective against time: ksparse with `max_time`; abess and Scope restarted from random supports for as long.

Claims: objective at most that of each contender in the same time.
"""

from __future__ import annotations

from suite.command import main

if __name__ == "__main__":
    main("effort", __doc__)
