"""Estimators with the interface of scikit-learn."""

from ksparse.components.estimator import SparsePCA
from ksparse.linear.classifier import SparseClassifier
from ksparse.linear.cv import SparseClassifierCV, SparseRegressorCV
from ksparse.linear.factors import factors
from ksparse.linear.regressor import SparseRegressor
from ksparse.linear.stability import Stability, selection_stability
from ksparse.linear.standard_errors import Refit, standard_errors
from ksparse.portfolio.estimator import SparsePortfolio
from ksparse.portfolio.frontier import Frontier
from ksparse.portfolio.walk_forward import WalkForward

__all__ = [
    "Frontier",
    "Refit",
    "SparseClassifier",
    "SparseClassifierCV",
    "SparsePCA",
    "SparsePortfolio",
    "SparseRegressor",
    "SparseRegressorCV",
    "Stability",
    "WalkForward",
    "factors",
    "selection_stability",
    "standard_errors",
]
