"""Estimators in scikit-learn's manner."""

from ksparse.estimators.classifier import SparseClassifier
from ksparse.estimators.regressor import SparseRegressor

__all__ = ["SparseClassifier", "SparseRegressor"]
