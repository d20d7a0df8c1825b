"""Supports one move away, ranked by what they would gain."""

from ksparse.search.neighbourhoods.base import Move, Neighbourhood, Trust
from ksparse.search.neighbourhoods.gradient import Gradient
from ksparse.search.neighbourhoods.priced import Priced
from ksparse.search.neighbourhoods.rayleigh import Rayleigh
from ksparse.search.neighbourhoods.rowwise import Rowwise

__all__ = ["Gradient", "Move", "Neighbourhood", "Priced", "Rayleigh", "Rowwise", "Trust"]
