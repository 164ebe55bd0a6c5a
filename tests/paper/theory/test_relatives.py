"""docs/limit.md: what the limit path shares with group matching pursuit and group inverse scale space, and what not."""

import doctest
from pathlib import Path

import numpy as np
import pytest

from covey.paper.baselines import PrimalDual
from covey.paper.theory import limit_events

PAGE = Path(__file__).parents[3] / "docs" / "limit.md"


@pytest.fixture(scope="module")
def methods():
    """`pursuit` and `inverse_scale_space` as the page defines them."""
    names = {}
    for example in doctest.DocTestParser().get_examples(PAGE.read_text()):
        if example.source.startswith(("import", "def")):
            exec(example.source, names)
    return names


def test_all_three_agree_on_an_orthonormal_design(methods):
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.standard_normal((20, 10)))[0] * np.sqrt(20)
    y = X @ rng.standard_normal(10)
    events = limit_events(X, y, 2)
    order = [group for group, _, _ in events]
    assert methods["pursuit"](X, y, 5) == order
    found, w = methods["inverse_scale_space"](X, y, 5)
    assert list(found) == order
    np.testing.assert_allclose(list(found.values()), [time for _, time, _ in events], atol=0.06)
    before = np.repeat(np.arange(5), 2) != order[-1]  # the last group has only begun to grow
    np.testing.assert_allclose(w[before], events[-1][2][before], atol=0.01)


def test_the_last_interpolant_is_not_that_of_least_norm():
    """With more columns than rows: an interpolant on few groups, whose L2,1 norm is not the least."""
    rng = np.random.default_rng(0)
    larger = 0
    for _ in range(5):
        X, y = rng.standard_normal((6, 16)), rng.standard_normal(6)
        ours = limit_events(X, y, 2)[-1][2]
        least = PrimalDual(groups=2, n_steps=20_000, fit_intercept=False).path(X, y).coefs.toarray()[-1]
        for w in (ours, least):
            np.testing.assert_allclose(X @ w, y, atol=1e-6)
        norms = [np.linalg.norm(w.reshape(8, 2), axis=1).sum() for w in (ours, least)]
        assert norms[0] > norms[1] - 1e-6
        larger += norms[0] > 1.02 * norms[1]
    assert larger >= 3
