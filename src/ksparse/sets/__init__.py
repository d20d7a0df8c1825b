"""The sets C."""

from ksparse.numerics.constraints import Linear
from ksparse.sets.base import ConvexSet, require_length, require_sparse_member
from ksparse.sets.box import Box
from ksparse.sets.budget_box import BudgetBox
from ksparse.sets.custom import CustomSet
from ksparse.sets.hyperplane import Hyperplane
from ksparse.sets.l1_ball import L1Ball
from ksparse.sets.l2_ball import L2Ball, NonnegativeBall
from ksparse.sets.nonnegative import Nonnegative
from ksparse.sets.polyhedron import Polyhedron
from ksparse.sets.simplex import Simplex
from ksparse.sets.whole_space import WholeSpace

__all__ = ["Box", "BudgetBox", "ConvexSet", "CustomSet", "Hyperplane", "L1Ball", "L2Ball", "Linear", "Nonnegative",
           "NonnegativeBall", "Polyhedron", "Simplex", "WholeSpace", "require_length",
           "require_sparse_member"]  # fmt: skip
