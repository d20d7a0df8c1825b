"""Problems to try the methods on."""

from ksparse.datasets.synthetic import SparseRegression, table2, table5

__all__ = ["SparseRegression", "table2", "table5"]
