"""What every dynamics promises: the compiled twin, the record, the end, and the right answer on odd input."""

import numpy as np
import pytest

from covey import Groups
from covey.datasets import make_group_sparse
from covey.paper.dynamics import (
    Status,
    SwitchSettled,
    diagonal_descent,
    gradient_flow,
    normalized_descent,
    plain_descent,
)


def ungrouped(**options):
    return lambda X, y, groups, **more: diagonal_descent(X, y, **options, **more)


def grouped(method, **options):
    return lambda X, y, groups, **more: method(X, y, groups, **options, **more)


# small steps of each method, so that 25 of them move every part of the state
DESCENTS = {
    "algorithm 1": grouped(normalized_descent, init_scale=0.3, step_size=0.02),
    "algorithm 1, depth 3": grouped(normalized_descent, init_scale=0.5, step_size=0.02, depth=3),
    "algorithm 2, at a step": grouped(
        normalized_descent, init_scale=0.3, step_size=0.02, direction_step=0.05, switch=20
    ),
    "algorithm 2, settled": grouped(
        normalized_descent, init_scale=0.3, step_size=0.05, direction_step=0.05, switch=SwitchSettled(0.02)
    ),
    "algorithm 2, auto": grouped(normalized_descent, init_scale=0.3, step_size=0.02, direction_step="auto", switch=10),
    "small direction step": grouped(normalized_descent, init_scale=0.3, step_size=0.02, direction_step=0.1),
    "authors' code": grouped(
        normalized_descent, init_scale=0.3, step_size=0.01, gradient_scale=2.0, magnitude_at="old"
    ),
    "plain, zero": grouped(plain_descent, init_scale=0.3, step_size=0.02),
    "plain, aligned, decay": grouped(plain_descent, init_scale=0.3, step_size=0.02, start="aligned", weight_decay=0.1),
    "plain, depth 4": grouped(plain_descent, init_scale=0.8, step_size=0.01, start="small", depth=4),
    "diagonal": ungrouped(init_scale=0.2, step_size=0.02),
    "diagonal, positive, decay": ungrouped(init_scale=0.2, step_size=0.02, positive_only=True, weight_decay=0.1),
    "diagonal, depth 3": ungrouped(init_scale=0.4, step_size=0.02, depth=3),
}
FLOWS = {
    "flow": grouped(gradient_flow, init_scale=0.2, t_end=4.0),
}
ALL = DESCENTS | FLOWS


@pytest.fixture(params=["wide", "tall", "scattered groups", "Fortran"])
def problem(request):
    if request.param == "scattered groups":
        groups = Groups.from_labels([2, 0, 1, 0, 2, 2, 1, 0, 3, 3])
        return make_group_sparse(40, 10, groups, active=2, values="normal", sigma=0.1, random_state=3)
    n, p = (20, 24) if request.param == "wide" else (60, 12)
    data = make_group_sparse(n, p, 3, active=2, values="normal", sigma=0.1, random_state=3)
    if request.param == "Fortran":
        object.__setattr__(data, "X", np.asfortranarray(data.X))
    return data


@pytest.mark.parametrize("name", DESCENTS)
def test_compiled_agrees_with_the_paper_reading_twin(name, problem):
    compiled, twin = (
        DESCENTS[name](problem.X, problem.y, problem.groups, n_steps=25, reference=reference)
        for reference in (False, True)
    )
    for field in ("t", "u", "v", "w", "loss"):
        np.testing.assert_allclose(
            getattr(compiled, field), getattr(twin, field), rtol=1e-10, atol=1e-10, err_msg=field
        )
    assert compiled.switch == twin.switch
    assert not np.allclose(compiled.w[-1], compiled.w[0], atol=1e-3)


@pytest.mark.parametrize("name", ALL)
def test_loss_and_error_are_what_they_say_and_the_loss_falls(name, problem):
    path = ALL[name](problem.X, problem.y, problem.groups, w_star=problem.w_star)
    assert path.status is Status.COMPLETED
    assert path.loss[-1] < path.loss[0]
    i = len(path) // 2
    residual = problem.y - problem.X @ path.w[i]
    assert path.loss[i] == pytest.approx(residual @ residual / (2 * len(problem.y)), rel=1e-12)
    assert path.error[i] == pytest.approx(np.sum((path.w[i] - problem.w_star) ** 2), rel=1e-12)


@pytest.mark.parametrize("name", DESCENTS)
def test_recording_less_changes_nothing_else_and_stop_is_obeyed(name, problem):
    every = DESCENTS[name](problem.X, problem.y, problem.groups, n_steps=50)
    some = DESCENTS[name](problem.X, problem.y, problem.groups, n_steps=50, record_every=7)
    assert some.t.tolist() == [0, 7, 14, 21, 28, 35, 42, 49, 50]
    np.testing.assert_array_equal(some.w, every.w[some.t])
    assert some.switch == every.switch
    stopped = DESCENTS[name](problem.X, problem.y, problem.groups, n_steps=50, record_every=5, stop=lambda t, w: t > 19)
    assert (stopped.status, stopped.t[-1]) == (Status.STOPPED, 20)


@pytest.mark.parametrize("name", ALL)
def test_permuting_groups_permutes_the_answer(name, problem):
    order = np.random.default_rng(0).permutation(problem.X.shape[1])
    plain = ALL[name](problem.X, problem.y, problem.groups)
    moved = ALL[name](np.ascontiguousarray(problem.X[:, order]), problem.y, problem.groups.labels[order])
    np.testing.assert_allclose(moved.w[-1], plain.w[-1][order], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("case", ["y = 0", "a zero group", "constant column", "n = 1", "p = 1"])
def test_degenerate_data_give_finite_right_answers(name, case):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((10, 6)), rng.standard_normal(10)
    groups = Groups.from_size(3, 6)
    if case == "y = 0":
        y = np.zeros(10)
    elif case == "a zero group":
        X[:, :3] = 0
    elif case == "constant column":
        X[:, 2] = 1
    elif case == "n = 1":
        X, y = X[:1], y[:1]
    elif case == "p = 1":
        X, groups = X[:, :1], Groups.from_size(1, 1)
    path = ALL[name](X, y, groups)
    assert np.isfinite(path.w).all()
    assert np.isfinite(path.loss).all()
    if "decay" not in name:  # a penalty may cost more than a poor fit gains
        assert path.loss[-1] <= path.loss[0]


@pytest.mark.parametrize("name", DESCENTS)
@pytest.mark.parametrize("reference", [False, True])
def test_a_too_large_step_is_a_status_not_a_nan(name, reference):
    data = make_group_sparse(20, 12, 3, active=2, random_state=0)
    # data a thousand times larger make every step a million times too large
    path = DESCENTS[name](1e3 * data.X, 1e3 * data.y, data.groups, n_steps=400, reference=reference)
    assert path.status is Status.DIVERGED
    assert "Decrease step_size" in path.message
    assert np.isfinite(path.w).all()
    assert path.t[-1] < 400


def test_at_and_best():
    data = make_group_sparse(random_state=0)
    path = normalized_descent(data.X, data.y, data.groups, n_steps=100, record_every=10, w_star=data.w_star)
    np.testing.assert_array_equal(path.at(34), path.w[3])
    assert path.best == np.argmin(path.error)
    with pytest.raises(ValueError, match="lies outside"):
        path.at(101)
    with pytest.raises(ValueError, match="pass w_star="):
        normalized_descent(data.X, data.y, data.groups, n_steps=1).best
