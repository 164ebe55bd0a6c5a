"""Groups that need others in the model: the parents of a group, and theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["ancestors"]


def ancestors(parents: Mapping[int, Sequence[int]], group: int) -> list[int]:
    """The parents of a group, and theirs; parents before children.

    >>> ancestors({2: [0, 1], 3: [2]}, 3)
    [0, 1, 2]
    """
    found: dict[int, None] = {}
    for parent in parents.get(group, ()):
        found |= dict.fromkeys([*ancestors(parents, parent), parent])
    return list(found)
