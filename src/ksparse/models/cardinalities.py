"""How many names of each sector: what users say of it, made into the core's `group_limits`, and whether it can be met."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ksparse.errors import InfeasibleError
from ksparse.util.arrays import Vector
from ksparse.util.checks import check_integer

ARGUMENT = "group_cardinalities"


@dataclass(frozen=True)
class Cardinalities:
    """The least and the most names of some groups that share no asset."""

    group: Vector  # of each asset, as a number; −1 where its group has no limits
    limits: dict[Any, tuple[int, int | None]]  # of group 0, 1, …, by what the user calls them

    @classmethod
    def read(cls, given: Any, members: Mapping[Any, Vector], n: int) -> Cardinalities | None:
        """From one number for all groups, or a mapping from group to the most, or to (least, most); None where nothing is said."""
        if given is None:
            return None
        if not members:
            raise ValueError(f"{ARGUMENT} needs groups: which assets belong to which")
        if isinstance(given, numbers.Integral) and not isinstance(given, bool):
            given = dict.fromkeys(members, given)
        if not isinstance(given, Mapping):
            raise TypeError(
                f"{ARGUMENT} must be one whole number or a mapping from group to the most, or (least, most), got {given!r}"
            )
        group, limits = np.full(n, -1, dtype=np.intp), {}
        for place, (name, said) in enumerate(given.items()):
            if name not in members:
                raise ValueError(f"{ARGUMENT} names {name!r}, which is not among the groups")
            limits[name] = _limits(name, said)
            twice = members[name][group[members[name]] >= 0]
            if twice.size:
                raise ValueError(
                    f"{ARGUMENT} limits {list(limits)[group[twice[0]]]!r} and {name!r}, which share asset {twice[0]}: groups with limits "
                    "must not overlap"
                )
            group[members[name]] = place
        return cls(group, limits)

    def for_core(self, group: Vector | None = None) -> tuple[list[int], dict[int, tuple[int, int | None]]]:
        """As `group_limits` of `minimize`, for the assets or for variables of these groups."""
        labels = (self.group if group is None else group).tolist()
        return labels, {place: said for place, said in enumerate(self.limits.values()) if place in labels}

    def on(self, shown: Vector) -> Cardinalities:
        """The same for some of the assets; a group that must have names and has no asset is not met."""
        for place, (name, (least, _)) in enumerate(self.limits.items()):
            if least and not (self.group[shown] == place).any():
                raise InfeasibleError(
                    f"{ARGUMENT} asks for at least {least} of {name!r}, of which no asset can be used"
                )
        return replace(self, group=self.group[shown])

    @property
    def asking(self) -> bool:
        """Whether some group must have names."""
        return any(least for least, _ in self.limits.values())

    def require(self, k: int, inside: Vector, open_: Vector, floor: float) -> None:
        """`InfeasibleError` where no k names obey, of those that are open and with those that are inside; the message says which group."""
        needed = int(np.count_nonzero(self.group[inside] < 0))
        for place, (name, (least, most)) in enumerate(self.limits.items()):
            if least and floor == 0:
                raise ValueError(
                    f"{ARGUMENT} asks for at least {least} of {name!r}: say what it is to hold a name, by min_weight above 0"
                )
            held, usable = (int(np.count_nonzero(self.group[which] == place)) for which in (inside, open_))
            if most is not None and held > most:
                raise InfeasibleError(
                    f"{ARGUMENT} allows {most} of {name!r}, of which {held} are held whatever else is"
                )
            if usable < least:
                raise InfeasibleError(
                    f"{ARGUMENT} asks for at least {least} of {name!r}, of which {usable} can be used"
                )
            needed += max(held, least)
        if needed > k:
            raise InfeasibleError(
                f"{ARGUMENT} and the names that are held whatever else is make {needed} names, more than k = {k}"
            )

    def obeyed(self, x: Vector) -> bool:
        """Whether weights keep to it."""
        held = np.bincount(self.group[x != 0] + 1, minlength=len(self.limits) + 1)[1:]
        return all(
            least <= count <= (count if most is None else most)
            for count, (least, most) in zip(held, self.limits.values(), strict=True)
        )


def _limits(name: Any, said: Any) -> tuple[int, int | None]:
    if isinstance(said, tuple | list):
        if len(said) != 2:
            raise ValueError(f"{ARGUMENT} must give {name!r} the most, or (least, most), got {said!r}")
        least = check_integer(said[0], f"the least of {ARGUMENT} for {name!r}", 0)
        most = None if said[1] is None else check_integer(said[1], f"the most of {ARGUMENT} for {name!r}", 0)
        if most is not None and least > most:
            raise ValueError(f"{ARGUMENT} asks for at least {least} and at most {most} of {name!r}")
        return least, most
    return 0, check_integer(said, f"{ARGUMENT} for {name!r}", 0)
