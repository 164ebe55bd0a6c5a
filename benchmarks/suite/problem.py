"""A problem, what a method gives for it, and how that is scored: the same for every method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold

from .families import Family

N_FOLDS = 5


class CannotRunError(Exception):
    """Why a method cannot run on a problem, or why a problem cannot be made here; the report prints it."""


@dataclass
class Fit:
    """What a method gives.

    `mean` has predicted means or probabilities of the test rows, rows x outputs, and `groups` the positions of the
    groups in the model, or None where the method has no groups. `notes` are kept with the measures; where another
    process did the work, its ``{"seconds": ...}`` replaces the processor time of this one.
    """

    mean: np.ndarray
    groups: np.ndarray | None = None
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass
class Problem:
    """Training rows, columns group after group, and the folds or validation rows by which every method tunes.

    A table of variables is given as it is, too: `table` has the rows to fit and the rows to test, and the columns of X
    are its variables encoded, one group per variable (`from_table`).
    """

    family: Family
    X: np.ndarray
    y: np.ndarray  # numbers; labels 0, 1, ...; counts; rows x responses; or covey.survival's times and events
    labels: np.ndarray  # of the columns: 0, 1, ... in order
    X_test: np.ndarray
    error: Callable[[np.ndarray], float]  # of means on the test rows, rows x outputs
    fold_of: np.ndarray | None = None  # the fold of each training row
    validation: tuple[np.ndarray, np.ndarray] | None = None
    outputs: int = 1
    active: np.ndarray | None = None  # the true groups where they are known
    names: list[str] | None = None  # of the groups
    table: tuple[pd.DataFrame, pd.DataFrame] | None = None
    always: tuple[int, ...] = ()  # groups that are in every model

    @cached_property
    def starts(self) -> np.ndarray:
        return np.flatnonzero(np.r_[True, np.diff(self.labels) > 0])

    @cached_property
    def sizes(self) -> np.ndarray:
        return np.diff(np.r_[self.starts, self.labels.size])

    @cached_property
    def independent(self) -> np.ndarray:
        """Columns for methods that cannot do with dependent ones; found once, so that it is not timed."""
        return independent(self.X, self.labels)

    def linear(self, coef: np.ndarray, intercept: Any, **notes: Any) -> Fit:
        """What a linear model gives: `coef` is columns x outputs."""
        eta = self.X_test @ coef + np.reshape(intercept, (1, -1))
        return Fit(self.family.mean(eta), np.unique(self.labels[np.any(coef != 0, axis=1)]), notes)

    def score(self, fit: Fit) -> dict[str, Any]:
        """The error, the groups, and where the truth is known, how many of them are false and missed."""
        measures: dict[str, Any] = {"error": self.error(fit.mean)}
        if fit.groups is not None:
            selected = sorted(int(group) for group in fit.groups)
            measures |= {"groups": len(selected), "n_groups": self.starts.size, "selected": selected}
            if self.active is not None:
                found = len(set(selected) & {int(group) for group in self.active})
                measures |= {"false": len(selected) - found, "missed": len(self.active) - found}
        return measures | fit.notes


Method = Callable[[Problem], Fit]


def independent(X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Columns that are no combination of a constant and earlier columns of their group.

    abess refuses constant columns, and its Newton steps go wrong on a factor that has all its levels.
    """
    used = []
    for columns in np.split(np.arange(X.shape[1]), np.flatnonzero(np.diff(labels)) + 1):
        basis = np.full((len(X), 1), len(X) ** -0.5)
        for j in columns:
            part = X[:, j] - basis @ (basis.T @ X[:, j])
            part -= basis @ (basis.T @ part)
            length = np.linalg.norm(part)
            if length > 1e-7 * np.linalg.norm(X[:, j]):
                used.append(j)
                basis = np.column_stack([basis, part / length])
    return np.array(used)


def folds(family: Family, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The fold of each row; classes are spread evenly over folds."""
    if not family.classes:
        return rng.permutation(len(y)) % N_FOLDS
    splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=int(rng.integers(2**31)))
    fold_of = np.empty(len(y), dtype=int)
    for fold, (_, out) in enumerate(splitter.split(np.zeros((len(y), 1)), y)):
        fold_of[out] = fold
    return fold_of
