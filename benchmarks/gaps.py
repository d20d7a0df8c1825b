"""How far a proof comes in a minute: larger markets, sectors with floors, regression on real data, logistic with a ridge, components."""

from __future__ import annotations

from suite.command import main

if __name__ == "__main__":
    main("gaps", __doc__)
