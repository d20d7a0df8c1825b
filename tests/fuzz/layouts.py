"""Data as Python text: the printed snippet is the text that runs."""

from __future__ import annotations

import numpy as np

from .case import SINGLE

ONLY_MATMUL = """class OnlyMatmul:
    def __init__(self, A):
        self.A, self.shape = A, A.shape
    @property
    def T(self):
        return OnlyMatmul(self.A.T)
    def __matmul__(self, v):
        return self.A @ v
"""
MATRIX = {
    "F": "{0} = np.asfortranarray({0})",
    "view": "{0} = np.repeat(np.repeat({0}, 2, axis=0), 3, axis=1)[::2, ::3]",
    "reversed": "{0} = {0}[::-1, ::-1].copy()[::-1, ::-1]",
    "readonly": "{0}.flags.writeable = False",
    "list": "{0} = {0}.tolist()",
    "csr": "{0} = scipy.sparse.csr_array({0})",
    "csr32": "{0} = scipy.sparse.csr_array({0})",
    "csc": "{0} = scipy.sparse.csc_matrix({0})",
    "coo": "{0} = scipy.sparse.coo_array({0})",
    "operator": "{0} = scipy.sparse.linalg.aslinearoperator({0})",
    "object": "{0} = OnlyMatmul({0})",
    "frame": "{0} = pd.DataFrame({0})",
}
VECTOR = {
    "view": "{0} = np.repeat({0}, 2)[::2]",
    "reversed": "{0} = {0}[::-1].copy()[::-1]",
    "readonly": "{0}.flags.writeable = False",
    "list": "{0} = {0}.tolist()",
    "frame": "{0} = pd.Series({0})",
}


def as_given(array, layout):
    """Round numbers to what a layout can hold (float32 or integers) before anything is computed."""
    if layout in SINGLE:
        return np.asarray(array, dtype=np.float32).astype(float)
    return np.rint(array) if layout == "int" else np.asarray(array, dtype=float)


def literal(array, layout="C"):
    """Return an array as text with all digits."""
    if layout in SINGLE:
        return f"np.array({np.asarray(array, dtype=float).tolist()}, dtype=np.float32)".replace("inf", "np.inf")
    if layout == "int":
        return f"np.array({np.asarray(array).astype(int).tolist()})"
    return f"np.array({np.asarray(array, dtype=float).tolist()})".replace("inf", "np.inf")


def matrix_lines(name, array, layout):
    lines = [f"{name} = {literal(array, layout)}"]
    if layout in MATRIX:
        lines.append(MATRIX[layout].format(name))
    return lines


def vector_lines(name, array, layout):
    lines = [f"{name} = {literal(array, layout)}"]
    if layout in VECTOR:
        lines.append(VECTOR[layout].format(name))
    return lines


def header(body):
    """Return the imports that a text needs."""
    lines = ["import numpy as np"]
    lines += ["import scipy.sparse, scipy.sparse.linalg"] * ("scipy." in body) + ["import pandas as pd"] * (
        "pd." in body
    )
    return "\n".join([*lines, "import ksparse as ks", ""]) + ("\n" + ONLY_MATMUL if "OnlyMatmul" in body else "")
