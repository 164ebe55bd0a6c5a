"""Random halves of the rows, and the groups that the limit path finds in one of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel
from numpy.typing import NDArray

from covey.losses import Cox
from covey.losses.risk_sets import EVENT, STRATUM
from covey.search.problem import Problem
from covey.search.ranking import ranked_groups

__all__ = ["class_strata", "complementary_halves", "first_groups", "in_parallel"]


def first_groups(problem: Problem, half: NDArray[np.intp], n_first: int) -> list[int]:
    """The groups that half of the rows select, starting with the one that elimination keeps longest."""
    weight = np.zeros_like(problem.weight)
    weight[half] = problem.weight[half]
    return ranked_groups(replace(problem, weight=weight), n_first)


def class_strata(problem: Problem) -> NDArray[np.intp]:
    """The stratum of each row: every stratum is divided between the halves as evenly as possible.

    Strata are classes, or events and strata of survival times. Other responses need none, because a random half has
    some of all values.
    """
    loss, y, weight = problem.loss, problem.y, problem.weight
    if isinstance(loss, Cox):
        return np.unique(np.asarray(y)[:, [EVENT, STRATUM]], axis=0, return_inverse=True)[1].ravel()
    classes = loss.classes(y)
    if classes is None:
        return np.zeros(weight.size, dtype=np.intp)
    strata = np.unique(classes, return_inverse=True)[1]
    counts = np.bincount(strata[weight > 0])
    if counts.min() < 2:
        raise ValueError(
            f"Class {int(np.argmin(counts))} (counted from 0) has {counts.min()} row of positive weight, but each half "
            "of the rows needs one: put rare classes together, or leave them out."
        )
    return strata


def complementary_halves(
    rows: NDArray[np.intp], strata: NDArray[np.intp], n_pairs: int, rng: np.random.Generator
) -> list[NDArray[np.intp]]:
    """Pairs of disjoint halves of the rows, one after another; an odd row is left out.

    >>> a, b = complementary_halves(np.arange(6), np.array([0, 0, 0, 0, 1, 1]), 1, np.random.default_rng(0))
    >>> sorted([*a.tolist(), *b.tolist()]), int((a >= 4).sum()), int((b >= 4).sum())
    ([0, 1, 2, 3, 4, 5], 1, 1)
    """
    if rows.size < 4:
        raise ValueError(f"The rows are split in halves, and {rows.size} rows of positive weight are too few.")
    even = rows.size // 2 * 2
    halves = []
    for _ in range(n_pairs):
        shuffled = rng.permutation(rows)
        # sorted by stratum, so that every second row gives half of each
        place = rng.permutation(int(strata.max(initial=0)) + 1)[strata[shuffled]]
        order = shuffled[np.argsort(place, kind="stable")]
        halves += [order[:even:2], order[1:even:2]]
    return halves


def in_parallel(tasks: Iterable[object], n_jobs: int | None) -> Iterable[Any]:
    """Results in order, as they are finished; all at once if the backend has no generators."""
    try:
        return Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
    except ValueError:
        return Parallel(n_jobs=n_jobs)(tasks)
