"""The paper's methods."""

from ksparse.firstorder.methods.apdca import APDCA, NmAPG
from ksparse.firstorder.methods.base import Method, State
from ksparse.firstorder.methods.dca import L1DCA, MIPDCA
from ksparse.firstorder.methods.pdca import GIST, IHT, L1PDCA, PDCA
from ksparse.firstorder.methods.pdcae import PDCAe

__all__ = ["APDCA", "GIST", "IHT", "L1DCA", "L1PDCA", "MIPDCA", "PDCA", "Method", "NmAPG", "PDCAe", "State"]
