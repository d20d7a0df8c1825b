"""The instances of Table 5 on seeds 3…9, on which nothing in our search was chosen, beside Scope and abess.

The same claims as in table5.py. What fails here is what to expect on data of this kind: no support stands out, and now
and then another search ends at a better one.
"""

from __future__ import annotations

from suite.command import main

if __name__ == "__main__":
    main("table5_others", __doc__)
