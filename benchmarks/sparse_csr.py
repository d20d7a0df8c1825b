"""Least squares with a sparse matrix, 50,000 × 200,000 with 50 entries a row, 50 planted variables: everyone who takes scipy.sparse.

Claim: our process stays below 3 GiB.
"""

from __future__ import annotations

from suite.command import main

if __name__ == "__main__":
    main("sparse_csr", __doc__)
