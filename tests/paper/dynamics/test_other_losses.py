"""The network for losses other than the squared one: its gradient, its plateaus, its first group, its clock."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from covey.datasets import make_group_sparse
from covey.losses import Binomial, Gamma, Huber, Poisson, Squared
from covey.paper.dynamics import Status, normalized_descent, plain_descent
from covey.paper.dynamics.problem import Problem
from covey.paper.theory import margins

LOSSES = {"binomial": Binomial(), "poisson": Poisson(), "gamma": Gamma(), "huber": Huber(1.0)}
DRAWS = {
    "binomial": lambda rng, eta: rng.binomial(1, expit(eta)),
    "poisson": lambda rng, eta: rng.poisson(np.exp(eta)),
    "gamma": lambda rng, eta: rng.gamma(2.0, np.exp(eta) / 2),
    "huber": lambda rng, eta: eta + rng.standard_t(2, eta.size),
}


def problem(name, n=150, seed=0, strengths=(0.0, 0.6, 0.0, -0.36, 0.21)):
    """Five groups of two correlated columns, some of them active, and an offset that differs between rows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 10))
    for j in range(1, 10):
        X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
    offset = rng.uniform(-1, 1, n)
    eta = X @ np.repeat(strengths, 2) + offset
    return X, DRAWS[name](rng, eta).astype(float), offset


class TestTheObjective:
    @pytest.mark.parametrize("name", LOSSES)
    def test_the_correlation_is_minus_the_slope_of_that_loss(self, name):
        X, y, offset = problem(name)
        posed = Problem.pose(X, y, 2, None, LOSSES[name], offset)
        w, step = np.linspace(-0.3, 0.3, 10), 1e-5
        up, down = posed.loss(w + step * np.eye(10)), posed.loss(w - step * np.eye(10))
        np.testing.assert_allclose(posed.correlation(w), -(up - down) / (2 * step), rtol=1e-6, atol=1e-8)
        assert posed.loss(w[None]) == pytest.approx(LOSSES[name].value(y, X @ w + offset).mean(), rel=1e-13)

    @pytest.mark.parametrize("method", [normalized_descent, plain_descent])
    def test_a_step_is_the_equation(self, method):
        """One iteration from the residual ``y - 1/(1 + exp(-eta))``, without anything of covey."""
        X, y, offset = problem("binomial")
        options = {"init_scale": 0.5, "step_size": 0.1, "n_steps": 1, "loss": "binomial", "offset": offset}
        path = method(X, y, 2, **options, **({"start": "small"} if method is plain_descent else {}))
        u, v = path.u[0], path.v[0]

        def g(v):
            return X.T @ (y - expit(offset + X @ (np.repeat(u**2, 2) * v))) / len(y)

        new_v = v + 0.1 * np.repeat(u**2, 2) * g(v)
        along = v * g(v)
        if method is normalized_descent:
            z = np.repeat(u**2, 2) * v + g(v)
            new_v = z / np.repeat(np.hypot(z[::2], z[1::2]), 2)
            along = new_v * g(new_v)
        np.testing.assert_allclose(path.v[1], new_v, rtol=1e-12)
        np.testing.assert_allclose(path.u[1], u + 0.1 * 2 * u * (along[::2] + along[1::2]), rtol=1e-12)

    @pytest.mark.parametrize("method", [normalized_descent, plain_descent])
    @pytest.mark.parametrize("reference", [False, True])
    def test_naming_the_squared_loss_changes_no_bit(self, method, reference):
        data = make_group_sparse(40, 12, 3, active=2, random_state=1)
        options = {"n_steps": 60, "init_scale": 0.1, "reference": reference}
        bare = method(data.X, data.y, 3, **options)
        for loss in ("squared", "gaussian", Squared()):
            named = method(data.X, data.y, 3, loss=loss, **options)
            for field in ("u", "v", "w", "loss"):
                np.testing.assert_array_equal(getattr(named, field), getattr(bare, field))
        offset = np.linspace(-1, 1, 40)
        shifted, less = (
            method(data.X, data.y, 3, offset=offset, **options),
            method(data.X, data.y - offset, 3, **options),
        )
        np.testing.assert_array_equal(shifted.w, less.w)


def likelihood_fit(name, A, y, offset):
    """Maximum likelihood by BFGS on the formulas of the textbook."""

    def objective(b):
        eta = offset + A @ b
        if name == "binomial":
            return np.mean(np.logaddexp(0, eta) - y * eta), A.T @ (expit(eta) - y) / len(y)
        return np.mean(np.exp(eta) - y * eta), A.T @ (np.exp(eta) - y) / len(y)

    return minimize(objective, np.zeros(A.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9}).x


