"""`limit_path(loss=, offset=)`: every model is certified by its score equations; bad input is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax

from covey import limit_path, survival
from covey.losses import Binomial, Gamma, Huber, Multinomial, MultiSquared, Poisson

RESIDUALS = {  # of every loss as the textbook has them
    "binomial": lambda y, eta: y - expit(eta),
    "poisson": lambda y, eta: y - np.exp(eta),
    "gamma": lambda y, eta: y / np.exp(eta) - 1,
    "huber": lambda y, eta: np.clip(y - eta, -1, 1),
    "multinomial": lambda y, eta: y - softmax(eta, axis=1),
    "multi-squared": lambda y, eta: y - eta,
    "squared": lambda y, eta: y - eta,
}
LOSSES = {"huber": Huber(1.0)}


def problem(name, n=120):
    rng = np.random.default_rng(3)
    X = 1 + rng.standard_normal((n, 12))
    eta = 0.4 * X[:, :3] @ [1.0, -1.0, 1.0] - 0.3 * X[:, 6]
    wide = name in ("multinomial", "multi-squared")
    offset = rng.uniform(-0.5, 0.5, (n, 3) if wide else n)
    several = np.column_stack([eta, -eta, X[:, 7] / 3]) + offset if wide else None
    y = {
        "binomial": lambda: rng.binomial(1, expit(eta)),
        "poisson": lambda: rng.poisson(np.exp(eta)),
        "gamma": lambda: rng.gamma(2.0, np.exp(eta)),
        "huber": lambda: eta + rng.standard_t(2, n),
        "multinomial": lambda: np.array([rng.multinomial(1, p) for p in softmax(several, axis=1)]),
        "multi-squared": lambda: several + rng.standard_normal((n, 3)),
        "squared": lambda: eta + rng.standard_normal(n),
    }[name]()
    return X, y.astype(float), offset


@pytest.mark.parametrize("name", RESIDUALS)
@pytest.mark.parametrize("weighted", [False, True], ids=["equal weights", "weights"])
def test_every_model_solves_its_score_equations(name, weighted):
    X, y, offset = problem(name)
    weight = np.random.default_rng(0).uniform(0.2, 2, len(y)) if weighted else None
    path = limit_path(X, y, 3, loss=LOSSES.get(name, name), offset=offset, sample_weight=weight, max_groups=3)
    assert path.status == "completed"
    assert len(path) == 4
    eta = path.predict(X)
    q = np.ones(len(y)) if weight is None else weight
    for i in range(4):
        residual = RESIDUALS[name](y, eta[:, i] + offset)
        awake = [3 * l + j for l, _ in path.entered[:i] for j in range(3)]
        A = np.column_stack([np.ones(len(y)), X[:, awake]])
        scores = (q[:, None] * A).T @ residual
        assert np.abs(scores).max() < 1e-6 * len(y)
        asleep = np.setdiff1d(np.arange(12), awake)
        assert np.abs((q[:, None] * X[:, asleep]).T @ residual).max() > 1e-3


@pytest.mark.parametrize("name", ["binomial", "poisson", "gamma"])
def test_the_first_group_is_that_of_the_squared_loss(name):
    """Without groups the gradient is ``X'(y - mean)/n``, up to a constant."""
    X, y, _ = problem(name)
    for seed in range(5):
        columns = np.random.default_rng(seed).permutation(12)
        paths = [limit_path(X[:, columns], y, 3, loss=loss, max_groups=1) for loss in (name, "squared")]
        assert paths[0].entered[0][0] == paths[1].entered[0][0]


def test_several_responses_need_no_name():
    X, y, offset = problem("multi-squared")
    named = limit_path(X, y, 3, loss=MultiSquared(), offset=offset, max_groups=2)
    bare = limit_path(X, y, 3, offset=offset, max_groups=2)
    np.testing.assert_array_equal(named.coefs.toarray(), bare.coefs.toarray())
    assert bare.n_outputs == 3
    one = limit_path(X, y[:, :1], 3, max_groups=2)
    np.testing.assert_array_equal(one.coefs.toarray(), limit_path(X, y[:, 0], 3, max_groups=2).coefs.toarray())


def test_huber_without_a_threshold_takes_its_scale_from_the_null_model():
    X, y, offset = problem("huber")
    null = Huber().null(y, np.ones(len(y)), offset)
    scaled = Huber().scaled_to(y, offset + null, np.ones(len(y)))
    paths = [limit_path(X, y, 3, loss=loss, offset=offset, max_groups=2) for loss in ("huber", scaled)]
    np.testing.assert_array_equal(paths[0].coefs.toarray(), paths[1].coefs.toarray())


@pytest.mark.parametrize(
    ("loss", "y", "offset", "message"),
    [
        ("cauchy", np.ones(6), None, "loss must be one of"),
        (Binomial(), np.arange(6), None, "must lie between 0 and 1"),
        (Binomial(), np.ones(6), None, "Every row is of class 1"),
        (Binomial(), np.array(list("ababab")), None, "GroupSparseClassifier"),
        (Poisson(), -np.ones(6), None, "must not be negative"),
        (Poisson(), np.zeros(6), None, "Every count is zero"),
        (Gamma(), np.zeros(6), None, "must be above zero"),
        (Multinomial(), np.ones(6), None, "one column per class"),
        (Poisson(), np.ones(5), None, "y has 5 entries, but X has 6 rows"),
        (Poisson(), np.arange(6), np.ones(5), r"offset has shape \(5,\)"),
        ("squared", np.arange(6), np.full(6, np.inf), "offset has missing or infinite values"),
        (Poisson(), np.arange(6), ["a"] * 6, "offset must hold numbers"),
        (Poisson(), np.ones((6, 2)), None, "2 columns, and the poisson loss"),
        ("cox", survival(np.arange(1.0, 7), np.zeros(6, dtype=bool)), None, "y has no event"),
    ],
)
def test_bad_input(loss, y, offset, message):
    with pytest.raises(ValueError, match=message):
        limit_path(np.random.default_rng(0).standard_normal((6, 4)), y, 2, loss=loss, offset=offset)


def test_weights_by_name_may_have_any_order():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 6)), rng.standard_normal(40)
    groups, weights = {"a": [0, 1], "b": [2, 3], "c": [4, 5]}, pd.Series({"c": 3.0, "a": 1.0, "b": 2.0})
    named, listed = (limit_path(X, y, groups, group_weights=given) for given in (weights, [1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(named.times, listed.times)
    assert named.entered == listed.entered
