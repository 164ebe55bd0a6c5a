"""What a response must be; losses by name; losses as values."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

from covey import GroupSparseRegressor
from covey.losses import (
    LOSSES,
    Binomial,
    Gamma,
    Huber,
    Loss,
    Multinomial,
    MultiQuantile,
    MultiSquared,
    NegativeBinomial,
    Ordinal,
    Poisson,
    Quantile,
    Squared,
    Tweedie,
    get_loss,
)
from loss_cases import CASES

ALL = [
    Squared(), Huber(), Huber(2.0), Quantile(), Quantile(0.9, 2.0), MultiQuantile(), MultiQuantile((0.2, 0.4)),
    Poisson(), NegativeBinomial(), NegativeBinomial(2.0), Gamma(), Tweedie(),
    Tweedie(1.3), Binomial(), Multinomial(), MultiSquared(),
    Ordinal(), Ordinal(order=("a", "b")),
]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_check_takes_what_it_should(name):
    case = CASES[name]
    checked = case.loss.check(case.y)
    assert checked.dtype == np.float64
    np.testing.assert_allclose(checked, case.y, rtol=1e-14)
    if not case.loss.vector:
        np.testing.assert_array_equal(case.loss.check(case.y[:, None]), case.y)
        np.testing.assert_array_equal(case.loss.check(list(case.y)), case.y)


def test_check_makes_numbers_of_what_holds_them():
    np.testing.assert_array_equal(Binomial().check([True, False]), [1.0, 0.0])
    assert Poisson().check(np.array([1, 2], dtype=np.int8)).dtype == np.float64
    np.testing.assert_array_equal(Multinomial().check([[2 / 3, 1 / 3]]).sum(axis=1), 1.0)
    single = np.full((1, 7), 1 / 7, dtype=np.float32)
    assert Multinomial().check(single).sum() == pytest.approx(1, abs=1e-15)


REFUSED = {
    "negative count": (Poisson(), [0, 2, -1, -3], "must not be negative.*row 2 has -1 .2 such rows.*loss='squared'"),
    "huge count": (Poisson(), [0, 1e300], "must not exceed 9.*row 1 has 1e.300. Divide y"),
    "negative overdispersed count": (NegativeBinomial(), [1, -2], "negative for the negative binomial loss; row 1"),
    "negative amount": (Tweedie(), [0, 2, -1.5], "must not be negative for the Tweedie loss; row 2 has -1.5.*'huber'"),
    "huge amount": (Tweedie(), [0, 1e300], r"must not exceed 1e\+150.*row 1 has 1e\+300"),
    "gamma zero": (Gamma(), [1, 0.0], "must be above zero for the gamma loss; row 1 has 0. Use loss='poisson'"),
    "gamma denormal": (Gamma(), [1.0, 1e-310], "row 1 has 1e-310. Multiply y by a constant"),
    "squared huge": (Squared(), [1.0, -1e300], r"must not exceed 1e\+150.*row 1 has -1e\+300. Divide y by a constant"),
    "several huge": (MultiSquared(), [[0, 1], [1e300, 2]], r"row 1 has \[1.e\+300 2.e\+000\]"),
    "labels 1 and 2": (
        Binomial(),
        [1, 2, 1],
        "between 0 and 1.*row 1 has 2. Code .* as 0 and 1, or use covey.Group",
    ),
    "text": (Squared(), ["a", "b"], "must hold numbers. For classes use covey.GroupSparseClassifier"),
    "complex": (Squared(), [1j], "must hold numbers"),
    "missing": (Poisson(), [1.0, np.nan, np.inf], r"missing or infinite values, first in row 1 \(2 of 3 in all\)"),
    "missing in several": (MultiSquared(), [[1.0, 2.0], [np.nan, 1.0]], "first in row 1"),
    "empty": (Squared(), [], "is empty"),
    "two columns": (Squared(), np.ones((3, 2)), r"not shape \(3, 2\). For several responses use .*multi-squared"),
    "three axes": (Squared(), np.ones((3, 2, 2)), r"must have one dimension, not shape \(3, 2, 2\)"),
    "one axis": (MultiSquared(), np.ones(3), r"must have two dimensions \(rows, outputs\)"),
    "quantiles of two responses": (MultiQuantile(), [[1, 2], [3, 4]], "has 2 columns, and the quantiles are those of"),
    "quantiles of three": (
        MultiQuantile(),
        [[1, 2, 3], [3, 4, 5]],
        "has 3 columns, and the quantiles are those of one",
    ),
    "labels": (Multinomial(), [0, 1, 2], "one column per class.*np.eye"),
    "one class": (Multinomial(), np.ones((4, 1)), "at least two"),
    "no proportions": (Multinomial(), [[1, 0], [1, 1]], "must add up to one in every row; row 1 has"),
    "negative proportion": (Multinomial(), [[1.5, -0.5]], "must not be negative"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_check_refuses(case):
    loss, y, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        loss.check(y)


def test_losses_by_name():
    for name, loss in LOSSES.items():
        assert get_loss(name) == loss()
        assert get_loss(loss()) == loss()
    assert (get_loss("gaussian"), get_loss("logistic")) == (Squared(), Binomial())


WRONG = {
    "an unknown name": (lambda: get_loss("l2"), r"one of 'squared', 'huber', .*, or a covey.losses.Loss, not 'l2'"),
    "a class": (lambda: get_loss(Poisson), r"pass Poisson\(\)"),
    "nothing": (lambda: get_loss(None), "not None"),
    "a list": (lambda: get_loss(["squared"] * 50), "not a list"),
    "levels in no order": (lambda: MultiQuantile([0.9, 0.1]), "levels must be in ascending order without repetitions"),
    "one level": (lambda: MultiQuantile([0.5]), r"list of at least two.*use Quantile\(level\) for one"),
    "a number": (lambda: MultiQuantile(0.5), r"list of at least two.*use Quantile\(level\) for one"),
    "levels in words": (lambda: MultiQuantile(["a", "b"]), "levels must be a number"),
    "a level of 90": (lambda: MultiQuantile([0.5, 90]), "levels must lie between 0 and 1"),
    "a level of 1": (lambda: Quantile(1), "level must lie between 0 and 1, such as 0.9, not 1"),
    "the power of Poisson": (lambda: Tweedie(1), "power must lie between 1 and 2, not 1: use loss='poisson'"),
    "the power of gamma": (lambda: Tweedie(2), "power must lie between 1 and 2, not 2: use loss='poisson'"),
    "no threshold": (lambda: Huber().value(np.ones(2), np.zeros(2)), r"no threshold yet.*scaled_to"),
    "no scale": (lambda: Quantile().value(np.ones(2), np.zeros(2)), r"Quantile\(\) has no scale yet"),
    "no power": (lambda: Tweedie().value(np.ones(2), np.zeros(2)), r"no power yet: give it one, or call scaled_to"),
    "no overdispersion": (
        lambda: NegativeBinomial().value(np.ones(2), np.zeros(2)), r"no overdispersion yet: give it one, or call",
    ),
    "a name of the response": (lambda: Poisson().check([-1], name="'sales'"), "'sales' must not be negative"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_loss_is_refused(case):
    make, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, "1", True], ids=repr)
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Huber, "threshold must be"),
        (lambda value: Huber(1.0, value), "limit must be"),
        (lambda value: Quantile(0.5, value), "scale must be"),
        (NegativeBinomial, "overdispersion must be"),
        (Tweedie, "power must"),
        (Quantile, "level must"),
    ],
    ids=["threshold", "limit", "scale", "overdispersion", "power", "level"],
)
def test_parameters_that_are_no_numbers_in_their_range(make, message, bad):
    with pytest.raises(ValueError, match=message):
        make(bad)


def test_levels_are_kept_as_a_tuple():
    assert MultiQuantile([0.1, 0.9]) == MultiQuantile(np.array([0.1, 0.9]))
    assert MultiQuantile([0.1, 0.9]).outputs == ("quantile 0.1", "quantile 0.9")


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_losses_are_values(loss):
    twin = dataclasses.replace(loss)
    assert twin == loss
    assert hash(twin) == hash(loss)
    assert pickle.loads(pickle.dumps(loss)) == loss
    assert copy.deepcopy(loss) == loss
    assert eval(repr(loss)) == loss
    with pytest.raises(AttributeError):
        loss.threshold = 3.0
    assert sum(other == loss for other in ALL) == 1


@pytest.mark.parametrize(
    ("loss", "below", "above"),
    [(Squared(), 0.3, 4.0), (Huber(), 0.3, 4.0), (Gamma(), 0.3, 4.0), (Poisson(), 1.0, 4.0), (Binomial(), 1.0, 1.0)],
    ids=["squared", "huber", "gamma", "poisson", "binomial"],
)
def test_dispersion(loss, below, above):
    assert loss.dispersion(0.3) == below
    assert loss.dispersion(4.0) == above


def test_outliers_do_not_move_the_dispersion_of_huber():
    """The mean deviance and the squared threshold are bounds on the mean square of the clipped residuals."""
    residuals = np.append(np.random.default_rng(0).standard_normal(99), 1e9)
    loss = Huber(1.345)
    found = loss.dispersion(loss.deviance(residuals, 0.0).mean())
    assert np.square(loss.residual(residuals, 0.0)).mean() <= found == 1.345**2
    mean = loss.deviance(residuals[:99], 0.0).mean()
    assert np.square(loss.residual(residuals[:99], 0.0)).mean() <= loss.dispersion(mean) == mean


def test_criterion_of_the_squared_loss_is_twice_the_gaussian_likelihood():
    """Differences between models, with the variance at its best: the usual n log(RSS / n)."""
    from scipy.stats import norm

    rng = np.random.default_rng(0)
    y, fits = rng.standard_normal(50), rng.standard_normal((2, 50))
    deviances = np.array([Squared().deviance(y, fit).mean() for fit in fits])
    twice = [-2 * norm(fit, np.sqrt(d)).logpdf(y).sum() for fit, d in zip(fits, deviances, strict=True)]
    assert np.diff(Squared().criterion(deviances, 50))[0] == pytest.approx(np.diff(twice)[0])
    assert Squared().criterion(0.0, 50) < -1e4
    assert isinstance(Squared().criterion(0.5, 50), float)


def test_criterion_of_counts_is_twice_the_poisson_likelihood():
    from scipy.stats import poisson

    case = CASES["poisson"]
    y, fits = case.y, [case.predictor(seed) for seed in range(2)]
    deviances = np.array([Poisson().deviance(y, fit).mean() for fit in fits])
    twice = [-2 * poisson(np.exp(fit)).logpmf(y).sum() for fit in fits]
    assert np.diff(Poisson().criterion(deviances, y.size))[0] == pytest.approx(np.diff(twice)[0])


def test_a_loss_that_bends_down_is_refused():
    class Concave(Loss):
        name = "concave"
        identity_link = True

        def value(self, y, eta):
            return np.abs(y - eta)

        def residual(self, y, eta):
            return np.sign(y - eta)

        def curvature(self, y, eta):
            return np.full_like(y, -1.0)

    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"curvature of the concave loss is -1 in row 0.* must be convex"):
        GroupSparseRegressor(loss=Concave()).fit(rng.standard_normal((30, 4)), rng.standard_normal(30))
