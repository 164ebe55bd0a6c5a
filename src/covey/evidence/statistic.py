"""The knockoff statistic: how fast groups and copies wake up on their joint path; and the filter that reads it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from covey.designs import as_design
from covey.designs.rows import count_rows
from covey.evidence.copies import Columns
from covey.groups import Groups
from covey.layout import offsets
from covey.progress import tell
from covey.search.paths import Paths
from covey.search.posed import pose
from covey.search.problem import Parts, Problem
from covey.search.table import Table
from covey.threads import fitting_threads
from covey.validation import FloatArray

# The level of the filter within each of several draws, as a share of the target; any value controls the rate. A lower
# level leaves room for groups that some draws miss, but a draw then needs more groups to select any.
LEVEL = 0.75

# How often a path tells how far it is.
STEPS = 50


def wake_up_rates(
    problem: Problem,
    columns: Columns,
    copies: FloatArray,
    swapped: NDArray[np.bool_],
    weights: FloatArray,
    max_groups: int,
) -> tuple[FloatArray, FloatArray]:
    """One over the time that each group and copy needs to wake up at the model that it joins; zero if it never does.

    What it accumulated earlier, before other groups woke up, does not count: a neighbour of a group with an effect
    accumulates that group's correlation, and so does the neighbour's copy.

    The response, its weights, the loss and the options are those of `problem`. `swapped` tells which copies are placed
    before their group: the first of two wins a tie, so a coin should decide. Groups and copies share `weights`, and the
    path ends with `max_groups` of both.
    """
    n_groups, starts = columns.ranks.size, offsets(columns.ranks)
    blocks: list[FloatArray] = [columns.held] if columns.held.shape[1] else []
    held = list(range(len(blocks)))
    for l in range(n_groups):
        span = slice(starts[l], starts[l + 1])
        pair = columns.Z[:, span], copies[:, span]
        blocks += pair[::-1] if swapped[l] else pair
    joint = replace(
        problem,
        design=as_design(np.hstack(blocks)),
        groups=Groups.from_sizes([block.shape[1] for block in blocks]),
        always=held,
        options={
            **problem.options,
            "standardize": "group",
            "group_weights": np.concatenate([np.ones(len(held)), np.repeat(weights, 2)]),
        },
    )
    with fitting_threads(joint.design.shape):
        paths = Paths(Table(pose(joint, Parts.everything(joint.weight, count_rows(joint.weight)))), [held])
        step = math.ceil(max_groups / STEPS)
        for most in range(step, max_groups + step, step):
            paths.advance(min(most, max_groups))
            tell("path of groups and copies", "group", min(most, max_groups), max_groups)
    rates = np.zeros(2 * n_groups)
    rates[np.array(paths.groups(0)[len(held) :], dtype=np.intp) - len(held)] = paths.paths[0].speeds[len(held) :]
    pairs = rates.reshape(-1, 2)
    pairs = np.where(swapped[:, None], pairs[:, ::-1], pairs)
    return pairs[:, 0], pairs[:, 1]


def signed_maximum(group: FloatArray, copy: FloatArray) -> FloatArray:
    """The larger of the two, negative if it is the copy's; zero if they are equal.

    >>> signed_maximum(np.array([2.0, 1.0, 3.0]), np.array([1.0, 4.0, 3.0]))
    array([ 2., -4.,  0.])
    """
    return np.asarray(np.maximum(group, copy) * np.sign(group - copy))


def filter_threshold(statistics: FloatArray, fdr: float) -> float:
    """The least t at which ``(1 + #{W <= -t}) / #{W >= t}`` is at most `fdr`; infinite if there is none.

    Barber and Candès' filter with offset 1.

    >>> filter_threshold(np.array([5.0, 4, 3, 2, -1]), 0.25), filter_threshold(np.array([5.0, 4, 3, -3.5]), 0.25)
    (2.0, inf)
    """
    for t in np.unique(np.abs(statistics[statistics != 0])):
        if (1 + (statistics <= -t).sum()) / max((statistics >= t).sum(), 1) <= fdr:
            return float(t)
    return float("inf")


def e_values(draws: FloatArray, level: float) -> FloatArray:
    r"""The mean over draws of ``L 1{W_l >= T} / (1 + #{W <= -T})``, where T is the filter's threshold at a level.

    The expectations for groups without an effect add up to at most L, whatever the dependence between draws (Ren and
    Barber, 2024). Therefore the largest set with :math:`e_l \ge L / (\alpha k)` has a false discovery rate of at most
    :math:`\alpha`, for any level. For one draw at level :math:`\alpha` it is the filter's selection.

    `draws` has one row per draw.
    """
    total = np.zeros(draws.shape[1])
    for statistics in draws:
        t = filter_threshold(statistics, level)
        if np.isfinite(t):
            total += statistics.size * (statistics >= t) / (1 + (statistics <= -t).sum())
    return total / len(draws)


def largest_set(e: FloatArray, fdr: float) -> float:
    """The least e-value of the largest set of k groups whose e-values are all at least ``L / (fdr k)``; else infinite.

    >>> largest_set(np.array([4.0, 4.0, 0.0, 0.0]), 0.5), largest_set(np.array([4.0, 0.0, 0.0, 0.0]), 0.1)
    (4.0, inf)
    """
    order = np.sort(e)[::-1]
    k = np.arange(1, order.size + 1)
    enough = np.flatnonzero(order >= order.size / (fdr * k) * (1 - 1e-12))
    return float(order[enough[-1]]) if enough.size else float("inf")
