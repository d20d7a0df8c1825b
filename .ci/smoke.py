"""Smoke test of a fresh install without extras: solve, fit, run a command, and check the message of an extra."""

import subprocess
import sys

import numpy as np

import ksparse as ks

rng = np.random.default_rng(0)
A = rng.standard_normal((60, 20))
b = A[:, :3] @ np.array([1.0, -2.0, 1.5]) + 0.1 * rng.standard_normal(60)
assert ks.minimize(ks.LeastSquares(A, b), 3, ks.Nonnegative([0, 2])).support.tolist() == [0, 1, 2]
assert ks.minimize(ks.LeastSquares(A, b), 4, gap=0.01).gap <= 0.01
assert ks.SparseRegressor(3).fit(A, b).coef_.nonzero()[0].tolist() == [0, 1, 2]
assert ks.SparsePCA(1, k=3).fit(A).components_.shape == (1, 20)
assert ks.__version__ != "unknown"


def said(*command: str) -> str:
    """Return what a command prints on either stream."""
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def refusal(call: object) -> str:
    """Return the message of a call that needs an extra."""
    try:
        call()  # type: ignore[operator]
    except ImportError as error:
        return str(error)
    return "nothing"


if "matplotlib" not in sys.modules:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        assert "pip install 'ksparse[plot]'" in refusal(lambda: ks.plotting.plot_weights(["a"], [1.0]))
try:
    import rich  # noqa: F401
except ImportError:
    assert "pip install 'ksparse[cli]'" in said("ksparse", "--help")
else:
    assert "regress" in said("ksparse", "--help")
print(f"Python {sys.version.split()[0]}, NumPy {np.__version__}: ksparse {ks.__version__} works")
