"""The likeliest thresholds between ordered classes at given predictors, compiled."""

from __future__ import annotations

import numpy as np

from covey.compiling import njit

__all__ = ["derivatives", "likeliest"]

# Newton's method in the thresholds ends with a step below this: the next one would be its square.
LAST_STEP = 1e-6

# Steps from any start; halvings of a step.
MOST_STEPS, MOST_HALVINGS = 100, 40

# Beyond this gap its exponential overflows; below this one its square underflows. Thresholds of 1e17 may even be equal.
WIDEST, CLOSEST = 700.0, 1e-150

# Added to the second derivative in the thresholds, per unit of weight, which may have none far from all rows.
JITTER = 1e-12

EPS = float(np.finfo(float).eps)

# A threshold may not come closer to its neighbour in one step than this share of their distance.
CLOSER = 0.1


@njit(cache=True)
def likeliest(eta, w, starts, totals, thresholds):
    """Damped Newton steps in the thresholds of every model, in place; also what rows and models have there.

    Parameters
    ----------
    eta : ndarray, shape (n_rows, n_models)
        Rows are sorted by their class.
    w : ndarray, shape (n_rows,)
    starts, totals : ndarray, shape (n_classes + 1,) and (n_classes,)
        Where the rows of each class begin, and their weight.
    thresholds : ndarray, shape (n_classes - 1, n_models)
        Overwritten.

    Returns
    -------
    above, below : ndarray, shape (n_rows, n_models)
        ``expit(eta - upper threshold)`` and ``expit(lower threshold - eta)``.
    values : ndarray, shape (n_models,)
        Minus the log-likelihoods.
    """
    n, n_models = eta.shape
    above, below, values = np.zeros((n, n_models)), np.zeros((n, n_models)), np.zeros(n_models)
    up, down = np.zeros(n), np.zeros(n)
    for a in range(n_models):
        x, t = eta[:, a].copy(), thresholds[:, a].copy()
        value = _evaluated(x, w, starts, totals, t, up, down)
        for _ in range(MOST_STEPS if t.size else 0):
            gradient, diagonal, beside = derivatives(w, starts, totals, t, up, down)
            step, length, moved = _solved(diagonal, beside, gradient), 1.0, 0.0
            promised = gradient @ step
            for k in range(t.size - 1):
                nearer = (step[k] - step[k + 1]) / max(t[k + 1] - t[k], CLOSEST)
                length = min(length, (1 - CLOSER) / nearer) if nearer > 1 - CLOSER else length
            for _ in range(MOST_HALVINGS):
                there = _evaluated(x, w, starts, totals, t + length * step, up, down)
                if not there > value - 1e-4 * length * promised + 1e-13 * abs(value):
                    break
                length /= 2
            t += length * step
            value = there
            for k in range(t.size):
                moved = max(moved, abs(length * step[k]) / (1 + abs(t[k])))
            if moved <= LAST_STEP:
                break
        thresholds[:, a], above[:, a], below[:, a], values[a] = t, up, down, value
    return above, below, values


@njit(cache=True)
def _evaluated(x, w, starts, totals, t, up, down):
    """Minus the log-likelihood at some thresholds; `up` and `down` are the shares beyond the edges, overwritten."""
    value = 0.0
    for c in range(totals.size):
        for i in range(starts[c], starts[c + 1]):
            if c < t.size:
                up[i], loss = _logistic(x[i] - t[c])
                value += w[i] * loss
            if c > 0:
                down[i], loss = _logistic(t[c - 1] - x[i])
                value += w[i] * loss
        if 0 < c < t.size:
            value -= totals[c] * np.log(-np.expm1(t[c - 1] - t[c]))
    return value


@njit(cache=True)
def _logistic(z):
    """``1 / (1 + exp(-z))`` and ``log(1 + exp(z))``."""
    small = np.exp(-abs(z))
    return (1.0 if z > 0 else small) / (1 + small), max(z, 0.0) + np.log1p(small)


@njit(cache=True)
def derivatives(w, starts, totals, t, up, down):
    """Minus the gradient in the thresholds, and the second derivative: its diagonal and what is left of that."""
    n = t.size
    gradient, diagonal, beside = np.zeros(n), np.full(n, JITTER * totals.sum()), np.zeros(n)
    for c in range(n + 1):
        for i in range(starts[c], starts[c + 1]):
            if c < n:
                gradient[c] += w[i] * up[i]
                diagonal[c] += w[i] * up[i] * (1 - up[i])
            if c > 0:
                gradient[c - 1] -= w[i] * down[i]
                diagonal[c - 1] += w[i] * down[i] * (1 - down[i])
        if 0 < c < n:
            gap = min(max(t[c] - t[c - 1], CLOSEST), WIDEST)
            pull, bend = totals[c] / np.expm1(gap), totals[c] / (2 * np.sinh(gap / 2)) ** 2
            gradient[c] += pull
            gradient[c - 1] -= pull
            diagonal[c] += bend
            diagonal[c - 1] += bend
            beside[c] = -bend
    return gradient, diagonal, beside


@njit(cache=True)
def _solved(diagonal, beside, right):
    """Solve a tridiagonal system by elimination."""
    x, pivots = right.copy(), diagonal.copy()
    for k in range(1, x.size):
        share = beside[k] / pivots[k - 1]
        pivots[k] = max(pivots[k] - share * beside[k], EPS * pivots[k])  # positive, but for round-off error
        x[k] -= share * x[k - 1]
    for k in range(x.size - 1, -1, -1):
        x[k] = (x[k] - (beside[k + 1] * x[k + 1] if k + 1 < x.size else 0.0)) / pivots[k]
    return x
