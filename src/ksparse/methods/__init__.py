"""The paper's methods, one file each, and their names."""

from ksparse.methods.apdca import APDCA
from ksparse.methods.base import Method, State
from ksparse.methods.dca_l1 import L1DCA
from ksparse.methods.dca_mip import MIPDCA
from ksparse.methods.gist import GIST
from ksparse.methods.iht import IHT
from ksparse.methods.nmapg import NmAPG
from ksparse.methods.pdca import PDCA
from ksparse.methods.pdca_l1 import L1PDCA
from ksparse.methods.pdcae import PDCAe

__all__ = ["APDCA", "GIST", "IHT", "L1DCA", "L1PDCA", "MIPDCA", "PDCA", "Method", "NmAPG", "PDCAe", "State"]
