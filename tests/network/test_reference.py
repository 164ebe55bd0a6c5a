"""The exact engine against a plain loop of its fast step; `test_paper.py` has the paper's."""

import numpy as np
import pytest

from covey import Groups, group_path


def plain_loop(X, y, groups, gamma, alpha, n_steps, tau=0.0, share=4 / 9):
    """Both algorithms with the fast step, for orthonormal groups, centred X and y of unit mean square.

    The text has g at the new directions in the change of the magnitudes; here it is that of the old ones.
    """
    n, labels = X.shape[0], groups.labels
    u, w = np.full(groups.n_groups, alpha), np.zeros(X.shape[1])
    first = groups.norms(X.T @ y / n)
    v = X.T @ y / n / first[labels]
    w, eta, armed = u[labels] ** 2 * v, None, False
    for _ in range(n_steps):
        g = X.T @ (y - X @ w) / n
        z = w + g if eta is None else w + eta * u[labels] ** 4 * g
        v = z / groups.norms(z)[labels]
        change = 2 * gamma * np.add.reduceat(v * g, groups.starts[:-1])
        u = u * (1 + change)
        w = u[labels] ** 2 * v
        armed = armed or bool((u**2 >= first / 2).any())
        if eta is None and armed and np.abs(change).max() < tau:
            eta = share / u.max() ** 4
    return w, eta


def orthonormal_problem(n=120, p=90, size=3, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X -= X.mean(axis=0)
    for a in range(0, p, size):
        X[:, a : a + size] = np.linalg.qr(X[:, a : a + size])[0] * np.sqrt(n)
    y = 2 * X[:, :3].sum(axis=1) - X[:, 30:33].sum(axis=1) + noise * rng.standard_normal(n)
    y -= y.mean()
    return X, y / y.std(), Groups.from_size(size, p)


@pytest.mark.parametrize("algorithm", ["single-stage", "two-stage"])
def test_exact_is_a_plain_loop_of_the_fast_step(algorithm):
    X, y, groups = orthonormal_problem()
    gamma = 1 / (20 * groups.norms(X.T @ y / len(y)).max())
    tau = 0.01 if algorithm == "two-stage" else 0.0
    w, eta = plain_loop(X, y, groups, gamma, 1e-6, 400, tau)
    path = group_path(X, y, groups, algorithm=algorithm, engine="exact", max_iter=400)
    awake = np.repeat(path.group_norms[-1] > 0, 3)
    np.testing.assert_allclose(path.at(400)[awake], w[awake], rtol=1e-6, atol=1e-8)
    assert (eta is not None) == (algorithm == "two-stage") == (path.state.direction_step > 0)
    if eta is not None:
        assert path.state.direction_step == pytest.approx(eta, rel=1e-6)


def test_signal_is_found_unshrunk():
    X, y, groups = orthonormal_problem(noise=0.1)
    path = group_path(X, y, groups, max_iter=400)
    assert [l for l, _ in path.entered[:2]] == [0, 10]
    on = np.r_[0:3, 30:33]
    least_squares = np.linalg.lstsq(X[:, on], y, rcond=None)[0]
    np.testing.assert_allclose(path.at(400)[on], least_squares, atol=1e-3)


def test_correlated_awake_groups_do_not_oscillate():
    """Fifteen groups that share a factor: the awake block's largest eigenvalue is far above 2."""
    rng = np.random.default_rng(0)
    n = 200
    common = rng.standard_normal((n, 1))
    X = 0.3 * rng.standard_normal((n, 45)) + common
    y = X[:, ::3].sum(axis=1) + 0.1 * rng.standard_normal(n)
    for engine in ("exact", "screened"):
        path = group_path(X, y, Groups.from_size(3, 45), engine=engine, max_iter=3000, algorithm="single-stage")
        errors = np.mean((y[:, None] - path.predict(X)) ** 2, axis=0)
        assert path.status in ("completed", "exhausted")
        assert np.all(np.diff(errors) <= 1e-6 * errors[0])
