"""Gain by `effort`: default, 16 and 100 searches on seeds 3…29 of Table 5 and on gene-like classes.

Claims, on the average by kind: by default within 2 % (classes 5 %) of 100 searches, with 16 within 0.7 % (1 %).
"""

from __future__ import annotations

from suite.command import main

if __name__ == "__main__":
    main("knob", __doc__)
