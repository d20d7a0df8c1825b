"""Catalogue of losses, sets, penalties and methods: one line here adds a piece to all tests of its kind.

Losses are functions of a random generator and of `matrix`, which turns the data matrix into the kind under test.
"""

from __future__ import annotations

import numpy as np

import ksparse as ks

M, N = 9, 6  # rows and columns of the small data


def _spd(rng):
    Z = rng.standard_normal((M, N))
    return Z.T @ Z / M


def _indefinite(rng):
    Q = rng.standard_normal((N, N))
    return (Q + Q.T) / 2


def _custom(rng):
    centre = rng.standard_normal(N)
    return ks.Custom(lambda x: float(np.sum(np.cosh(x - centre))), lambda x: np.sinh(x - centre), n=N, convex=True)


LOSSES = {
    "LeastSquares": lambda rng, matrix: ks.LeastSquares(matrix(rng.standard_normal((M, N))), rng.standard_normal(M)),
    "LeastSquares weighted": lambda rng, matrix: ks.LeastSquares(
        matrix(rng.standard_normal((M, N))), rng.standard_normal(M), sample_weight=rng.uniform(0, 3, M)
    ),
    "LeastSquares ridge": lambda rng, matrix: ks.LeastSquares(
        matrix(rng.standard_normal((M, N))), rng.standard_normal(M), ridge=np.arange(N, dtype=float)
    ),
    "Quadratic": lambda rng, matrix: ks.Quadratic(matrix(_spd(rng)), rng.standard_normal(N)),
    "Quadratic indefinite": lambda rng, matrix: ks.Quadratic(matrix(_indefinite(rng)), rng.standard_normal(N)),
    "MeanVariance": lambda rng, matrix: ks.MeanVariance(matrix(_spd(rng)), rng.standard_normal(N), 3.0),
    "PrincipalComponent": lambda rng, matrix: ks.PrincipalComponent(matrix(_spd(rng))),
    "Logistic": lambda rng, matrix: ks.Logistic(matrix(rng.standard_normal((M, N))), np.sign(rng.standard_normal(M))),
    "Logistic weighted": lambda rng, matrix: ks.Logistic(
        matrix(rng.standard_normal((M, N))), rng.integers(0, 2, M), sample_weight=rng.uniform(0, 3, M)
    ),
    "Logistic ridge": lambda rng, matrix: ks.Logistic(
        matrix(rng.standard_normal((M, N))), rng.integers(0, 2, M), rng.uniform(0, 3, M), ridge=0.5
    ),
    "Huber": lambda rng, matrix: ks.Huber(matrix(rng.standard_normal((M, N))), rng.standard_normal(M), 0.7),
    "Huber weighted": lambda rng, matrix: ks.Huber(
        matrix(rng.standard_normal((M, N))), rng.standard_normal(M), 0.7, sample_weight=rng.uniform(0, 3, M)
    ),
    "Poisson": lambda rng, matrix: ks.Poisson(matrix(rng.standard_normal((M, N))), rng.poisson(2.0, M)),
    "Poisson weighted": lambda rng, matrix: ks.Poisson(
        matrix(rng.standard_normal((M, N))), rng.poisson(2.0, M), sample_weight=rng.uniform(0, 3, M)
    ),
    "Quantile": lambda rng, matrix: ks.Quantile(
        matrix(rng.standard_normal((M, N))), rng.standard_normal(M), tau=0.8, width=0.5
    ),
    "Gamma": lambda rng, matrix: ks.Gamma(
        matrix(0.5 * rng.standard_normal((M, N))), rng.gamma(2.0, 1.0, M), rng.uniform(0, 3, M)
    ),
    "Tweedie": lambda rng, matrix: ks.Tweedie(
        matrix(rng.standard_normal((M, N))), np.maximum(rng.gamma(2.0, 1.0, M) - 1, 0), rng.uniform(0, 3, M), power=1.3
    ),
    "NegativeBinomial": lambda rng, matrix: ks.NegativeBinomial(
        matrix(rng.standard_normal((M, N))), rng.poisson(2.0, M), rng.uniform(0, 3, M), ridge=0.1, theta=0.7
    ),
    "MultiResponse": lambda rng, matrix: ks.MultiResponse(
        matrix(rng.standard_normal((M, N // 2))), rng.standard_normal((M, 2))
    ),
    "MultiResponse weighted": lambda rng, matrix: ks.MultiResponse(
        matrix(rng.standard_normal((M, N // 3))), rng.standard_normal((M, 3)), rng.uniform(0, 3, M), ridge=[0.5, 2.0]
    ),
    "Multinomial": lambda rng, matrix: ks.Multinomial(matrix(rng.standard_normal((M, N // 3))), np.arange(M) % 3),
    "Multinomial weighted": lambda rng, matrix: ks.Multinomial(
        matrix(rng.standard_normal((M, N // 2))), np.arange(M) % 2, rng.uniform(0, 3, M), ridge=0.5
    ),
    "Cox": lambda rng, matrix: ks.Cox(
        matrix(rng.standard_normal((M, N))), [3, 1, 2, 2, 5, 4, 2, 7, 1], [1, 1, 0, 1, 0, 1, 1, 1, 0]
    ),
    "Cox ridge": lambda rng, matrix: ks.Cox(
        matrix(rng.standard_normal((M, N))), rng.exponential(1.0, M), np.arange(M) % 3 > 0, 0.5
    ),
}
TABLE_LOSSES = {  # made from a data table, which is centred: dense and scipy.sparse, no operator
    "MeanVariance.from_returns": lambda rng, matrix: ks.MeanVariance.from_returns(
        matrix(rng.standard_normal((M, N)) + 1), 3.0
    ),
    "PrincipalComponent.from_data": lambda rng, matrix: ks.PrincipalComponent.from_data(
        matrix(rng.standard_normal((M, N)) + 1)
    ),
    "PrincipalComponent.from_data unscaled": lambda rng, matrix: ks.PrincipalComponent.from_data(
        matrix(rng.standard_normal((M, N)) + 1), scale=False
    ),
}
FREE_LOSSES = {"Custom": lambda rng, matrix: _custom(rng)}  # no data matrix

SETS = {
    "WholeSpace": lambda n: ks.WholeSpace(),
    "L2Ball": lambda n: ks.L2Ball(1.5),
    "Hyperplane": lambda n: ks.Hyperplane(),
    "Hyperplane of another total": lambda n: ks.Hyperplane(np.full(n, -2.0), 3.0),
    "Hyperplane of zero total": lambda n: ks.Hyperplane(b=0),
    "Hyperplane weighted": lambda n: ks.Hyperplane(np.linspace(-1, 2, n), 0.5),
    "Nonnegative": lambda n: ks.Nonnegative(),
    "NonnegativeBall": lambda n: ks.NonnegativeBall(1.3),
    "Nonnegative some": lambda n: ks.Nonnegative(range(0, n, 2)),
    "Box": lambda n: ks.Box(-0.5, 1.0),
    "Box of vectors": lambda n: ks.Box(np.linspace(-1, 0, n), np.linspace(0, np.pi, n)),
    "Box half-open": lambda n: ks.Box(np.where(np.arange(n) % 2, -np.inf, 0.0), np.inf),
    "Box excluding 0": lambda n: ks.Box(np.where(np.arange(n) == 0, 0.2, -1.0), 1.0),
    "Simplex": lambda n: ks.Simplex(2.0),
    "BudgetBox": lambda n: ks.BudgetBox(1.0, 0.0, 0.9),
    "BudgetBox of vectors": lambda n: ks.BudgetBox(0.5, np.linspace(-1, 0, n), np.linspace(0.3, 2, n)),
    "BudgetBox unbounded": lambda n: ks.BudgetBox(1.0, 0.0, np.inf),
    "L1Ball": lambda n: ks.L1Ball(1.2),
    "Polyhedron": lambda n: ks.Polyhedron(
        np.vstack([np.arange(n), -np.ones(n)]), [2.0, 1.0], np.ones((1, n)), [1.0], lower=-1.0
    ),
    "Polyhedron of inequalities": lambda n: ks.Polyhedron(np.vander(np.linspace(0, 1, 4), n), np.ones(4)),
    "CustomSet": lambda n: ks.CustomSet(
        lambda u: np.clip(u, 0, 1), lambda x: float(np.abs(x - np.clip(x, 0, 1)).max()), n=n
    ),
}
JOINT = [  # sets with an exact projection onto their k-sparse points
    "WholeSpace", "L2Ball", "Hyperplane", "Hyperplane of another total", "Hyperplane of zero total", "Nonnegative",
    "Nonnegative some", "NonnegativeBall", "Box", "Box of vectors", "Box half-open", "Box excluding 0", "Simplex",
    "BudgetBox", "BudgetBox unbounded",
]  # fmt: skip

PENALTIES = {
    "L1": lambda n: ks.L1(0.4),
    "CappedL1": lambda n: ks.CappedL1(0.4, 0.8),
    "LogSum": lambda n: ks.LogSum(0.4, 1.5),
    "LogSum steep": lambda n: ks.LogSum(0.4, 0.1),
    "SCAD": lambda n: ks.SCAD(0.4, 3.7),
    "MCP": lambda n: ks.MCP(0.4, 1.5),
    "MCP concave": lambda n: ks.MCP(0.4, 0.3),
    "L1MinusL2": lambda n: ks.L1MinusL2(0.4),
    "TopK1": lambda n: ks.TopK1(0.4, max(1, n // 2)),
    "TopK2": lambda n: ks.TopK2(0.4, max(1, n // 2)),
}

METHODS = {
    "PDCA fixed": lambda: ks.PDCA(rule=ks.FixedStep()),
    "PDCA backtracking": lambda: ks.PDCA(),
    "APDCA fixed": lambda: ks.APDCA(rule=ks.FixedStep()),
    "APDCA backtracking": lambda: ks.APDCA(),
    "pDCAe": lambda: ks.PDCAe(),
    "GIST": lambda: ks.GIST(),
    "GIST fixed": lambda: ks.GIST(rule=ks.FixedStep()),
    "nmAPG fixed": lambda: ks.NmAPG(rule=ks.FixedStep()),
    "nmAPG backtracking": lambda: ks.NmAPG(),
}
