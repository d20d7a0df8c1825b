"""`python -m ksparse` is the command `ksparse`."""

import sys

from ksparse.cli import main

if __name__ == "__main__":
    sys.exit(main())
