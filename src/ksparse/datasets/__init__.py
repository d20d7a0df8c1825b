"""Problems to try the methods on."""

from ksparse.datasets.pit_props import pit_props
from ksparse.datasets.synthetic import SparseRegression, table2, table5

__all__ = ["SparseRegression", "pit_props", "table2", "table5"]
