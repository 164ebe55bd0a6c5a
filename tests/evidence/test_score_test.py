"""Score tests: the F test, Rao's test and the log-rank test by their formulas, ranks, and levels by simulation."""

import numpy as np
import pytest
from scipy import stats

from covey.evidence.score_test import independent_columns, score_test
from covey.losses import get_loss, survival
from covey.search.observations import Observations

RNG = np.random.default_rng(0)
N = 60
BASE = np.column_stack([np.ones(N), RNG.standard_normal((N, 3))])
X = RNG.standard_normal((N, 2))


def observed(loss, y, weight=None):
    loss = get_loss(loss)
    read = loss.read(y)
    m = read.n_outputs
    weight = np.ones(len(read.y)) if weight is None else weight
    return Observations(read.loss, read.y, weight, np.zeros((len(read.y), m)), np.ones(len(read.y)))


def f_test(y, base, X):
    both = np.hstack([base, X])
    full, small = (y - A @ np.linalg.lstsq(A, y)[0] for A in (both, base))
    r, left = X.shape[1], len(y) - both.shape[1]
    ratio = (small @ small - full @ full) / r / (full @ full / left)
    return stats.f.sf(ratio, r, left)


def test_squared_loss_has_the_f_test():
    y = BASE @ [1, 2, 0, -1] + 0.3 * X[:, 0] + RNG.standard_normal(N)
    assert score_test(observed("squared", y), BASE, X) == pytest.approx(f_test(y, BASE, X), rel=1e-9)
    weight = RNG.uniform(0.2, 2, N)
    weight *= N / weight.sum()
    root = np.sqrt(weight)[:, None]
    by_hand = f_test(y * root[:, 0], BASE * root, X * root)
    assert score_test(observed("squared", y, weight), BASE, X) == pytest.approx(by_hand, rel=1e-9)


def test_several_responses_share_a_test():
    Y = RNG.standard_normal((N, 3)) + X[:, [0]] * [0.4, 0, 0]
    each = [f_test(y, BASE, X) for y in Y.T]
    assert score_test(observed("squared", Y), BASE, X) == pytest.approx(3 * min(each), rel=1e-8)


def test_classes_have_raos_test_with_its_factor():
    y = (RNG.random(N) < 1 / (1 + np.exp(-BASE[:, 1]))).astype(float)
    coef = np.zeros(4)
    for _ in range(30):
        mean = 1 / (1 + np.exp(-BASE @ coef))
        coef += np.linalg.solve((BASE.T * mean * (1 - mean)) @ BASE, BASE.T @ (y - mean))
    A = np.hstack([BASE, X])
    inverse = np.linalg.inv((A.T * mean * (1 - mean)) @ A)
    u = A.T @ (y - mean)
    statistic = u @ inverse @ u
    p = stats.chi2.sf(statistic * (N - 6) / N, 2)
    assert score_test(observed("binomial", y), BASE, X) == pytest.approx(p, rel=1e-6)
    # two of three classes merged: the multinomial test of two classes is that of the binomial
    both = np.column_stack([1 - y, y])
    response = Observations(get_loss("multinomial"), both, np.ones(N), np.zeros((N, 2)), np.ones(N))
    assert score_test(response, BASE, X) == pytest.approx(p, rel=1e-6)


def test_survival_has_the_log_rank_test():
    group = np.repeat([0.0, 1.0], N // 2)
    time, event = RNG.exponential(1 + group), RNG.random(N) < 0.8
    observed_minus_expected = variance = 0.0
    for t in time[event]:
        at_risk = time >= t
        share = group[at_risk].mean()
        observed_minus_expected += group[time == t][0] - share
        variance += share * (1 - share)
    events = int(event.sum())
    p = stats.chi2.sf(observed_minus_expected**2 / variance * (events - 1) / events, 1)
    response = observed("cox", survival(time, event))
    assert score_test(response, np.empty((N, 0)), group[:, None]) == pytest.approx(p, rel=1e-6)


def test_dependent_columns_count_once():
    y = X[:, 0] + RNG.standard_normal(N)
    response = observed("squared", y)
    expected = score_test(response, BASE, X)
    twice = np.hstack([BASE, BASE[:, [1]] - 3 * BASE[:, [2]]])
    spare = np.hstack([X, X @ [[1.0], [2.0]], BASE[:, [1]], np.zeros((N, 1))])
    assert score_test(response, twice, spare) == pytest.approx(expected, rel=1e-9)
    assert score_test(response, BASE, BASE[:, 1:3] * 1e6) == 1.0
    assert independent_columns(np.zeros((5, 2))).shape == (5, 0)


def test_what_cannot_be_tested():
    separated = (BASE[:, 1] > 0).astype(float)
    assert score_test(observed("binomial", separated), BASE, X) is None
    exact = BASE @ [1.0, 2.0, 3.0, 4.0]
    assert score_test(observed("squared", exact), BASE, X) > 0.0  # only round-off error is left
    few = slice(0, 5)
    assert score_test(observed("squared", X[few, 0]), BASE[few], X[few]) == 1.0


@pytest.mark.parametrize("loss", ["binomial", "poisson", "gamma", "huber"])
def test_levels_hold(loss):
    """Null p-values with 16 columns on 80 rows: about as often small as they say, and not more."""
    rng, p_values = np.random.default_rng(1), []
    for _ in range(100):
        A = np.hstack([np.ones((80, 1)), rng.standard_normal((80, 16))])
        eta = 0.5 * A[:, 1:4].sum(axis=1)
        y = {
            "binomial": lambda eta=eta: (rng.random(80) < 1 / (1 + np.exp(-eta))).astype(float),
            "poisson": lambda eta=eta: rng.negative_binomial(2, 2 / (2 + np.exp(eta))).astype(float),  # overdispersed
            "gamma": lambda eta=eta: rng.gamma(2.0, np.exp(eta)),
            "huber": lambda eta=eta: eta + rng.standard_t(2, 80),
        }[loss]()
        response = observed(get_loss("huber").scaled_to(y, np.median(y), np.ones(80)) if loss == "huber" else loss, y)
        p = score_test(response, A[:, :-3], A[:, -3:])
        p_values.append(1.0 if p is None else p)
    p_values = np.array(p_values)
    assert 0.01 <= np.mean(p_values <= 0.1) <= 0.1 + 3 * np.sqrt(0.09 / 100)
    assert np.mean(p_values <= 0.01) <= 0.05
