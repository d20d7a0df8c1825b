"""The instances of Table 5 on seeds 3…9, not used to tune the search, compared with Scope and abess.

The claims are those of table5.py. Failures are to be expected on such data: no support stands out, and another search
sometimes ends at a better one.
"""

from __future__ import annotations

from suite.command import main

if __name__ == "__main__":
    main("table5_others", __doc__)
