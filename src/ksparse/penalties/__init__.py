"""The DC penalties g = g1 − g2."""

from ksparse.penalties.base import L1Based, NoPenalty, Penalty, Separable, Undivided
from ksparse.penalties.cardinality import BigM, Cardinality
from ksparse.penalties.folded_concave import MCP, SCAD, CappedL1, LogSum
from ksparse.penalties.l1 import L1, L1MinusL2
from ksparse.penalties.top_k import TopK1, TopK2

__all__ = ["L1", "MCP", "SCAD", "BigM", "CappedL1", "Cardinality", "L1Based", "L1MinusL2", "LogSum", "NoPenalty",
           "Penalty", "Separable", "TopK1", "TopK2", "Undivided"]  # fmt: skip
