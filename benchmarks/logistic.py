"""Logistic regression, 2000 × 5000, 50 planted variables: all contenders; the loss has no ridge.

Claims: objective at most abess's and Scope's.
"""

from __future__ import annotations

from suite.command import main

if __name__ == "__main__":
    main("logistic", __doc__)
