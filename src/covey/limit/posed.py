"""Posed: a regression problem with the parts of its rows, and how its groups are fitted.

Limit paths work on the groups next in line (the near ones), whose rows are in hand. All others are looked at now and
then, by one product with X for many models at once (`covey.limit.lockstep`).
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

# Near columns at first: enough that few groups are missing, few enough to be worked on at every event.
NEAR_COLUMNS = 500

# Up to this many columns all groups are near where there are half as many rows: Gram matrices are then small beside X.
ALL_NEAR = 3000


def near_limits(n_rows: int) -> tuple[int, int]:
    """How many columns to begin with, and up to how many all of them."""
    return NEAR_COLUMNS, max(2 * NEAR_COLUMNS, min(2 * n_rows, ALL_NEAR))


@dataclass(frozen=True)
class Validation:
    """Rows of another design that judge the models."""

    design: Design
    y: Any
    weight: Any
    offset: Any = None


@dataclass(frozen=True)
class Posed(ABC):
    """What all limit paths of one search share.

    Attributes
    ----------
    problem : WorkingProblem
        Of all rows.
    parts : list of row vectors
        Weights of the rows of each part, zero elsewhere; they add up to the weights of all rows.
    counts : list of float
        How many rows each part has, that of the validation rows included.
    splits : list of Split
        The last one is that of the model: all rows.
    weights : ndarray, shape (n_groups,)
        Of the groups.
    intercept : bool
    factors : Factors or None
        Common factors that are in every model of a path while it decides which group comes next.
    validation : Validation or None
        Rows of another design: the last part.
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
        """What is added to a prediction in working coordinates, after `scale`; shape (n_outputs,)."""

    @property
    @abstractmethod
    def scale(self) -> FloatArray:
        """What a prediction in working coordinates is multiplied by; shape (n_outputs,)."""

    @property
    def contrasts(self) -> FloatArray:
        """What predictors are multiplied by to be those of the outputs; see `covey.limit.response.Response`."""
        return np.eye(self.scale.size)

    @abstractmethod
    def null_norms(self) -> FloatArray:
        """The norm of each group of the gradient at the model without groups; shape (n_groups,)."""

    @abstractmethod
    def rows(self, near: NDArray[np.intp]) -> Any:
        """The table of some groups."""

    @abstractmethod
    def wider_rows(self, rows: Any, near: NDArray[np.intp], n_known: int) -> Any:
        """The table of some groups, given that of the first so many of them."""

    @abstractmethod
    def objective(self, rows: Any, split: int) -> Objective:
        """The loss on the rows that a split is fitted on, given a table of some groups."""

    @abstractmethod
    def gradients(
        self, near: NDArray[np.intp], rows: Any, objectives: Sequence[Any], segments: Sequence[tuple[int, int]]
    ) -> tuple[NDArray[np.intp], FloatArray]:
        """Norms of all groups of the gradient at models of some paths; one reading of X.

        Parameters
        ----------
        near, rows
            The groups in hand, and their table.
        objectives : sequence of Objective
            One per split.
        segments : sequence of (int, int)
            The models of each split: those on the first m groups that joined, for m from the first to the last.

        Returns
        -------
        which : ndarray of int, shape (n_models,)
            The split of each model.
        norms : ndarray, shape (n_models, n_groups)
        """

    def n_rows(self, split: Split) -> float:
        """How many rows the models of a split are fitted on: a row of weight two is two rows."""
        return sum(self.counts[k] for k in split.train)

    def nearest(self) -> NDArray[np.intp]:
        """The groups to begin with, in order: all of them, or those of largest gradient."""
        ranks = self.problem.ranks
        held, every = self.near_columns()
        if ranks.sum() <= every:
            return np.arange(ranks.size)
        order = np.argsort(-self.null_norms() / self.weights, kind="stable")
        count = int(np.searchsorted(np.cumsum(ranks[order]), held)) + 1
        return np.sort(order[:count])

    def near_columns(self) -> tuple[int, int]:
        """How many columns to begin with, and up to how many all of them."""
        design = self.problem.design
        held, every = near_limits(design.shape[0])
        # a reading of X on a device takes less time than work on many columns here
        return held // 2 if design.on_device else held, every

    def to_user(
        self, groups: Sequence[int], W: FloatArray, levels: FloatArray
    ) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
        """Models of some groups as models of the columns of X.

        Parameters
        ----------
        groups : sequence of int
        W, levels : ndarray, shape (..., n_contrasts, k) and (..., n_contrasts)
            Coefficients of the working columns, group after group, and intercepts.

        Returns
        -------
        columns, coef, intercept : shape (p,), (..., n_outputs, p) and (..., n_outputs)
        """
        columns, loadings, offset = self.problem.combination(list(groups))
        return columns, self.outputs(W @ loadings.T), self.levels(levels - W @ offset)

    def outputs(self, W: FloatArray) -> FloatArray:
        """Coefficients of contrasts as those of the outputs, in the user's units; shape (..., n_outputs, k)."""
        return np.asarray((self.contrasts.T @ W) * self.scale[:, None])

    def levels(self, levels: FloatArray) -> FloatArray:
        """Intercepts of contrasts as those of the outputs, in the user's units; shape (..., n_outputs)."""
        return np.asarray(self.level + (levels @ self.contrasts) * self.scale)
