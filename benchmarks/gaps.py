"""Gap proved in a minute: larger markets, sectors with minimum weights, real data, logistic with ridge, components."""

from __future__ import annotations

from suite.command import main

if __name__ == "__main__":
    main("gaps", __doc__)
