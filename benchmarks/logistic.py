"""Logistic regression, 2000 × 5000, 50 planted variables: everyone who can. No ridge; the loss is judged as it is.

Claims: objective at most abess's and Scope's.
"""

from __future__ import annotations

from suite.command import main

if __name__ == "__main__":
    main("logistic", __doc__)
