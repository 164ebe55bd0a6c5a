"""Answers do not depend on the processor: equal groups, and models to 1e-6, under other kernels and threads.

``python tools/robustness.py --processors 600`` compares many more fits.
"""

import numpy as np
import pytest

from covey import GroupSparseClassifier
from processor_fits import problem
from processors import PROCESSORS, largest_differences


def test_other_kernels_and_threads_give_the_same_model():
    found = largest_differences(0, 30, ["squared"], PROCESSORS[:3])
    assert len(found) == 30
    assert {fit: apart for fit, apart in found.items() if apart > 1e-6} == {}


@pytest.mark.parametrize(
    ("design", "noise", "rule", "seed"),
    [("factorial", "weak", "select", 9099), ("repeated", "no noise", "predict", 9012)],
)
def test_tied_groups_and_round_off_error_in_x(design, noise, rule, seed):
    """Groups that wake at the same time do so whatever the last digit of X; equal values stay equal."""
    X, y, groups = problem(design, noise, "binomial", seed)
    rng, other = np.random.default_rng(seed), X.copy()
    for column in other.T:
        values, place = np.unique(column, return_inverse=True)
        column[:] = (values * (1 + 1e-15 * rng.standard_normal(values.size)))[place]
    one, two = (GroupSparseClassifier(groups, rule=rule).fit(data, y) for data in (X, other))
    np.testing.assert_allclose(two.coef_, one.coef_, rtol=0, atol=1e-6 * np.abs(one.coef_).max())
