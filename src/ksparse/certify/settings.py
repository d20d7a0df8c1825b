"""The numbers that steer a proof, in one place. None of them can make a bound wrong."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TreeSettings:
    """How the tree grows."""

    largest: int = 6_000  # variables: H is held as a whole, and factorised
    together: int = 64  # nodes branched on in a round
    share: int = 64  # nodes that one thread bounds: enough to make matrix products of the steps
    steps: int = 60  # of the relaxation at a node, which begins where its parent ended
    patience: int = 24  # steps without a better bound, after which a node is left
    root_steps: int = 60  # the same for each round of weights, which begins where the last one ended
    root_patience: int = 36
    root_steps_large: int = (
        300  # the same where there are many variables: there the steps decide how good D is (gaps.py)
    )
    root_patience_large: int = 100
    rounds: int = 20  # of weights for D, at least
    watched: int = 10  # of the last of them: another comes while these
    risen: float = 0.05  # have closed so much of what is left to the cut
    rounds_large: int = 8  # the same where each takes seconds
    small: int = 300  # variables that are not many
    medium: int = 600  # variables up to which a round takes no seconds
    shrunk: float = 0.8  # of the variables are left: D is chosen anew for them
    boxed: int = 300  # variables up to which every node has a box of its own, where C does not bound them all (gaps.py)
    looks: int = 8  # rounds between two descents from where the tree is most open
    doubt: float = 1e-3  # what an entry of size 0 counts beside others, where one is chosen to branch on
    models: int = 10  # of a loss that is not quadratic, at the root
    rises: float = 0.01  # of the way to the cut: what another model must bring
    together_component: int = 16  # nodes of a component branched on in a round
    thresholds: int = 40  # values of ρ at the root of a component
    nearby: tuple[float, ...] = (1.0, 0.9, 1.1)  # of the parent's, at the other nodes
