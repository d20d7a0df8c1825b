"""Least variance with at most 10 assets, long only: SCIP, skfolio, relax and round, and the paper's methods.

Claims: within 0.1 % of SCIP wherever SCIP proves its answer, in at most a fiftieth of its time. Needs the data in the
folder named by KSPARSE_DATA, without which it runs on what comes with skfolio.
"""

from __future__ import annotations

from suite.command import main

if __name__ == "__main__":
    main("portfolios", __doc__)
