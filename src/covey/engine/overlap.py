"""Overlapping groups: the path runs on copies of shared columns, and their coefficients add up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from covey.engine.snapshots import Prospects, Snapshot, StopRule
from covey.groups import Groups
from covey.path import Path
from covey.validation import FloatArray

__all__ = ["InColumns", "add_up", "added_up"]


def add_up(path: Path, groups: Groups) -> Path:
    """A path of `groups.apart()` as one of the groups themselves."""
    copies = np.arange(groups.members.size)
    total = sp.csr_array(
        (np.ones(copies.size), (copies, groups.members)), shape=(groups.members.size, groups.n_columns)
    )
    coefs = sp.csr_array(path.coefs @ total)
    coefs.sort_indices()
    return replace(path, coefs=coefs, parts=path.coefs, groups=groups)


def added_up(columns: NDArray[np.intp], coefs: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
    """Every column once, in the order in which they came, with the sum of its coefficients; models are rows."""
    distinct, first, own = np.unique(columns, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    total = np.zeros((distinct.size, coefs.shape[0]))
    np.add.at(total, own, coefs.T)
    return distinct[order], np.ascontiguousarray(total[order].T)


class InColumns:
    """A stop rule that is shown the columns themselves: a shared one once, with the sum of its coefficients."""

    def __init__(self, stop: StopRule, groups: Groups) -> None:
        self.stop, self.members = stop, groups.members
        if hasattr(stop, "look_ahead"):
            self.look_ahead = self._look_ahead

    def __call__(self, snapshot: Snapshot) -> bool:
        return self.stop(self._translate(snapshot))

    def _translate(self, snapshot: Snapshot) -> Snapshot:
        columns, coefs = added_up(self.members[snapshot.columns], snapshot.coef[None, :])
        return replace(snapshot, columns=columns, coef=coefs[0])

    def _look_ahead(self, prospects: Prospects) -> bool:
        settling, following = (
            [move._replace(columns=self.members[move.columns]) for move in moves]
            for moves in (prospects.settling, prospects.next)
        )
        now = self._translate(prospects.now)
        return bool(self.stop.look_ahead(replace(prospects, now=now, settling=settling, next=following)))  # type: ignore[attr-defined]
