"""Wrong input is refused with a message that names the culprit and the remedy."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from covey import Groups
from covey.paper.dynamics import SwitchOracle, diagonal_descent, gradient_flow, normalized_descent, plain_descent

X = np.random.default_rng(0).standard_normal((8, 6))
Y = np.arange(8.0)


def holed(value):
    bad = X.copy()
    bad[3, 4] = value
    return bad


@pytest.mark.parametrize("method", [normalized_descent, plain_descent, gradient_flow])
@pytest.mark.parametrize(
    ("x", "y", "groups", "message"),
    [
        (holed(np.nan), Y, 3, "missing or infinite values in column 4; impute or drop"),
        (holed(np.inf), Y, 3, "column 4"),
        (pd.DataFrame(holed(np.nan), columns=list("abcdef")), Y, 3, "column 'e'"),
        (X, np.append(Y[:7], np.nan), 3, "first in row 7"),
        (X, Y[:7], 3, "y has 7 entries, but X has 8 rows"),
        (X, np.ones((8, 2)), 3, "y must have one dimension"),
        (X, list("abcdefgh"), 3, "y must hold numbers"),
        (np.array([["a"] * 6] * 8), Y, 3, "X must hold numbers"),
        (pd.DataFrame({"a": Y, "b": list("abcdefgh")}), Y, 1, "column 'b' does not"),
        (Y, Y, 1, "X must have two dimensions"),
        (X[:0], Y[:0], 3, "X is empty"),
        (sp.csr_array(X), Y, 3, "X is sparse"),
        (X, Y, 4, "would be left over"),
        (X, Y, Groups.from_size(1, 5), "for 5 columns, but X has 6"),
        (X, Y, [0, 0, 1], "3 entries, but X has 6 columns"),
    ],
)
def test_bad_data(method, x, y, groups, message):
    with pytest.raises(ValueError, match=message):
        method(x, y, groups)


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        (normalized_descent, {"init_scale": 0.0}, "init_scale must be above 0"),
        (normalized_descent, {"init_scale": -1e-6}, "init_scale must be above 0"),
        (normalized_descent, {"init_scale": np.nan}, "init_scale must be above 0"),
        (normalized_descent, {"init_scale": [1e-6] * 3}, "one number or 2 of them"),
        (normalized_descent, {"step_size": 0}, "step_size must be above 0"),
        (normalized_descent, {"step_size": "big"}, "step_size must be a number above 0, not 'big'"),
        (normalized_descent, {"direction_step": -1.0}, "direction_step must be above 0"),
        (normalized_descent, {"switch": 10}, "switch needs a direction step"),
        (normalized_descent, {"switch": "later", "direction_step": 0.1}, "'oracle' or a rule, not 'later'"),
        (normalized_descent, {"switch": "oracle", "direction_step": 0.1}, "pass w_star="),
        (normalized_descent, {"switch": SwitchOracle(np.ones(3)), "direction_step": 0.1}, "2 non-negative numbers"),
        (normalized_descent, {"switch": -1, "direction_step": 0.1}, "switch must be at least 0"),
        (normalized_descent, {"switch": -0.1, "direction_step": 0.1}, "switch must be above 0"),
        (normalized_descent, {"start": np.ones(6)}, "group 0 has norm 1.73205. Divide each group by its norm"),
        (normalized_descent, {"start": np.ones(5)}, "6 finite numbers"),
        (normalized_descent, {"n_steps": -1}, "n_steps must be at least 0"),
        (normalized_descent, {"n_steps": 1.5}, "n_steps must be a whole number"),
        (normalized_descent, {"record_every": 0}, "record_every must be at least 1"),
        (normalized_descent, {"depth": 1}, "depth must be at least 2"),
        (normalized_descent, {"w_star": np.ones(5)}, "w_star must hold 6 finite numbers"),
        (normalized_descent, {"magnitude_at": "next"}, "'new' or 'old'"),
        (normalized_descent, {"gradient_scale": 0.0}, "gradient_scale must be above 0"),
        (plain_descent, {"start": "random"}, "'zero', 'small', 'aligned' or an array"),
        (plain_descent, {"weight_decay": -0.1}, "weight_decay must be at least 0"),
        (gradient_flow, {"t_end": -1.0}, "t_end must be above 0"),
        (gradient_flow, {"times": [0.0, 2.0, 1.0]}, "times must increase from 0"),
        (gradient_flow, {"times": [0.0, 2.0], "t_end": 2.0}, "times or t_end, not both"),
        (gradient_flow, {"rtol": 0.0}, "rtol must be above 0"),
    ],
)
def test_bad_parameters(method, options, message):
    with pytest.raises(ValueError, match=message):
        method(X, Y, 3, **options)


def test_the_diagonal_network_checks_too():
    with pytest.raises(ValueError, match="init_scale"):
        diagonal_descent(X, Y, init_scale=0.0)
    with pytest.raises(ValueError, match="column 4"):
        diagonal_descent(holed(np.nan), Y)


def test_a_data_frame_keeps_its_names():
    frame = pd.DataFrame(X, columns=["a_1", "a_2", "b_1", "b_2", "b_3", "c_1"])
    path = normalized_descent(frame, Y, {"a": ["a_1", "a_2"], "b": ["b_1", "b_2", "b_3"], "c": ["c_1"]}, n_steps=2)
    assert path.groups.names == ("a", "b", "c")
    assert path.groups.columns == tuple(frame.columns)
