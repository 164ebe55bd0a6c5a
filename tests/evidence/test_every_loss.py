"""Tests, effects, stability selection, knockoffs and nested scores find what has an effect, for every loss."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from covey import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, nested_score, stability_selection
from covey.evidence import effect, knockoffs, test_groups
from covey.losses import MultiQuantile, survival

N = 160
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 40))
ETA = 1.2 * X[:, 4] - 1.2 * X[:, 5]  # the group at position 2
NOISE = RNG.standard_normal(N)
CODES = np.digitize(ETA + 0.3 * RNG.logistic(size=N), [-1, 1])
RESPONSES = {
    "squared": ETA + NOISE,
    "huber": ETA + 0.3 * RNG.standard_t(2, N),
    "quantile": ETA + NOISE,
    "multi-quantile": ETA + NOISE,
    "poisson": RNG.poisson(np.exp(ETA)),
    "negative-binomial": RNG.negative_binomial(3, 3 / (3 + np.exp(ETA))),
    "gamma": RNG.gamma(3.0, np.exp(ETA)),
    "tweedie": np.where(RNG.random(N) < 0.2, 0.0, RNG.gamma(3.0, np.exp(ETA))),
    "several": np.column_stack([ETA, -ETA]) + 0.5 * RNG.standard_normal((N, 2)),
    "binomial": np.where(ETA + 0.3 * RNG.logistic(size=N) > 0, "yes", "no"),
    "multinomial": np.array(["low", "mid", "high"])[CODES],
    "ordinal": pd.Series(pd.Categorical.from_codes(CODES, ["low", "mid", "high"], ordered=True)),
    "cox": survival(RNG.exponential(np.exp(-ETA)), RNG.random(N) < 0.8),
}
LOSSES = {"several": "squared", "multi-quantile": MultiQuantile([0.2, 0.5, 0.8])}


def model_of(case, **options):
    if case == "cox":
        return GroupSparseCox(2, **options)
    if case in ("binomial", "multinomial", "ordinal"):
        return GroupSparseClassifier(2, **options, **({"loss": "ordinal"} if case == "ordinal" else {}))
    return GroupSparseRegressor(2, loss=LOSSES.get(case, case), **options)


@pytest.mark.parametrize("case", RESPONSES)
def test_what_has_an_effect_is_found(case):
    y, loss = RESPONSES[case], LOSSES.get(case, case)
    found = stability_selection(X, y, 2, loss=loss, n_pairs=6, n_first=3, always=[0], random_state=0)
    assert found.selected_groups[0] == 2
    assert len(found.selected_groups) <= 2
    assert (found.n_groups, found.always_groups) == (19, (0,))
    assert 0 not in found.to_frame().index
    copies = knockoffs(X, y, 2, loss=loss, random_state=0)
    assert copies.draws[0].argmax() == 2
    nested = nested_score(model_of(case, selection=3), sp.csr_array(X), y, 3, references=False)
    assert nested.frequencies[2] == 3
    assert nested.mean > nested.references["null"].mean + 0.1
    if case == "ordinal":  # tests take such classes as classes without an order
        case = "multinomial"
    tests = test_groups(model_of(case), X, y)
    assert tests.selected_groups[:1] == [2]
    assert np.isfinite(tests.p_values).all()
    if case in ("several", "multinomial", "multi-quantile"):
        with pytest.raises(ValueError, match="Effects are for one response per row"):
            effect(X, y, of=4, loss=loss)
    else:
        one = effect(X, y, of=[4, 10], loss=loss)
        assert one.p_values[0] < 1e-4 < one.p_values[1]
        assert np.sign(one.estimates[0]) == 1
