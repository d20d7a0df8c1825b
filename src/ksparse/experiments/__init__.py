"""The paper's experiments, each a function that returns a tidy table; `ksparse reproduce` runs them and writes a report."""

from ksparse.experiments.pitprops import pitprops
from ksparse.experiments.table2 import table2
from ksparse.experiments.table3 import table3
from ksparse.experiments.table4 import table4
from ksparse.experiments.table5 import table5

__all__ = ["pitprops", "table2", "table3", "table4", "table5"]
