import numpy as np
import pytest

from covey.paper.datasets import legacy_paper_data


def test_legacy_draws_are_those_of_the_notebooks():
    """The recipe in numpy's global generator, written out."""
    state = np.random.get_state()
    try:
        np.random.seed(6)
        X = np.random.binomial(1, 0.5, (150, 300)) * 2 - 1
        noise = np.random.normal(scale=0.5, size=150)
        X_val = np.random.binomial(1, 0.5, (50, 300)) * 2 - 1
        noise_val = np.random.normal(scale=0.5, size=50)
    finally:
        np.random.set_state(state)
    data = legacy_paper_data()
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.noise, noise)
    np.testing.assert_array_equal(data.y, X @ data.w_star + noise)
    np.testing.assert_array_equal(data.X_val, X_val)
    np.testing.assert_array_equal(data.y_val, X_val @ data.w_star + noise_val)


def test_legacy_leaves_the_global_generator_alone():
    np.random.seed(0)
    expected = np.random.uniform()
    np.random.seed(0)
    legacy_paper_data(20, 12, 3, seed=1)
    assert np.random.uniform() == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"design": "ar"}, "'rademacher' or 'gaussian'"),
        ({"support": range(301)}, "at most 300"),
        ({"seed": -1}, "seed"),
    ],
)
def test_legacy_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        legacy_paper_data(**arguments)
