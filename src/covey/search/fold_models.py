"""The selected model without the rows of each fold: what prediction intervals are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from covey.groups import Groups
from covey.search.problem import Validation, in_parts
from covey.search.rules import Rule
from covey.validation import FloatArray, on_host

__all__ = ["FoldModels", "fold_models"]


@dataclass(frozen=True)
class FoldModels:
    """The models without the rows of each fold of the first deal, in the user's columns and units.

    Attributes
    ----------
    coefs : scipy.sparse.csr_array, shape (n_folds, n_outputs * n_columns)
        Coefficients of the columns of X, output by output.
    intercepts : ndarray, shape (n_folds, n_outputs)
    eta : ndarray, shape (n_rows, n_folds, n_outputs)
        Linear predictors of all rows without offsets; of the validation rows, if there are any.
    held_out, trained : ndarray of bool, shape (n_rows, n_folds)
        The rows that each model is scored on, and those that it was fitted on.
    validation : Validation or None
        The validation rows, if they are the rows of `eta`.
    """

    coefs: sp.csr_array
    intercepts: FloatArray
    eta: FloatArray
    held_out: NDArray[np.bool_]
    trained: NDArray[np.bool_]
    validation: Validation | None


def fold_models(groups: Groups, choice: Rule) -> FoldModels:
    """The model without the rows of each fold of the first deal, which were not asked which model to choose, either."""
    found, posed = choice.found, choice.found.posed
    folds = [training for training in found.trainings if training.split.test]
    m, width = posed.scale.size, posed.working.layout.members.size
    coefs, levels = np.zeros((len(folds), m, width)), np.zeros((len(folds), m))
    for coef, level, training, weights in zip(coefs, levels, folds, choice.without_fold(), strict=True):
        for i in np.flatnonzero(weights):
            columns, values, intercept = choice.verdict.recipes[i].fit(training).on_columns()
            coef[:, columns] += weights[i] * values
            level += weights[i] * intercept
    design = posed.design if posed.validation is None else posed.validation.design
    flat = coefs.reshape(len(folds) * m, width)
    used = np.flatnonzero(flat.any(axis=0))
    eta = np.asarray(on_host(design.predict(used, flat[:, used], levels.ravel())), dtype=float)
    # with overlapping groups, the design has a copy of a shared column for every group
    flat = np.array([groups.from_contiguous(one) for one in flat]) if groups.overlapping else flat
    at = slice(0, posed.design.shape[0]) if posed.validation is None else slice(posed.design.shape[0], None)
    labels = posed.labels[at]
    return FoldModels(
        sp.csr_array(flat.reshape(len(folds), -1)),
        levels,
        eta.reshape(len(eta), len(folds), m),
        np.column_stack([in_parts(labels, training.split.test) for training in folds]),
        np.column_stack([in_parts(labels, training.split.train) for training in folds]),
        posed.validation,
    )
