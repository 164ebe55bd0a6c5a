"""Quantiles are those of statsmodels, do not cross, and have their share of rows below."""

import numpy as np
import pytest

from covey import GroupSparseRegressor
from covey.losses import MultiQuantile, Quantile
from covey.selection import Size
from loss_problems import grouped_problem


@pytest.mark.parametrize("level", [0.1, 0.5, 0.8])
def test_quantiles_are_those_of_statsmodels(level):
    """The less smoothing, the closer; the pinball loss is within its bound with the usual smoothing, too."""
    api = pytest.importorskip("statsmodels.api")
    X, y, groups = grouped_problem("quantile", n=300)
    usual = GroupSparseRegressor(groups, loss=Quantile(level), selection=Size(3)).fit(X, y)
    used = np.flatnonzero(usual.coef_)
    design = api.add_constant(X[:, used])
    peer = api.QuantReg(y, design).fit(q=level, p_tol=1e-12, max_iter=20_000)
    sharp = GroupSparseRegressor(groups, loss=Quantile(level, scale=0.003), selection=Size(3)).fit(X, y)
    assert set(sharp.selected_groups_) == set(usual.selected_groups_)
    np.testing.assert_allclose([sharp.intercept_, *sharp.coef_[used]], peer.params, atol=2e-3)
    least = Quantile(level).deviance(y, design @ peer.params).mean() / 2
    for model, bound in ((usual, 0.1 * usual.loss_.scale * np.log(2)), (sharp, 0.0003 * np.log(2))):
        found = Quantile(level).deviance(y, model.predict(X)).mean() / 2
        assert least * (1 - 1e-6) <= found <= least + bound
    together = GroupSparseRegressor(groups, loss=MultiQuantile([level, 0.9], usual.loss_.scale), selection=Size(3))
    np.testing.assert_allclose(together.fit(X, y).coef_[0], usual.coef_, atol=1e-6)


def test_predicted_quantiles_do_not_cross_and_have_their_share_of_rows_below():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (600, 8))
    y = 2 * X[:, 0] + (0.2 + X[:, 1]) * rng.standard_normal(600)
    model = GroupSparseRegressor(loss=MultiQuantile([0.1, 0.5, 0.52, 0.9])).fit(X[:400], y[:400])
    assert {0, 1} <= set(model.selected_groups_)
    far = model.predict(10 * rng.standard_normal((500, 8)))
    assert (np.diff(far, axis=1) >= 0).all()
    np.testing.assert_allclose((y[400:, None] < model.predict(X[400:])).mean(axis=0), [0.1, 0.5, 0.52, 0.9], atol=0.07)
    # the spread grows with the second column
    assert model.coef_[3, 1] > model.coef_[0, 1] + 1
    with pytest.raises(ValueError, match=r"predicts quantile 0\.1, .*which are bounds themselves: leave interval= out"):
        model.predict(X, interval=0.9)
    assert "coefficient_quantile 0.9" in model.coefficients()
