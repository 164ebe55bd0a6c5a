"""Network: the settings of a path as a value, checked when it is made."""

import dataclasses
import pickle

import numpy as np
import pytest

import covey
from covey import GroupSparseRegressor, group_path
from covey.datasets import make_group_sparse
from covey.network import Network, PathRunner
from covey.stopping import AtTime
from network_problems import LAYOUTS, make

BAD = {
    "init_scale": ({"init_scale": 0.0}, "init_scale must be above 0"),
    "a large start": ({"init_scale": 1e3}, "the method starts near zero"),
    "depth": ({"depth": 1}, "depth must be at least 2"),
    "algorithm": ({"algorithm": "three-stage"}, "algorithm must be one of"),
    "step_size": ({"step_size": "big"}, "step_size must be 'auto' or a number"),
    "direction_step": ({"direction_step": 0.1}, "applies after the switch"),
    "a negative direction_step": ({"algorithm": "two-stage", "direction_step": -1}, "direction_step must be above 0"),
    "switch_tol": ({"algorithm": "two-stage", "switch_tol": 0}, "switch_tol must be above 0"),
    "max_iter": ({"max_iter": 2.5}, "max_iter must be a whole number"),
    "engine": ({"engine": "fast"}, "engine must be one of"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_settings_are_named(case):
    settings, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        Network(**settings)


def test_it_is_a_value():
    network = Network(depth=3)
    assert covey.Network is Network
    assert network == Network(depth=3) != Network()
    assert pickle.loads(pickle.dumps(network)) == network
    with pytest.raises(dataclasses.FrozenInstanceError):
        network.depth = 2


@pytest.mark.parametrize(
    "settings", [{}, {"algorithm": "two-stage", "switch_tol": 0.01}, {"depth": 3, "init_scale": 0.03}]
)
def test_its_options_are_those_of_the_path(settings):
    groups = LAYOUTS["equal"]
    X, y = make(groups)
    network = Network(max_iter=300, **settings)
    path, expected = (
        PathRunner(X, y, groups).run(**network.options()),
        group_path(X, y, groups, max_iter=300, **settings),
    )
    np.testing.assert_array_equal(path.times, expected.times)
    np.testing.assert_array_equal(path.coefs.toarray(), expected.coefs.toarray())
    assert path.init_scale == network.options()["init_scale"]


@pytest.mark.parametrize("depth", [2, 3, 4])
@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 3.0, 4.0]], ids=["even", "weighted"])
def test_the_automatic_step_is_its_formula(depth, weights):
    """N^2 gamma u^(2N-2) = 0.2 at the fastest group's u^N = norm(X_l'y/n)/c_l; for N = 2, 1/(20 u_max^2)."""
    data = make_group_sparse(80, 12, 3, design="orthogonal", active=2, values=5.0, sigma=0.5, random_state=0)
    norms = data.groups.norms(data.X.T @ data.y / 80)
    c = np.ones(4) if weights is None else np.array(weights) / np.mean(weights)
    options = {"fit_intercept": False, "group_weights": weights, "depth": depth, "max_iter": 1, "init_scale": 0.1}
    fastest = (norms / c).max()
    wanted = 0.2 / (depth**2 * fastest ** ((2 * depth - 2) / depth))
    if depth == 2:
        assert wanted == pytest.approx(1 / (20 * fastest))
    assert group_path(data.X, data.y, data.groups, **options).step_size == pytest.approx(wanted, rel=1e-9)
    # and in other units of y: magnitudes scale as its N-th root, correlations as it does
    scaled = group_path(data.X, 7 * data.y, data.groups, **options)
    assert scaled.step_size == pytest.approx(wanted / 7 ** ((2 * depth - 2) / depth), rel=1e-9)


@pytest.mark.parametrize("depth", [2, 3, 4, 6])
def test_the_default_start_suits_the_depth(depth):
    """The strongest group wakes within the default number of iterations, and the true groups are found."""
    data = make_group_sparse(120, 60, 3, design="gaussian", active=3, sigma=0.3, random_state=1)
    network = Network(depth=depth)
    assert network.options()["init_scale"] ** depth <= 1.001e-4
    path = group_path(data.X, data.y, 3, depth=depth, max_iter=20_000)
    assert path.init_scale == network.options()["init_scale"]
    first = [l for l, _ in path.entered[:3]]
    assert sorted(first) == np.flatnonzero(data.u_star).tolist()
    model = GroupSparseRegressor(3, network=network, selection="holdout").fit(data.X, data.y)
    assert set(model.selected_groups_) >= set(first)
    assert model.score(data.X, data.y) > 0.7


@pytest.mark.parametrize("time", [3_000_000, 10**30])
def test_a_time_beyond_the_last_iteration_is_refused(time):
    data = make_group_sparse(40, 12, 3, random_state=0)
    with pytest.raises(ValueError, match=f"AtTime.{time}. lies beyond max_iter=100000"):
        GroupSparseRegressor(3, network=Network(), selection=AtTime(time)).fit(data.X, data.y)
