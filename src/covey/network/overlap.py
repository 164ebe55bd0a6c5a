"""Overlapping groups: the path runs on copies of shared columns, and their coefficients add up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from covey.groups import Groups
from covey.network.snapshots import Snapshot, StopRule
from covey.validation import FloatArray

__all__ = ["InColumns"]


def _added_up(columns: NDArray[np.intp], coefs: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
    """The distinct columns, in order of appearance, with the sums of their coefficients; models are rows."""
    distinct, first, own = np.unique(columns, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    total = np.zeros((distinct.size, coefs.shape[0]))
    np.add.at(total, own, coefs.T)
    return distinct[order], np.ascontiguousarray(total[order].T)


class InColumns(StopRule):
    """A stop rule that sees each column once; a shared column has the sum of its coefficients."""

    def __init__(self, rule: StopRule, groups: Groups) -> None:
        self.rule, self.members = rule, groups.members

    def stop_at(self, snapshot: Snapshot) -> bool:
        """Whether the rule ends the path at this model, in terms of the columns."""
        columns, coefs = _added_up(self.members[snapshot.columns], snapshot.coef[None, :])
        return self.rule.stop_at(replace(snapshot, columns=columns, coef=coefs[0]))
