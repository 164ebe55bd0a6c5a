"""Overlapping groups: the path runs on copies of shared columns, and their coefficients add up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from covey.engine.recorder import Snapshot, StopRule
from covey.groups import Groups
from covey.path import Path

__all__ = ["add_up", "in_columns"]


def add_up(path: Path, groups: Groups) -> Path:
    """A path of `groups.apart()` as one of the groups themselves."""
    copies = np.arange(groups.members.size)
    total = sp.csr_array(
        (np.ones(copies.size), (copies, groups.members)), shape=(groups.members.size, groups.n_columns)
    )
    coefs = sp.csr_array(path.coefs @ total)
    coefs.sort_indices()
    return replace(path, coefs=coefs, parts=path.coefs, groups=groups)


def in_columns(stop: StopRule, groups: Groups) -> StopRule:
    """A stop rule that is shown the columns themselves, a shared one once for every awake group that has it."""

    def ask(snapshot: Snapshot) -> bool:
        return stop(replace(snapshot, columns=groups.members[snapshot.columns]))

    return ask
