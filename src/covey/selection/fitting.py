"""Fitting: how candidates are fitted and scored; one subclass for squared loss, one for all other losses."""

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
from covey.selection.judge import Scores
from covey.selection.recipe import Cleaned
from covey.validation import FloatArray

__all__ = ["CleanedModels", "Fitting", "is_tried"]

# The sizes of sets on which ridges are tried grow by this factor: sets in between differ less than ridges do.
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
        Columns of the near groups' table.
    sizes : list of int
        The number of columns of each model.
    sets : dict
        The groups of each recipe without a ridge, as positions on the path.
    separated : frozenset of Cleaned
        Recipes without a ridge whose minimum lies at infinity; they get a small ridge.
    """

    recipes: list[Cleaned]
    W: FloatArray
    levels: FloatArray
    columns: NDArray[np.intp]
    sizes: list[int]
    sets: dict[Cleaned, list[int]]
    separated: frozenset[Cleaned] = frozenset()


class Fitting(ABC):
    """Fits and scores models of a posed problem.

    Parameters
    ----------
    near : Near
        The near groups and their table.
    n_always : int
        How many groups are in every model, unpenalised; they come first on every path.
    """

    def __init__(self, near: Near, n_always: int) -> None:
        self.near, self.posed, self.n_always = near, near.posed, n_always
        self.penalties = Penalties(near.posed.problem)

    @abstractmethod
    def scores(self, split: int) -> Scores:
        """The rows that a split is scored on."""

    @abstractmethod
    def knots(self, paths: Paths, split: int, first: int, last: int) -> FloatArray:
        """Predictions of models along a path on the scored rows of its split, in the form that `scores` takes."""

    @abstractmethod
    def cleaned(
        self, paths: Paths, round_: int, prefixes: Sequence[Sequence[int]], ridges: Sequence[float]
    ) -> list[CleanedModels]:
        """All candidates of the paths of all splits.

        Parameters
        ----------
        paths : Paths
            Advanced to their ends.
        round_ : int
        prefixes : sequence of sequences of int
            For each path, the lengths of the prefixes to eliminate from.
        ridges : sequence of float
        """

    @abstractmethod
    def predictions(self, models: CleanedModels, split: int) -> FloatArray:
        """Predictions of candidates on the scored rows of a split, in the form that `scores` takes."""

    @property
    def judged_as(self) -> int:
        """Identifies what the rows of a table of predictions are: only tables with equal numbers are comparable."""
        return 0

    @abstractmethod
    def hold_rows(self) -> None:
        """Score uncompressed rows from now on, as ridges on all columns of a wide design do."""

    @property
    @abstractmethod
    def slow_dense(self) -> bool:
        """Whether fits on all columns are so slow that a few are tried before the rest."""

    @abstractmethod
    def can_be_dense(self) -> bool:
        """Whether models on all columns are affordable: X may be on disk, or have too many rows."""

    @abstractmethod
    def dense_rows(self, groups: Any) -> Any:
        """Some groups on scaled columns; see `covey.limit.reweighted.DenseRows`."""

    @abstractmethod
    def kernel(self, shares: FloatArray) -> Any:
        """Inner products of the rows over all columns; see `covey.limit.kernel.RowKernel`."""

    def knot_errors(self, paths: Paths, judged: Sequence[int], first: int, last: int) -> FloatArray:
        """The summed loss of some models of the paths on their scored rows; shape (last - first + 1,)."""
        total = np.zeros(last - first + 1)
        for split in judged:
            total += self.scores(split).errors(self.knots(paths, split, first, last))
        return total


@cache
def is_tried(size: int, place: int) -> bool:
    """Whether ridges are tried on a set: on a whole prefix (place 0), and on sizes along a geometric series."""
    step = round(math.log(size) / math.log(SIZE_RATIO))
    return place == 0 or any(round(SIZE_RATIO**i) == size for i in (step - 1, step, step + 1))
