"""Regression problems with prescribed coherence and prescribed noise, for experiments at the limits of a theorem."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from covey.datasets import GroupSparseData
from covey.groups import Groups
from covey.validation import FloatArray


def prescribed_problem(
    rng: np.random.Generator, sizes: ArrayLike, norms: ArrayLike, *, delta_in: float = 0.0, delta_out: float = 0.0,
    group_noise: float = 0.0, leaning: bool = False,
) -> GroupSparseData:  # fmt: skip
    """``y = X w_star + xi`` with chosen group norms, coherences and ``norm(X_l'xi/n)``, in random directions.

    ``X = sqrt(n) Q R`` with orthonormal columns Q and ``R'R = G``, the Gram matrix: its diagonal blocks are the
    identity plus a symmetric matrix of spectral norm `delta_in`, its other blocks have spectral norm `delta_out`. The
    noise is the combination of columns with ``X_l'xi/n`` a random vector of norm `group_noise` in every group; `sigma`
    is its root mean square. A `leaning` design has the same coherences in the most harmful directions: every block that
    couples two groups does so along the directions of the truth, so that leakage into a group adds up, and the block of
    a group turns its truth towards an orthogonal direction. ValueError if there is no such design, because G is not
    positive definite.
    """
    groups = Groups.from_sizes(np.asarray(sizes).tolist())
    p, blocks = groups.n_columns, groups.lists()
    v = [_unit(rng, a.size) for a in blocks]
    G = np.eye(p)
    for i, a in enumerate(blocks):
        G[np.ix_(a, a)] += delta_in * (_turning(rng, v[i]) if leaning else _symmetric(rng, a.size))
        for j, b in enumerate(blocks[:i]):
            A = np.outer(v[i], v[j]) if leaning else rng.standard_normal((a.size, b.size))
            A *= delta_out / np.linalg.norm(A, 2)
            G[np.ix_(a, b)], G[np.ix_(b, a)] = A, A.T
    try:
        root = np.linalg.cholesky(G)
    except np.linalg.LinAlgError:
        raise ValueError(
            f"No design has delta_in = {delta_in:g} and delta_out = {delta_out:g} in these directions: "
            "its Gram matrix would not be positive definite. Use smaller coherences."
        ) from None
    w_star = np.concatenate([norm * direction for norm, direction in zip(np.asarray(norms), v, strict=True)])
    leakage = np.concatenate([group_noise * _unit(rng, a.size) for a in blocks])
    n = p + 2
    X = np.sqrt(n) * np.linalg.qr(rng.standard_normal((n, p)))[0] @ root.T
    noise = X @ np.linalg.solve(G, leakage)
    return GroupSparseData(X, X @ w_star + noise, w_star, groups, noise, float(np.sqrt(np.mean(noise**2))))


def _unit(rng: np.random.Generator, size: int) -> FloatArray:
    v = rng.standard_normal(size)
    return v / np.linalg.norm(v)


def _symmetric(rng: np.random.Generator, size: int) -> FloatArray:
    A = rng.standard_normal((size, size))
    return (A + A.T) / np.linalg.norm(A + A.T, 2)


def _turning(rng: np.random.Generator, v: FloatArray) -> FloatArray:
    """A symmetric matrix of norm 1 that maps v to an orthogonal direction; in one dimension, -1."""
    if v.size == 1:
        return -np.ones((1, 1))
    o = rng.standard_normal(v.size)
    o -= (o @ v) * v
    o /= np.linalg.norm(o)
    return np.outer(v, o) + np.outer(o, v)
