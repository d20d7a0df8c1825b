"""The paper's experiments: call one for its tidy table; `ksparse reproduce` runs them and writes a report."""

from ksparse.experiments.catalogue import EXPERIMENTS
from ksparse.experiments.experiment import Experiment
from ksparse.experiments.pitprops import pitprops
from ksparse.experiments.table2 import table2
from ksparse.experiments.table3 import table3
from ksparse.experiments.table4 import table4
from ksparse.experiments.table5 import table5

__all__ = ["EXPERIMENTS", "Experiment", "pitprops", "table2", "table3", "table4", "table5"]
