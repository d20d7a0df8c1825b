"""Least variance with an exact return, compared with SCIP.

OR-Library with and without a ridge; S&P, Tokyo and 2,000 generated assets above a floor of 0.01.

Claims: within 0.01 % of SCIP wherever SCIP proves its answer, in at most a fiftieth of its time. Needs the data in the
folder named by KSPARSE_DATA, without which it runs on generated assets.
"""

from __future__ import annotations

from suite.command import main

if __name__ == "__main__":
    main("rows", __doc__)