@pytest.mark.parametrize(("name", "step", "strength"), [("binomial", 0.08, 1.5), ("poisson", 0.02, 0.6)])
def test_a_plateau_is_maximum_likelihood_on_the_awake_groups(name, step, strength):
    X, y, offset = problem(name, n=400, strengths=(0.0, strength, 0.0, -strength / 2, 0.0))
    path = normalized_descent(
        X, y, 2, loss=name, offset=offset, init_scale=1e-14, step_size=step, n_steps=10_000, record_every=5,
        stop=lambda t, w: np.sum(np.hypot(w[::2], w[1::2]) > 1e-5) >= 3,
    )  # fmt: skip
    norms = path.group_norms
    woke = sorted((int(np.argmax(norms[:, l] > 0.01)), l) for l in range(5) if norms[-1, l] > 0.01)
    assert [l for _, l in woke[:2]] == [1, 3]
    for n_awake in (1, 2):
        awake = [l for _, l in woke[:n_awake]]
        asleep = norms[:, [l for l in range(5) if l not in awake]]
        end = path.w[np.argmax((asleep > 1e-6).any(axis=1)) - 1]
        columns = [column for l in awake for column in (2 * l, 2 * l + 1)]
        np.testing.assert_allclose(end[columns], likelihood_fit(name, X[:, columns], y, offset), atol=1e-4)


class TestTheClockOfTheLoss:
    def test_gradients_are_divided_by_the_loss(self):
        X, y, _ = problem("binomial")
        start = {"init_scale": 0.5, "step_size": 1e-3, "n_steps": 1, "loss": "binomial", "start": "small"}
        steps, clock = plain_descent(X, y, 2, **start), plain_descent(X, y, 2, clock="loss", **start)
        moved = [np.append(path.u[1] - path.u[0], path.v[1] - path.v[0]) for path in (steps, clock)]
        assert steps.loss[0] > 1 / np.e  # where the logarithm has no part yet
        np.testing.assert_allclose(moved[1], moved[0] / steps.loss[0], rtol=1e-9)

    @pytest.mark.parametrize("depth", [1, 2, 3])
    def test_margins_grow_linearly(self, depth):
        """Balanced, with margin ``m = u^N v``: ``dm/dt = (N + 1) u^(2N) / m^(2 - 2/(N + 1))``, which is a constant."""
        options = {"init_scale": 1.0, "step_size": 0.02, "n_steps": 1000, "loss": "binomial", "clock": "loss"}
        path = plain_descent(np.array([[1.0], [-1.0]]), [1, 0], 1, depth=depth, start="aligned", **options)
        rate = (depth + 1) * depth ** (depth / (depth + 1))
        np.testing.assert_allclose(np.diff(path.w[500::100, 0]), 100 * 0.02 * rate, rtol=0.01)

    def test_the_run_ends_where_float64_does(self):
        X, y = np.array([[1.0, 0.0], [-1.0, 0.5]]), np.array([1, 0])
        path = normalized_descent(
            X, y, 1, loss="binomial", clock="loss", init_scale=0.5, step_size=0.2, n_steps=20_000, record_every=7
        )
        assert path.status is Status.COMPLETED
        assert "float64" in path.message
        assert path.t[-1] < 20_000
        assert path.t[-1] - path.t[-2] <= 7
        assert 1e-300 < path.loss[-1] < 1e-290
        assert path.loss[-2] > 1e-292
        assert np.isfinite(path.w).all()
        assert margins(X, y, 1, path.w[-1]).margin == pytest.approx(1.0, rel=0.01)

    def test_data_that_cannot_be_told_apart_have_the_usual_minimum(self):
        X, y, offset = problem("binomial")
        path = plain_descent(
            X, y, 2, loss="binomial", offset=offset, clock="loss", init_scale=0.5, step_size=0.1, n_steps=4000,
            record_every=1000, start="aligned",
        )  # fmt: skip
        np.testing.assert_allclose(path.w[-1], likelihood_fit("binomial", X, y, offset), atol=1e-5)


@pytest.mark.parametrize("method", [normalized_descent, plain_descent])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "cauchy"}, "loss must be one of 'squared'"),
        ({"loss": Binomial}, r"pass Binomial\(\)"),
        ({"loss": "binomial"}, "must lie between 0 and 1"),
        ({"loss": "gamma"}, "must be above zero for the gamma loss"),
        ({"loss": "huber"}, "no threshold yet"),
        ({"loss": "multinomial"}, "one linear predictor, but the multinomial loss needs several"),
        ({"offset": np.ones(7)}, r"offset has shape \(7,\), but there are 8 rows"),
        ({"offset": [np.nan] * 8}, "offset has missing or infinite values, first in row 0"),
        ({"clock": "wall"}, "clock must be 'steps' or 'loss'"),
        ({"clock": "loss"}, "Use loss='binomial'"),
        ({"loss": "poisson", "clock": "loss"}, "the poisson loss has its minimum elsewhere"),
    ],
)
def test_bad_input(method, options, message):
    X = np.random.default_rng(0).standard_normal((8, 6))
    with pytest.raises(ValueError, match=message):
        method(X, np.arange(8.0), 3, **options)
