"""How far a nested score may be from the score on new rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from covey.validation import FloatArray

__all__ = ["NINE_IN_TEN", "fold_error", "pooled", "row_error"]

# A Gaussian variable is within this many standard deviations nine times out of ten. The number after ± is read as the
# range of the score on new rows, which one standard deviation would contain only two times out of three.
NINE_IN_TEN = 1.645


def pooled(loss: FloatArray, null: FloatArray, weight: FloatArray) -> float:
    """The share of the null model's loss that a model explains, over all rows."""
    null_loss = float(weight @ null)
    return 1 - float(weight @ loss) / null_loss if null_loss > 0 else float("nan")


def row_error(
    loss: FloatArray, null: FloatArray, weight: FloatArray, n_folds: int, labels: Any = None, beside: Any = None
) -> float:
    r"""How far `pooled`, or its difference from another method's, may be from its value on new rows.

    The score is a ratio of two means over rows, so each row changes it by about
    :math:`\delta_i = -w_i (l_i - (1 - s) n_i) / \sum_j w_j n_j`. If rows and models were independent, the variance
    would be the sum of :math:`\delta_i^2`. They are not: a row is tested in one fold and trained on in the others, so
    the errors of folds are correlated. Nadeau and Bengio's correction multiplies the variance by ``1 + k / (k - 1)``
    for k folds, because the test rows of a fold are a share ``1 / (k - 1)`` of its training rows. The root is
    multiplied by `NINE_IN_TEN`.

    Parameters
    ----------
    loss, null, weight : ndarray, shape (n_rows,)
    n_folds : int
    labels : array-like, optional
        Rows with the same label count as one observation.
    beside : ndarray, optional
        The losses of another method.
    """
    null_loss = float(weight @ null)
    if null_loss <= 0:
        return float("nan")
    other = null if beside is None else beside
    difference = float(weight @ (other - loss)) / null_loss
    changes = weight * ((other - loss) - difference * null) / null_loss
    if labels is not None:
        changes = np.bincount(np.unique(np.asarray(labels), return_inverse=True)[1], weights=changes)
    n = np.count_nonzero(changes) or 1
    variance = float(changes @ changes) * (n / max(n - 1, 1))
    return NINE_IN_TEN * float(np.sqrt(variance * (1 + n_folds / (n_folds - 1))))


def fold_error(scores: FloatArray) -> float:
    """The same for a mean over folds, if single rows have no scores."""
    k = len(scores)
    return NINE_IN_TEN * float(np.sqrt((1 / k + 1 / (k - 1)) * np.var(scores, ddof=1))) if k > 1 else float("nan")
