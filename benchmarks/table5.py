"""Sparse least squares on the instances of Table 5, i = 1…5, three seeds, with and without signs: all contenders.

Claims: objective at most Scope's, in at most a fifth of its time, and at most abess's. With signs, our answer
satisfies them and may be compared with one that does not.
"""

from __future__ import annotations

from suite.command import main

if __name__ == "__main__":
    main("table5", __doc__)
