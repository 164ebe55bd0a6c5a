"""Units: what is taken out of the columns comes back, by formulas."""

import numpy as np
import pytest

from covey import Groups
from covey.paper.baselines.units import Units

GROUPS = Groups.from_labels([0, 1, 0, 1, 0])


def example(fit_intercept, standardize):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((7, 5)) * [1, 10, 0.1, 3, 5] + 4, rng.standard_normal(7) + 2
    return X, y, Units.of(X, y, GROUPS, fit_intercept=fit_intercept, standardize=standardize)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("standardize", [True, False])
def test_columns_are_centred_and_of_unit_mean_square(fit_intercept, standardize):
    """The mean square is over n, not n - 1: what the loss norm(y - Xw)^2/(2n) is scaled by."""
    X, y, units = example(fit_intercept, standardize)
    order = [0, 2, 4, 1, 3]
    Z = X[:, order] - (X[:, order].mean(axis=0) if fit_intercept else 0)
    scale = np.sqrt(np.mean(Z**2, axis=0)) if standardize else np.ones(5)
    np.testing.assert_allclose(units.X, Z / scale, rtol=1e-12)
    np.testing.assert_allclose(units.scale, scale, rtol=1e-12)
    np.testing.assert_allclose(units.y, y - (y.mean() if fit_intercept else 0))
    if standardize:
        np.testing.assert_allclose(np.mean(units.X**2, axis=0), 1.0)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_path_predicts_what_its_rows_do(fit_intercept):
    X, _, units = example(fit_intercept, True)
    W = np.array([[0.0, 0, 0, 0, 0], [1, -1, 2, 0, 0], [1, -1, 2, 0.5, 3]])
    path = units.to_path(W, np.array([0, 1, 2]))
    np.testing.assert_allclose(path.predict(X), units.X @ W.T + units.y_mean, rtol=1e-10)
    assert [(l, int(t)) for l, t in path.entered] == [(0, 1), (1, 2)]
    assert [l for l, _ in units.to_path(W[:2], np.array([0, 1])).entered] == [0]  # the other group never enters
