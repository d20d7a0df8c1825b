"""Best subset, 5000 × 10000, 100 planted variables, as in skscope's comparison of libraries; also with x ≥ 0.

Claims: objective at most abess's and Scope's, in at most a fifth of abess's time.
"""

from __future__ import annotations

from suite.command import main

if __name__ == "__main__":
    main("best_subset", __doc__)
