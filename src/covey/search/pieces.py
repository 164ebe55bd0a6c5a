"""Selection within groups: the single columns of a group may be selected in its place.

A problem is divided by repeating every column as a group of its own, a piece. The search runs a path of the groups,
then one of the columns alone, and then one that starts from the columns of the simplest model so far, so that
elimination can drop single columns of groups that woke up as one. Models of groups win ties. What is published is in
terms of the groups again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import scipy.sparse as sp

from covey.groups import Groups
from covey.path import Path
from covey.search.problem import Problem
from covey.search.select import Selected, combined_strengths
from covey.validation import FloatArray, IntArray, on_host

__all__ = ["select_within"]


def select_within(problem: Problem, search: Callable[[Problem], Selected]) -> Selected:
    """Select groups, or columns within them, with a search of a divided problem."""
    divided = _divided(problem)
    return search(problem) if divided is None else _joined(problem, divided, search(divided))


def _divided(problem: Problem) -> Problem | None:
    """The problem with the columns of groups as their pieces; None if no group has several columns."""
    groups, always = problem.groups, set(problem.always)
    if groups.overlapping:
        raise ValueError("within='columns' needs groups without a column in common: give each column to one group.")
    weights = problem.options["group_weights"]
    if weights is not None and not isinstance(weights, str):
        raise ValueError("within='columns' takes group_weights='noise', 'sqrt' or None, not one number per group.")
    several = [l for l, size in enumerate(groups.sizes) if size > 1 and l not in always]
    if not several:
        return None
    n, pieces = groups.n_groups, {}
    lists: list[IntArray | list[int]] = list(np.split(groups.members, groups.starts[1:-1]))
    for l in several:
        pieces[l] = range(len(lists), len(lists) + int(groups.sizes[l]))
        lists += [[j] for j in groups.members[groups.starts[l] : groups.starts[l + 1]]]
    both = Groups.from_lists(lists, groups.n_columns, overlap=True)
    families = np.arange(len(lists)) >= n
    return replace(problem, groups=both, families=families.astype(np.intp), n_mains=n, pieces=pieces)


def _joined(problem: Problem, divided: Problem, found: Selected) -> Selected:
    """What was selected, in terms of the groups."""
    groups, names = problem.groups, problem.groups.names
    group_of = {piece: l for l, pieces in divided.pieces.items() for piece in pieces}
    by_output = _strengths(problem, found, [group_of[l] for l in found.groups if l in group_of])
    strengths = combined_strengths(by_output, found.output_units)
    rivals = found.rivals
    if rivals is not None:  # groups of the divided problem are called by their positions
        by_name = {
            part: [[names[l] for l in some] for some in rivals[part]] for part in ("groups", "without", "instead")
        }
        rivals = rivals.assign(**{part: pd.Series(sets, index=rivals.index) for part, sets in by_name.items()})
    return replace(
        found, by_group=found.coef[:, groups.members],
        groups=list(dict.fromkeys(group_of.get(l, l) for l in found.groups)), strengths=strengths, by_output=by_output,
        path=_joined_path(found.path, groups, strengths), rivals=rivals,
        frequencies=None if found.frequencies is None else found.frequencies[: groups.n_groups],
    )  # fmt: skip


def _strengths(problem: Problem, found: Selected, divided: list[int]) -> FloatArray:
    """By output, the standard deviation of the contribution of groups that were divided; of others, what was found."""
    groups, q = problem.groups, np.asarray(problem.weight) / np.sum(problem.weight)
    out = found.by_output[:, : groups.n_groups].copy()
    for l in dict.fromkeys(divided):
        columns = np.sort(groups.members[groups.starts[l] : groups.starts[l + 1]])
        coef = found.coef[:, columns]
        part = np.asarray(on_host(problem.design.predict(columns, coef, np.zeros(len(coef)))), dtype=float)
        part = part - q @ part if problem.options["fit_intercept"] else part
        out[:, l] = np.sqrt(q @ part**2)
    return out


def _joined_path(path: Path, groups: Groups, strengths: FloatArray) -> Path:
    """The path of the groups, which ends in the selected model."""
    assert path.strengths is not None
    before = path.strengths[:-1, : groups.n_groups]
    table = sp.csr_array(sp.vstack([before, sp.csr_array(strengths[None, :])]))
    return replace(path, groups=groups, parts=None, strengths=table)
