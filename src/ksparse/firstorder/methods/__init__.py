"""The paper's methods, one file each, and their names."""

from ksparse.firstorder.methods.apdca import APDCA
from ksparse.firstorder.methods.base import Method, State
from ksparse.firstorder.methods.dca_l1 import L1DCA
from ksparse.firstorder.methods.dca_mip import MIPDCA
from ksparse.firstorder.methods.gist import GIST
from ksparse.firstorder.methods.iht import IHT
from ksparse.firstorder.methods.nmapg import NmAPG
from ksparse.firstorder.methods.pdca import PDCA
from ksparse.firstorder.methods.pdca_l1 import L1PDCA
from ksparse.firstorder.methods.pdcae import PDCAe

__all__ = ["APDCA", "GIST", "IHT", "L1DCA", "L1PDCA", "MIPDCA", "PDCA", "Method", "NmAPG", "PDCAe", "State"]
