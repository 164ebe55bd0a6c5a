"""Score tests: whether columns add anything to a model of other columns, on the same rows and for every loss."""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr
from scipy.special import chdtrc, fdtrc  # scipy.stats would take longer than the test itself

from covey.search.newton import minimise
from covey.search.observations import Observations, weighted_gram
from covey.validation import FloatArray

# A column of which the others leave less than this, relative to it, is a combination of them.
DEPENDENT = 1e-7


def score_test(response: Observations, base: FloatArray, X: FloatArray) -> float | None:
    r"""The p-value of the hypothesis that the columns X have no effect beside the columns `base`.

    With the score u of the columns X, which is minus the gradient of the loss at the model of `base` alone, and their
    information I given `base`, the statistic is :math:`S = u' I^{-1} u`. With r the rank of X given `base`, k the rank
    of all columns, and T the sum of squared residuals of the model of `base`, divided by the mean curvature,

    .. math:: F = \frac{S / r}{(T - S) / (n - k)}

    has an F distribution with r and n - k degrees of freedom: for squared loss exactly, if the noise is normal. The
    dispersion of counts, the denominator, is at least one. For classes and survival times the dispersion is known, and
    :math:`S (n - k) / n` is compared with a chi-squared distribution; without the factor, models with many columns
    would give p-values that are too small. There n is the number of rows, or of events. With several responses, each
    has a test, and the least p-value is multiplied by their number.

    The weights of `response` add up to the number of rows, and `base` has the column of the intercept. The p-value is
    None if the model of `base` has no finite minimum, as with perfectly separated classes, and one if `base` leaves
    nothing of X or of the response.
    """
    loss, B = response.loss, independent_columns(base)
    D = independent_columns(X, B)
    A, r, m = np.hstack([B, D]), D.shape[1], response.n_outputs
    n = response.n_informative
    left = n - A.shape[1]
    if r == 0 or left < 1:
        return 1.0
    fit = minimise(response, B, np.zeros((B.shape[1], m)))
    if fit.status != "converged":
        return None
    score = response.score(fit.eta)
    u = D.T @ score
    if loss.known_dispersion and (loss.labelled or loss.coupled):
        K = response.gram(fit.eta, A) if response.isotropic else _information(response, fit.eta, A)
        flat = u.T.ravel()
        statistic = flat @ np.linalg.solve(_given_first(K, r, m), flat)
        return float(chdtrc(flat.size, statistic * left / n))
    # if the noise is the same in all rows, so is the expected curvature, which is better than the observed one
    curvature = response.weight if loss.identity_link else response.curvature(fit.eta)
    S = (u * np.linalg.solve(_given_first(weighted_gram(A, curvature), r), u)).sum(axis=0)
    T = (score**2 / response.weight[:, None]).sum(axis=0) * (n / curvature.sum())
    dispersion = np.maximum((T - S) / left, 1.0 if loss.known_dispersion else DEPENDENT**2 * T)
    if not T.all():  # nothing is left to explain
        return 1.0
    return float(min(fdtrc(r, left, S / r / dispersion).min() * m, 1.0))


def independent_columns(A: FloatArray, given: FloatArray | None = None) -> FloatArray:
    """An orthonormal basis of the columns of A, or of what the orthonormal columns `given` leave of them.

    >>> independent_columns(np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 1.0], [1.0, 2.0, 2.0]])).shape
    (3, 2)
    """
    norms = np.linalg.norm(A, axis=0)
    A = A[:, norms > 0] / norms[norms > 0]
    for _ in range(0 if given is None else 2):  # the second projection removes the round-off error of the first
        A = A - given @ (given.T @ A)  # type: ignore[union-attr, operator]
    if not A.shape[1]:
        return A
    Q, R, _ = qr(A, mode="economic", pivoting=True)
    return np.asarray(Q[:, : len(R)][:, np.abs(np.diag(R)) > DEPENDENT])


def _given_first(K: FloatArray, r: int, n_outputs: int = 1) -> FloatArray:
    """The information of the last r columns given the first ones; K is ordered output by output."""
    last = np.tile(np.arange(len(K) // n_outputs) >= len(K) // n_outputs - r, n_outputs)
    between = K[np.ix_(~last, last)]
    return np.asarray(K[np.ix_(last, last)] - between.T @ np.linalg.lstsq(K[np.ix_(~last, ~last)], between)[0])


def _information(response: Observations, eta: FloatArray, A: FloatArray) -> FloatArray:
    """The second derivative of the loss in all coefficients, ordered output by output."""
    return np.array(
        [
            (A.T @ response.curvature_product(eta, np.outer(column, output))).T.ravel()
            for output in np.eye(response.n_outputs)
            for column in A.T
        ]
    )
