"""The face for skfolio (extra `ksparse[skfolio]`)."""

from ksparse.portfolio.skfolio import SparseMeanRisk

__all__ = ["SparseMeanRisk"]
