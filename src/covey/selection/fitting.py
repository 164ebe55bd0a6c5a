"""Fitting: how the candidates of a search are fitted and judged; one kind for squared loss, one for all others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from covey.limit.lockstep import Near, Paths
from covey.limit.ridges import Penalties
from covey.selection.candidates import CleanedModels
from covey.selection.scores import Scores
from covey.validation import FloatArray

__all__ = ["Fitting"]


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
        """Some groups on columns of unit variance; see `covey.limit.reweighted.DenseRows`."""

    @abstractmethod
    def kernel(self, shares: FloatArray) -> Any:
        """Inner products of the rows over all columns; see `covey.limit.kernel.RowKernel`."""

    def knot_errors(self, paths: Paths, judged: Sequence[int], first: int, last: int) -> FloatArray:
        """The summed loss of some models of the paths on their judging rows; shape (last - first + 1,)."""
        total = np.zeros(last - first + 1)
        for split in judged:
            total += self.scores(split).errors(self.knots(paths, split, first, last))
        return total
