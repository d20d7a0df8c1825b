"""The DC penalties g = g1 − g2, one file each."""

from ksparse.penalties.base import L1Based, NoPenalty, Penalty, Separable, Whole
from ksparse.penalties.capped_l1 import CappedL1
from ksparse.penalties.cardinality import BigM, Cardinality
from ksparse.penalties.l1 import L1
from ksparse.penalties.l1_minus_l2 import L1MinusL2
from ksparse.penalties.log_sum import LogSum
from ksparse.penalties.mcp import MCP
from ksparse.penalties.scad import SCAD
from ksparse.penalties.top_k1 import TopK1
from ksparse.penalties.top_k2 import TopK2

__all__ = [
    "L1",
    "MCP",
    "SCAD",
    "BigM",
    "CappedL1",
    "Cardinality",
    "L1Based",
    "L1MinusL2",
    "LogSum",
    "NoPenalty",
    "Penalty",
    "Separable",
    "TopK1",
    "TopK2",
    "Whole",
]
