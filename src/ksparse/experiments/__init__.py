"""Experiments of the paper: each is a function that returns a tidy table; `ksparse reproduce` writes a report."""

from ksparse.experiments.tables import EXPERIMENTS, Experiment, pitprops, table2, table3, table4, table5

__all__ = ["EXPERIMENTS", "Experiment", "pitprops", "table2", "table3", "table4", "table5"]
