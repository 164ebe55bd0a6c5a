"""Posed: a regression problem with its rows divided into parts, ready for limit paths.

Limit paths work on the groups most likely to wake next (the near ones), whose rows are in memory. All others are
checked now and then, by one product with X for many models at once (`covey.limit.lockstep`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.designs import Design, Factors
from covey.limit.events import Objective
from covey.limit.rows import Split
from covey.preprocess import WorkingProblem
from covey.validation import FloatArray

__all__ = ["Posed", "Validation", "near_limits"]

# Near columns at the start: enough that few groups are missing, few enough to update at every event.
NEAR_COLUMNS = 500

# With up to this many columns, and at least half as many rows, all groups are near: Gram matrices are then small.
ALL_NEAR = 3000


def near_limits(n_rows: int) -> tuple[int, int]:
    """The number of near columns at the start, and the number of columns up to which all are near."""
    return NEAR_COLUMNS, max(2 * NEAR_COLUMNS, min(2 * n_rows, ALL_NEAR))


@dataclass(frozen=True)
class Validation:
    """Rows of another design on which models are scored."""

    design: Design
    y: Any
    weight: Any
    offset: Any = None


@dataclass(frozen=True)
class Posed(ABC):
    """The data that all limit paths of one search share.

    Attributes
    ----------
    problem : WorkingProblem
        On all rows.
    parts : list of row vectors
        For each part, the weights of its rows, zero elsewhere; they add up to the weights of all rows.
    counts : list of float
        The number of rows per part, including the validation part.
    splits : list of Split
        The last one is the final model's: all rows.
    weights : ndarray, shape (n_groups,)
        Weights of the groups.
    intercept : bool
    factors : Factors or None
        Common factors that are in every model while the path decides which group comes next.
    validation : Validation or None
        Rows of another design; they form the last part.
    """

    problem: WorkingProblem
    parts: list[Any]
    counts: list[float]
    splits: list[Split]
    weights: FloatArray
    intercept: bool
    factors: Factors | None
    validation: Validation | None

    @property
    @abstractmethod
    def level(self) -> FloatArray:
        """The constant added to a prediction in working coordinates, after `scale`; shape (n_outputs,)."""

    @property
    @abstractmethod
    def scale(self) -> FloatArray:
        """The factor that multiplies a prediction in working coordinates; shape (n_outputs,)."""

    @property
    def contrasts(self) -> FloatArray:
        """The matrix that maps working predictors to outputs; see `covey.limit.response.Response`."""
        return np.eye(self.scale.size)

    @abstractmethod
    def null_norms(self) -> FloatArray:
        """The norm of the gradient on each group at the null model; shape (n_groups,)."""

    @abstractmethod
    def rows(self, near: NDArray[np.intp]) -> Any:
        """The table of some groups."""

    @abstractmethod
    def wider_rows(self, rows: Any, near: NDArray[np.intp], n_known: int) -> Any:
        """The table of some groups, given the table of the first `n_known` of them."""

    @abstractmethod
    def objective(self, rows: Any, split: int) -> Objective:
        """The loss on the training rows of a split, given a table of some groups."""

    @abstractmethod
    def gradients(
        self, near: NDArray[np.intp], rows: Any, objectives: Sequence[Any], segments: Sequence[tuple[int, int]]
    ) -> tuple[NDArray[np.intp], FloatArray]:
        """Gradient norms of all groups at models of some paths, in one pass over X.

        Parameters
        ----------
        near, rows
            The near groups and their table.
        objectives : sequence of Objective
            One per split.
        segments : sequence of (int, int)
            For each split, the range of m: its models are those on the first m groups that joined.

        Returns
        -------
        which : ndarray of int, shape (n_models,)
            The split of each model.
        norms : ndarray, shape (n_models, n_groups)
        """

    def n_rows(self, split: Split) -> float:
        """The number of rows that the models of a split are fitted on; a row of weight two counts as two rows."""
        return sum(self.counts[k] for k in split.train)

    def nearest(self) -> NDArray[np.intp]:
        """The near groups at the start, in order: all groups, or those with the largest gradients."""
        ranks = self.problem.ranks
        held, every = self.near_columns()
        if ranks.sum() <= every:
            return np.arange(ranks.size)
        order = np.argsort(-self.null_norms() / self.weights, kind="stable")
        count = int(np.searchsorted(np.cumsum(ranks[order]), held)) + 1
        return np.sort(order[:count])

    def near_columns(self) -> tuple[int, int]:
        """The number of near columns at the start, and the number of columns up to which all are near."""
        design = self.problem.design
        held, every = near_limits(design.shape[0])
        # a pass over X on a device is cheaper than work on many columns here
        return held // 2 if design.on_device else held, every

    def to_user(
        self, groups: Sequence[int], W: FloatArray, levels: FloatArray
    ) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
        """Convert models on some groups to models on the columns of X.

        Parameters
        ----------
        groups : sequence of int
        W, levels : ndarray, shape (..., n_contrasts, k) and (..., n_contrasts)
            Coefficients of the working columns, group by group, and intercepts.

        Returns
        -------
        columns, coef, intercept : shape (p,), (..., n_outputs, p) and (..., n_outputs)
        """
        columns, loadings, offset = self.problem.combination(list(groups))
        return columns, self.outputs(W @ loadings.T), self.levels(levels - W @ offset)

    def outputs(self, W: FloatArray) -> FloatArray:
        """Convert coefficients of contrasts to outputs in the user's units; shape (..., n_outputs, k)."""
        return np.asarray((self.contrasts.T @ W) * self.scale[:, None])

    def levels(self, levels: FloatArray) -> FloatArray:
        """Convert intercepts of contrasts to outputs in the user's units; shape (..., n_outputs)."""
        return np.asarray(self.level + (levels @ self.contrasts) * self.scale)
