"""The face for skfolio (extra `ksparse[skfolio]`)."""

from ksparse.estimators.skfolio import SparseMeanRisk

__all__ = ["SparseMeanRisk"]
