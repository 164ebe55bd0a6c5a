"""Fitting: how the candidates of a search are fitted and judged; one kind for squared loss, one for all others."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.limit.lockstep import Near, Paths
from covey.limit.ridges import Penalties
from covey.selection.recipe import Cleaned
from covey.selection.scores import Scores
from covey.validation import FloatArray

__all__ = ["CleanedModels", "Fitting", "is_tried"]

# Sizes of sets on which ridges are tried grow by this factor: neighbours differ by less than ridges do.
SIZE_RATIO = 1.2


@dataclass(frozen=True)
class CleanedModels:
    """Models of one split in working coordinates.

    Attributes
    ----------
    recipes : list of Cleaned
    W, levels : ndarray, shape (n_models, n_outputs, k) and (n_models, n_outputs)
        Coefficients and intercepts.
    columns : ndarray of int, shape (k,)
        Of the table of the near groups.
    sizes : list of int
        The number of columns of each model.
    sets : dict
        The groups of each recipe without a ridge, by their places on the path.
    separated : frozenset of Cleaned
        Recipes without a ridge whose minimum lies at infinity, so that they have a small one after all.
    """

    recipes: list[Cleaned]
    W: FloatArray
    levels: FloatArray
    columns: NDArray[np.intp]
    sizes: list[int]
    sets: dict[Cleaned, list[int]]
    separated: frozenset[Cleaned] = frozenset()


class Fitting(ABC):
    """Models of a posed problem.

    Parameters
    ----------
    near : Near
        The groups in hand.
    n_always : int
        How many groups are in every model and not penalised; they come first on every path.
    """

    def __init__(self, near: Near, n_always: int) -> None:
        self.near, self.posed, self.n_always = near, near.posed, n_always
        self.penalties = Penalties(near.posed.problem)

    @abstractmethod
    def scores(self, split: int) -> Scores:
        """The rows that judge a split."""

    @abstractmethod
    def knots(self, paths: Paths, split: int, first: int, last: int) -> FloatArray:
        """What models along a path predict on the rows that judge its split, as `scores` takes it."""

    @abstractmethod
    def cleaned(
        self, paths: Paths, round_: int, prefixes: Sequence[Sequence[int]], ridges: Sequence[float]
    ) -> list[CleanedModels]:
        """All candidates of the paths of all splits.

        Parameters
        ----------
        paths : Paths
            At their ends.
        round_ : int
        prefixes : sequence of sequences of int
            Lengths of each path to eliminate from.
        ridges : sequence of float
        """

    @abstractmethod
    def predictions(self, models: CleanedModels, split: int) -> FloatArray:
        """What candidates predict on the rows that judge a split, as `scores` takes it."""

    @property
    def judged_as(self) -> int:
        """What the rows of a table of predictions are: only tables with the same number can be compared."""
        return 0

    @abstractmethod
    def hold_rows(self) -> None:
        """Judge rows as they are from now on, as ridges on all columns of a wide design do."""

    @property
    @abstractmethod
    def slow_dense(self) -> bool:
        """Whether fits on all columns cost so much that none is made without a prospect."""

    @abstractmethod
    def can_be_dense(self) -> bool:
        """Whether models of all columns can be fitted: from disk they would be read too often, rows may be too many."""

    @abstractmethod
    def dense_rows(self, groups: Any) -> Any:
        """Some groups on scaled columns; see `covey.limit.reweighted.DenseRows`."""

    @abstractmethod
    def kernel(self, shares: FloatArray) -> Any:
        """Inner products of the rows over all columns; see `covey.limit.kernel.RowKernel`."""

    def knot_errors(self, paths: Paths, judged: Sequence[int], first: int, last: int) -> FloatArray:
        """The summed loss of some models of the paths on their judging rows; shape (last - first + 1,)."""
        total = np.zeros(last - first + 1)
        for split in judged:
            total += self.scores(split).errors(self.knots(paths, split, first, last))
        return total


@cache
def is_tried(size: int, place: int) -> bool:
    """Whether ridges are tried on a set of this size: all of a prefix, and sizes along a geometric series."""
    step = round(math.log(size) / math.log(SIZE_RATIO))
    return place == 0 or any(round(SIZE_RATIO**i) == size for i in (step - 1, step, step + 1))
