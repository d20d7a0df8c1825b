"""ksparse: best k-sparse point of a smooth function over a convex set."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from ksparse.data.blocks import blocks
from ksparse.data.design import Design
from ksparse.data.model import QuadraticModel
from ksparse.data.operator import operator
from ksparse.data.products import Squares
from ksparse.errors import InfeasibleError, MissingPieceError
from ksparse.firstorder.continuation import weight_max
from ksparse.firstorder.methods import APDCA, GIST, IHT, L1DCA, L1PDCA, MIPDCA, PDCA, Method, NmAPG, PDCAe
from ksparse.firstorder.steps import Backtracking, FixedStep
from ksparse.losses import (
    Cox,
    Custom,
    DataFit,
    Gamma,
    GradientCheck,
    Huber,
    LeastSquares,
    Logistic,
    Loss,
    MeanVariance,
    Multinomial,
    MultiResponse,
    NegativeBinomial,
    Poisson,
    PrincipalComponent,
    Quadratic,
    Quantile,
    Tweedie,
    autodiff,
    check_gradient,
)
from ksparse.penalties import L1, MCP, SCAD, CappedL1, L1MinusL2, LogSum, Penalty, Separable, TopK1, TopK2
from ksparse.result import Result, Status, Trace
from ksparse.search.settings import SearchSettings
from ksparse.sets import (
    Box,
    BudgetBox,
    ConvexSet,
    CustomSet,
    Hyperplane,
    L1Ball,
    L2Ball,
    Linear,
    Nonnegative,
    NonnegativeBall,
    Polyhedron,
    Simplex,
    WholeSpace,
)
from ksparse.solve.many import Batch, minimize_many
from ksparse.solve.minimize import minimize, minimize_penalized
from ksparse.solve.near_optimal import NearOptimal, near_optimal
from ksparse.solve.path import KPath, k_path
from ksparse.util.progress import show_progress

if TYPE_CHECKING:  # imported on first use at run time
    from ksparse import datasets, estimators, experiments, plotting
    from ksparse.estimators import (
        SparseClassifier,
        SparseClassifierCV,
        SparsePCA,
        SparsePortfolio,
        SparseRegressor,
        SparseRegressorCV,
        factors,
        selection_stability,
        standard_errors,
    )

try:
    __version__ = version("ksparse")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "unknown"

_ESTIMATORS = (
    "SparseClassifier", "SparseClassifierCV", "SparsePCA", "SparsePortfolio", "SparseRegressor", "SparseRegressorCV",
    "factors", "selection_stability", "standard_errors",
)  # fmt: skip
_MODULES = ("datasets", "estimators", "experiments", "plotting")

if not TYPE_CHECKING:  # a type checker would accept every misspelt name

    def __getattr__(name: str) -> Any:
        """Import estimators and modules on first use, since scikit-learn and matplotlib import slowly."""
        if name in _ESTIMATORS:
            return getattr(import_module("ksparse.estimators"), name)
        if name in _MODULES:
            return import_module(f"ksparse.{name}")
        raise AttributeError(f"module 'ksparse' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ESTIMATORS, *_MODULES})


__all__ = [
    "APDCA", "GIST", "IHT", "L1", "L1DCA", "L1PDCA", "MCP", "MIPDCA", "PDCA", "SCAD", "Backtracking", "Batch",
    "Box", "BudgetBox", "CappedL1", "ConvexSet", "Cox", "Custom", "CustomSet", "DataFit", "Design", "FixedStep",
    "Gamma", "GradientCheck", "Huber", "Hyperplane", "InfeasibleError", "KPath", "L1Ball", "L1MinusL2", "L2Ball",
    "LeastSquares", "Linear", "LogSum", "Logistic", "Loss", "MeanVariance", "Method", "MissingPieceError",
    "MultiResponse", "Multinomial", "NearOptimal", "NegativeBinomial", "NmAPG", "Nonnegative", "NonnegativeBall",
    "PDCAe", "Penalty", "Poisson", "Polyhedron", "PrincipalComponent", "Quadratic", "QuadraticModel", "Quantile",
    "Result", "SearchSettings", "Separable", "Simplex", "SparseClassifier", "SparseClassifierCV", "SparsePCA",
    "SparsePortfolio", "SparseRegressor", "SparseRegressorCV", "Squares", "Status", "TopK1", "TopK2", "Trace",
    "Tweedie", "WholeSpace", "autodiff", "blocks", "check_gradient", "datasets", "estimators", "experiments",
    "factors", "k_path", "minimize", "minimize_many", "minimize_penalized", "near_optimal", "operator", "plotting",
    "selection_stability", "show_progress", "standard_errors", "weight_max",
]  # fmt: skip
