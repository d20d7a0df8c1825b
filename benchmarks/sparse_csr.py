"""Least squares with a sparse 50,000 × 200,000 matrix, 50 entries a row, 50 planted variables: solvers for CSR input.

Claim: our process stays below 3 GiB.
"""

from __future__ import annotations

from suite.command import main

if __name__ == "__main__":
    main("sparse_csr", __doc__)
