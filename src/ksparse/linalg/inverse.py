"""The inverse of a positive definite matrix, by Cholesky: half of what that of any matrix costs, and symmetric."""

from __future__ import annotations

import numpy as np

from ksparse.base.arrays import Vector


def positive_inverse(H: Vector) -> Vector:
    """H⁻¹; `LinAlgError` where H is not positive definite, as far as rounding shows."""
    from scipy.linalg.lapack import dpotrf, dpotri  # here: it takes its time to import, and few calls come so far

    if not H.size:
        return np.zeros(H.shape)
    factor, failed = dpotrf(H)  # of the upper triangle
    if not failed:
        factor, failed = dpotri(factor, overwrite_c=True)
    if failed or not np.isfinite(factor.diagonal()).all():
        raise np.linalg.LinAlgError("not positive definite")
    inverse = factor + factor.T  # what is below the diagonal is 0
    inverse[np.diag_indices_from(inverse)] *= 0.5
    return np.asarray(inverse)
