"""Instances that meet the paper's hypotheses exactly, and its perturbed recursions, stepped by covey.

Shared by the tests of this folder. Where a lemma speaks of perturbations ``b_t`` and ``e_t`` of the updates, they are
put into the response of a one-group orthonormal design: there ``X'y/n - w`` is the correlation, so a response with
``X'y/n = u_star^2 v_star + b`` makes covey's step the perturbed one.
"""

from dataclasses import dataclass

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from covey.groups import Groups
from covey.paper.dynamics import gradient_flow, normalized_descent

# The same examples on every run, no deadline: numba compiles during the first one.
lemma = settings(
    max_examples=30, derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)

seeds = st.integers(0, 2**32 - 1)
engines = st.booleans()  # reference=True is the plain-numpy step, False the compiled one

FROZEN = 1e-300  # a direction step that moves no direction: only the magnitude steps

# Bounds that an instance can meet with equality are compared with room for rounding.
ROUNDING = 1e-9


def unit(rng, size):
    """A random direction."""
    v = rng.standard_normal(size)
    return v / np.linalg.norm(v)


def orthogonal_to(v, rng):
    """A random direction orthogonal to ``v``, which has at least two entries."""
    b = rng.standard_normal(v.size)
    b -= (b @ v) * v
    return b / np.linalg.norm(b)


def direction_with_cosine(v_star, cosine, rng):
    """A unit vector at a given cosine with ``v_star``; in one dimension, ``v_star`` itself."""
    if v_star.size == 1:
        return v_star.copy()
    return cosine * v_star + np.sqrt(max(0.0, 1 - cosine**2)) * orthogonal_to(v_star, rng)


def in_ball(rng, size, radius):
    """A vector of norm at most ``radius``, half the time on the sphere."""
    return unit(rng, size) * radius * (1.0 if rng.random() < 0.5 else rng.random())


@dataclass
class OneGroup:
    """Equations update-on-v and update-on-u for one group, with a truth ``u_star^2 v_star``."""

    u_star: float
    v_star: np.ndarray
    gamma: float
    eta: float | str = "large"
    reference: bool = False

    def step(self, u, v, b, e=None):
        """``(u(t+1), v(t+1))``. Without ``e`` the magnitude sees the same perturbation: ``e = <v(t+1), b>``."""
        new = self._covey(u, v, self.u_star**2 * self.v_star + b, self.eta)
        if e is None:
            return new
        v_new = new[1]
        return self._covey(u, v_new, self.u_star**2 * self.v_star + e * v_new, FROZEN)

    def _covey(self, u, v, target, eta):
        size = self.v_star.size
        X = np.sqrt(size) * np.eye(size)
        path = normalized_descent(
            X, X @ target, size, init_scale=u, start=v, step_size=self.gamma, direction_step=eta, n_steps=1,
            reference=self.reference,
        )  # fmt: skip
        return float(path.u[-1, 0]), path.v[-1]

    def run(self, u, v, n_steps, perturbation):
        """``(u, v)`` over time; ``perturbation(t, u, v)`` gives ``(b, e)``."""
        U, V = [u], [v]
        for t in range(n_steps):
            u, v = self.step(u, v, *perturbation(t, u, v))
            U.append(u)
            V.append(v)
        return np.array(U), np.array(V)


@dataclass
class Model:
    """``y = X w_star + noise`` on a design with prescribed coherence and prescribed ``X'noise/n``."""

    X: np.ndarray
    y: np.ndarray
    w_star: np.ndarray
    noise_correlation: np.ndarray
    groups: Groups

    @property
    def u_star(self):
        return np.sqrt(self.groups.norms(self.w_star))

    @property
    def S(self):
        return np.flatnonzero(self.u_star > 0)

    @property
    def off(self):
        return np.flatnonzero(self.u_star == 0)

    @property
    def u_max(self):
        return self.u_star.max()

    @property
    def u_min(self):
        return self.u_star[self.S].min()

    @property
    def v_star(self):
        scale = np.where(self.u_star > 0, self.u_star, 1.0) ** 2
        return self.w_star / scale[self.groups.labels]

    def descend(self, **settings):
        """Algorithm 1 or 2 on this model."""
        return normalized_descent(self.X, self.y, self.groups, **settings)

    def flow(self, **settings):
        """Gradient flow on this model."""
        return gradient_flow(self.X, self.y, self.groups, **settings)

    def correlation(self, w):
        return self.X.T @ (self.y - self.X @ w) / len(self.y)

    @property
    def group_noise(self):
        """``norm(X_l'noise/n)_2``, one per group."""
        return self.groups.norms(self.noise_correlation)

    @property
    def entry_noise(self):
        """``norm(X'noise/n)_inf``."""
        return np.abs(self.noise_correlation).max()


def coherence(X, groups):
    """``(delta_in, delta_out)`` of Assumption 1: the least constants that the design meets."""
    K = X.T @ X / len(X)
    blocks = groups.lists()
    inside = max(np.linalg.norm(K[np.ix_(a, a)] - np.eye(a.size), 2) for a in blocks)
    outside = max((np.linalg.norm(K[np.ix_(a, b)], 2) for i, a in enumerate(blocks) for b in blocks[:i]), default=0.0)
    return float(inside), float(outside)


def make_model(rng, sizes, w_star, *, delta_in=0.0, delta_out=0.0, noise_correlation=None):
    """A model whose design has exactly these coherences (each within a rounding) and exactly this ``X'noise/n``.

    ``X = sqrt(n) Q R`` with orthonormal Q and ``R'R = G``, a Gram matrix that is built block by block.
    """
    groups = Groups.from_sizes(sizes)
    p = groups.n_columns
    G = np.eye(p)
    blocks = groups.lists()
    for i, a in enumerate(blocks):
        A = rng.standard_normal((a.size, a.size))
        A = A + A.T
        G[np.ix_(a, a)] += delta_in * A / np.linalg.norm(A, 2)
        for b in blocks[:i]:
            A = rng.standard_normal((a.size, b.size))
            A *= delta_out / np.linalg.norm(A, 2)
            G[np.ix_(a, b)], G[np.ix_(b, a)] = A, A.T
    return model_with_gram(rng, groups, G, w_star, noise_correlation)


def model_with_gram(rng, groups, G, w_star, noise_correlation=None):
    """A model with ``X'X/n = G``."""
    p = len(G)
    n = p + 2
    Q = np.linalg.qr(rng.standard_normal((n, p)))[0]
    X = np.sqrt(n) * Q @ np.linalg.cholesky(G).T
    c = np.zeros(p) if noise_correlation is None else np.asarray(noise_correlation, dtype=float)
    noise = X @ np.linalg.solve(G, c)
    w_star = np.asarray(w_star, dtype=float)
    return Model(X, X @ w_star + noise, w_star, c, groups)


def random_truth(rng, sizes, n_active, low=1.0, high=1.3):
    """Coefficients with ``n_active`` groups of magnitude ``u_star`` between ``low`` and ``high``, random directions."""
    parts = [
        rng.uniform(low, high) ** 2 * unit(rng, size) if l < n_active else np.zeros(size)
        for l, size in enumerate(sizes)
    ]
    return np.concatenate(parts)


def noise_with_group_norms(rng, sizes, norms):
    """Random ``X'noise/n`` with the given norm in each group."""
    return np.concatenate([norm * unit(rng, size) for size, norm in zip(sizes, norms, strict=True)])


def random_directions(rng, sizes):
    """A unit-norm start in every group."""
    return np.concatenate([unit(rng, size) for size in sizes])
