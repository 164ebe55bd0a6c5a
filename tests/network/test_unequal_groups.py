"""With noise only, the group that wakes first is not predicted by its size."""

import numpy as np
import pytest
from scipy import stats

from covey import Groups, group_path

SIZES = np.arange(1, 31)


def first_sizes(weights, n=100, seeds=200):
    """The size of the first group to wake in each of many data sets of noise."""
    groups = Groups.from_sizes(np.random.default_rng(0).permutation(SIZES))
    out = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((n, groups.n_columns)), rng.standard_normal(n)
        path = group_path(X, y, groups, group_weights=weights, stop=lambda snapshot: snapshot.n_woken > 0)
        out.append(groups.sizes[path.entered[0][0]])
    return np.array(out)


def p_value(first):
    """Under a choice at random each third of the sizes comes up equally often."""
    return stats.chisquare([np.sum(first <= 10), np.sum((first > 10) & (first <= 20)), np.sum(first > 20)]).pvalue


def test_size_does_not_predict_who_wakes_first():
    first = first_sizes("noise")
    z = (first.mean() - SIZES.mean()) / (SIZES.std() / np.sqrt(first.size))
    assert abs(z) < 3
    assert p_value(first) > 1e-3


@pytest.mark.parametrize(("weights", "favoured"), [("sqrt", lambda s: s <= 10), (None, lambda s: s > 20)])
def test_other_weights_favour_a_size(weights, favoured):
    first = first_sizes(weights, seeds=60)
    assert favoured(first).mean() > 0.6
    assert p_value(first) < 1e-6


def test_weights_of_equal_groups_are_one():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 40)), rng.standard_normal(60)
    paths = [group_path(X, y, 4, group_weights=w, max_iter=300, times=[300]).at(300) for w in ("noise", "sqrt", None)]
    np.testing.assert_allclose(paths[1:], [paths[0], paths[0]], rtol=1e-9)
