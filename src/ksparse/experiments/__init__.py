"""The paper's experiments: call one for its tidy table; `ksparse reproduce` runs them and writes a report."""

from ksparse.experiments.tables import EXPERIMENTS, Experiment, pitprops, table2, table3, table4, table5

__all__ = ["EXPERIMENTS", "Experiment", "pitprops", "table2", "table3", "table4", "table5"]
