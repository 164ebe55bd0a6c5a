"""Network: the settings of a path as a value, checked when it is made."""

import dataclasses
import pickle

import numpy as np
import pytest

import covey
from covey import group_path
from covey.network import Network, PathRunner
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
    assert path.init_scale == network.init_scale
