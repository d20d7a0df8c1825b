"""The five experiments by name, in the paper's order."""

from __future__ import annotations

from ksparse.experiments.pitprops import pitprops
from ksparse.experiments.run import Job
from ksparse.experiments.table2 import table2
from ksparse.experiments.table3 import table3
from ksparse.experiments.table4 import table4
from ksparse.experiments.table5 import table5

EXPERIMENTS = {experiment.name: experiment for experiment in (table2, pitprops, table3, table4, table5)}


def jobs_of(names: list[str], quick: bool) -> list[Job]:
    """The jobs of some experiments, in the catalogue's order."""
    chosen = [experiment for name, experiment in EXPERIMENTS.items() if name in names]
    return [job for experiment in chosen for job in experiment.jobs(**experiment.quick if quick else {})]
