"""The sizes that variables may have where φ is at most some value.

With x̂ the minimum under Ex = f over the variables that are not out, φ(x) = φ(x̂) + ½(x − x̂)ᵀH(x − x̂) there, so that |xᵢ − x̂ᵢ| is at most
√(2(value − φ(x̂)))·√Pᵢᵢ, P the inverse of H on the solutions of Ex = 0. If a gradient ρ remains at the computed x̂, the first factor becomes
ℓ + √(ℓ² + 2(value − φ(x̂))) with ℓ = √(ρᵀH⁻¹ρ), and rounding is added. The more variables are out, the higher φ(x̂) and the smaller P: on
nearly dependent columns a few of them change everything, so that the nodes of a tree have boxes of their own.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ksparse.certify.program import WIDER, Program
from ksparse.numerics.bound import rounding_of
from ksparse.numerics.eigen import largest_eigenvalue, positive_inverse
from ksparse.numerics.qp import shortest
from ksparse.numerics.relaxation import MagnitudeRange, NodeBatch
from ksparse.numerics.relaxation_kernels import OUT
from ksparse.util.arrays import Vector
from ksparse.util.resources import pause

INVERTED = 1e-2  # of an entry of H⁻¹: where rounding may cost more, nothing is implied by it


def boxed(program: Program, best: float) -> Program:
    """The same with the sizes that a value of at most `best` implies."""
    try:
        inverse = positive_inverse(program.H)
    except np.linalg.LinAlgError:
        return program
    pause()
    ends = [largest_eigenvalue(lambda v, M=M: M @ v, program.n, program.r) for M in (program.H, inverse)]  # type: ignore[misc]
    known = replace(program, largest=ends[0], least=1.0 / ends[1])
    if not trusted(known):
        return program
    return replace(known, sizes=MagnitudeRange(program.sizes.min_abs, *reach(known, np.arange(program.n), best)))


def trusted(program: Program) -> bool:
    """Whether an inverse of H says something, after rounding."""
    return program.least > 10.0 * _lost(program) and _wrong(program) <= INVERTED


def _lost(program: Program) -> float:
    """By how much an eigenvalue of H may be wrong."""
    return program.n * (program.noise.entries + rounding_of(program.n))


def _wrong(program: Program) -> float:
    """By how much an entry of H⁻¹ may be, about."""
    return program.n * program.rounding * program.largest / program.least


def reach(program: Program, kept: Vector, best: float) -> tuple[Vector, Vector]:
    """The largest sizes above and below 0 of the variables that are kept, all others being 0, where the value is at most `best`."""
    H, E, r, f, rounding = (
        program.H[np.ix_(kept, kept)],
        program.linear.E[:, kept],
        program.r[kept],
        program.linear.f,
        program.rounding,
    )
    sizes, wrong = program.sizes, _wrong(program)
    P = K = positive_inverse(H)
    x, price, unmet, follows = K @ r, f, f, np.zeros((kept.size, f.size))
    if f.size:
        KE = K @ E.T
        S = E @ KE
        wrong += (
            program.n * rounding * float(np.linalg.cond(S))
        )  # equations at a small angle cost P digits, whatever H is like
        if not wrong <= INVERTED:
            return sizes.max_above[kept], sizes.max_below[kept]
        follows = KE @ np.linalg.inv(S)  # what x follows f by
        P = K - follows @ KE.T
        x = P @ r + follows @ f
        price = shortest(E.T, H @ x - r)
        unmet = np.abs(f - E @ x) + rounding * (np.abs(E) @ np.abs(x) + np.abs(f))
    left = H @ x - r - E.T @ price
    value, size, most = (
        0.5 * float(x @ H @ x) - float(r @ x) + program.constant,
        float(np.abs(x).sum()),
        float(np.abs(program.r).max()),
    )
    blur = rounding * (abs(program.constant) + (size + most) ** 2) + float(np.abs(price) @ unmet)
    off = rounding * (size + most + float(np.abs(price).sum())) + program.noise.pull  # of the gradient
    shrunk = np.sqrt(1.0 - _lost(program) / program.least)
    length = np.sqrt(max(0.0, float(left @ K @ left)) * (1.0 + wrong)) + off * np.sqrt(program.n / program.least)
    far = (length + np.sqrt(length**2 + 2.0 * (max(0.0, best - value) + blur))) / shrunk
    spread = np.maximum(np.diag(P), 0.0) + wrong * np.diag(K)  # the second where an equation nearly fixes a variable
    apart = WIDER * (far * np.sqrt(spread) + np.abs(follows) @ unmet + rounding * np.abs(x))
    return np.minimum(sizes.max_above[kept], np.maximum(x + apart, 0.0)), np.minimum(
        sizes.max_below[kept], np.maximum(apart - x, 0.0)
    )


def narrow(program: Program, nodes: NodeBatch, best: float) -> None:
    """Give each node the box of the variables that are not out there, where more of them are than when it got the one it has."""
    out = nodes.state == OUT
    count = out.sum(axis=1)
    for node in np.flatnonzero(count > nodes.n_out_when_tightened):
        kept = np.flatnonzero(~out[node])
        nodes.max_above[node, kept], nodes.max_below[node, kept] = reach(program, kept, best)
    nodes.n_out_when_tightened = count
