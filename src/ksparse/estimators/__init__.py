"""Estimators in scikit-learn's manner."""

from ksparse.estimators.classifier import SparseClassifier
from ksparse.estimators.cv import SparseClassifierCV, SparseRegressorCV
from ksparse.estimators.factors import factors
from ksparse.estimators.pca import SparsePCA
from ksparse.estimators.portfolio import SparsePortfolio
from ksparse.estimators.refit import Refit, standard_errors
from ksparse.estimators.regressor import SparseRegressor
from ksparse.estimators.stability import Stability, selection_stability
from ksparse.estimators.walk_forward import WalkForward
from ksparse.models.frontier import Frontier

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
