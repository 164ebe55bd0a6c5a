"""Complementary halves of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.losses import Cox, Loss
from covey.losses.risk_sets import EVENT, STRATUM
from covey.search.splits import has_classes, one_value
from covey.validation import FloatArray

__all__ = ["complementary_halves", "strata_of"]


def strata_of(loss: Loss, y: Any, weight: FloatArray) -> NDArray[np.intp]:
    """The stratum of each row: every stratum is divided between the halves as evenly as possible.

    Strata are classes, or events and strata of survival times. Other responses need none, because a random half has
    some of all values.
    """
    if isinstance(loss, Cox):
        return np.unique(np.asarray(y)[:, [EVENT, STRATUM]], axis=0, return_inverse=True)[1].ravel()
    if not has_classes(loss, y):
        return np.zeros(weight.size, dtype=np.intp)
    strata = np.unique(one_value(loss, y, weight), return_inverse=True)[1]
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
        raise ValueError(
            f"Stability selection splits the rows in halves; {rows.size} rows of positive weight are too few."
        )
    even = rows.size // 2 * 2
    out = []
    for _ in range(n_pairs):
        shuffled = rng.permutation(rows)
        # sorted by stratum, so that every second row gives half of each
        place = rng.permutation(int(strata.max(initial=0)) + 1)[strata[shuffled]]
        order = shuffled[np.argsort(place, kind="stable")]
        out += [order[:even:2], order[1:even:2]]
    return out
