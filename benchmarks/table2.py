"""The penalised problem of Table 2, i = 1…5: `minimize_penalized` with continuation and the paper's methods.

Claims: F at most 1.0005 times that of pDCAe, in at most half the time of APDCA with fixed step.
"""

from __future__ import annotations

from suite.command import main

if __name__ == "__main__":
    main("table2", __doc__)
