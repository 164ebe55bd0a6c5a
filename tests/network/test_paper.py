"""The paper's algorithms to the letter: the printed step, raw columns, and one scale for every step."""

import numpy as np
import pytest

import covey
from covey import GroupSparseRegressor, Network, group_path
from covey.datasets import legacy_paper_data
from covey.dynamics import normalized_descent
from covey.network import PathRunner
from covey.stopping import AtTime
from network_problems import LAYOUTS, make

RAW = {"standardize": False, "group_weights": None, "fit_intercept": False}
SECOND = {"step_size": 1e-3, "direction_step": 1e-3}
DATA = {
    "figure 2": lambda: legacy_paper_data(),
    "figure 3": lambda: legacy_paper_data(support=range(5, 14)),
    "figure 11": lambda: legacy_paper_data(design="gaussian", support=range(5, 14), seed=42),
}


def written_from_the_text(X, y, groups, n_steps, *, alpha=1e-6, gamma=1e-3, eta=None, tau=0.0, start=None):
    """Algorithms 1 and 2 (the practical rule armed at half of a first correlation) in numpy, from the text alone."""
    n, labels, L = len(y), groups.labels, groups.n_groups
    v = np.ones(X.shape[1]) if start is None else start
    u, v = np.full(L, alpha), v / groups.norms(v)[labels]
    first = groups.norms(X.T @ y / n)
    switched = armed = False
    for _ in range(n_steps):

        def minus_gradients(v, u=u):
            g = X.T @ (y - X @ (u[labels] ** 2 * v)) / n
            return 2 * u * np.bincount(labels, v * g), u[labels] ** 2 * g

        steps = np.full(L, eta) if switched else 1 / u**4
        z = v + steps[labels] * minus_gradients(v)[1]
        v = z / groups.norms(z)[labels]
        new = u + gamma * minus_gradients(v)[0]
        armed = armed or bool((new**2 >= first / 2).any())
        switched = switched or (armed and bool(np.max(np.abs(new - u) / u) < tau))
        u = new
    return u[labels] ** 2 * v


def awake(path):
    return np.isin(path.groups.labels, [l for l, _ in path.entered])


@pytest.mark.parametrize("figure", DATA)
@pytest.mark.parametrize("algorithm", [1, 2])
def test_the_printed_step_is_the_papers_text(figure, algorithm):
    data = DATA[figure]()
    options = {"update": "printed", "max_iter": 900, "step_size": 1e-3}
    text = {"gamma": 1e-3}
    if algorithm == 2:
        options |= {"algorithm": "two-stage", "direction_step": 1e-3, "switch_tol": 0.01}
        text |= {"eta": 1e-3, "tau": 0.01}
    path = group_path(data.X, data.y, data.groups, **options, **RAW)
    w = written_from_the_text(data.X, data.y, data.groups, 900, **text)
    assert len(path.entered) >= 3
    np.testing.assert_allclose(path.at(900)[awake(path)], w[awake(path)], rtol=1e-7, atol=1e-7)
    # and what is not there is asleep by the text too: below a thousandth of the largest correlation
    largest = data.groups.norms(data.X.T @ data.y / len(data.y)).max()
    assert data.groups.norms(np.where(awake(path), 0, w)).max() < 1.1e-3 * largest


@pytest.mark.parametrize("reference", [False, True], ids=["compiled", "plain"])
def test_the_reference_dynamics_are_the_papers_text(reference):
    data = DATA["figure 3"]()
    path = normalized_descent(
        data.X, data.y, data.groups, switch=0.01, n_steps=850, record_every=850, reference=reference, **SECOND
    )
    w = written_from_the_text(data.X, data.y, data.groups, 850, eta=1e-3, tau=0.01)
    np.testing.assert_allclose(path.w[-1], w, rtol=1e-9, atol=1e-9)


def test_the_fast_step_is_not_the_papers_but_close_to_it():
    """While groups rise the two differ by more than rounding; where they have settled they agree."""
    data = DATA["figure 2"]()
    paths = [
        group_path(data.X, data.y, 3, step_size=1e-3, max_iter=900, update=update, engine="exact", **RAW)
        for update in ("fast", "printed")
    ]
    risen, settled = (np.abs(paths[0].at(t) - paths[1].at(t)).max() for t in (430, 900))
    assert risen > 0.05
    assert settled < 1e-3


def test_no_step_is_cut():
    """Where the awake groups are so correlated that the text's direction step oscillates, it oscillates here too."""
    rng = np.random.default_rng(0)
    X = 0.3 * rng.standard_normal((200, 45)) + rng.standard_normal((200, 1))
    y = X[:, ::3].sum(axis=1) + 0.1 * rng.standard_normal(200)
    options = {"init_scale": 0.3, "step_size": 1e-3, "max_iter": 60}
    path = group_path(X, y, 3, update="printed", **options, **RAW)
    w = written_from_the_text(X, y, path.groups, 60, alpha=0.3, start=X.T @ y)
    on = awake(path)
    assert on.any()
    np.testing.assert_allclose(path.at(60)[on], w[on], rtol=1e-6, atol=1e-6)
    cut = group_path(X, y, 3, engine="exact", **options, **RAW)
    assert np.abs(cut.at(60)[on] - w[on]).max() > 0.1


def test_figure_3_through_the_path():
    """The same numbers as through `covey.dynamics`: steps are on the data's own scale everywhere."""
    data = DATA["figure 3"]()
    for update in ("fast", "printed"):
        path = group_path(
            data.X, data.y, 3, algorithm="two-stage", switch_tol=0.01, max_iter=2000, update=update, **SECOND, **RAW
        )
        assert np.sum((path.at(2000) - data.w_star) ** 2) == pytest.approx(0.01245, abs=2e-5)
        assert path.state.direction_step == pytest.approx(1e-3)
        assert path.step_size == pytest.approx(1e-3)


@pytest.mark.parametrize("algorithm", [1, 2])
def test_the_preset_is_the_paper_whatever_the_estimator_would_do_to_columns(algorithm):
    data = DATA["figure 11"]()
    steps = {"step_size": 1e-3} | ({"direction_step": 1e-3, "switch_tol": 0.01} if algorithm == 2 else {})
    network = Network.paper(algorithm, **steps)
    model = GroupSparseRegressor(groups=3, network=network, selection=AtTime(900)).fit(data.X, data.y)
    w = written_from_the_text(data.X, data.y, data.groups, 900, eta=1e-3, tau=0.01 if algorithm == 2 else 0.0)
    on = np.repeat(model.group_norms_ > 0, 3)
    np.testing.assert_allclose(model.coef_[on], w[on], rtol=1e-7, atol=1e-7)
    assert on[:9].all()
    assert model.intercept_ == 0.0


def test_the_preset_is_one_definition():
    assert Network.paper() == Network(algorithm="single-stage", update="printed", raw=True)
    assert Network.paper(2) == Network(algorithm="two-stage", update="printed", raw=True)
    assert Network.paper(init_scale=1e-4).init_scale == 1e-4
    assert Network.paper().problem_options() == RAW
    assert Network().problem_options() == {}
    with pytest.raises(ValueError, match="algorithm must be 1 or 2"):
        covey.Network.paper(3)
    with pytest.raises(ValueError, match="leave engine='auto'"):
        Network.paper(engine="screened")
    with pytest.raises(ValueError, match="update must be one of 'fast', 'printed'"):
        Network(update="slow")


@pytest.mark.parametrize(("k", "s"), [(1.1, 1.0), (1.0, 0.1), (0.3, 7.0)])
def test_the_printed_step_is_the_text_in_any_units(k, s):
    data = DATA["figure 11"]()
    X, y = k * data.X, s * data.y
    gamma, alpha = 1e-3 / (s * k), 1e-6 * np.sqrt(s / k)
    path = group_path(X, y, 3, step_size=gamma, init_scale=alpha, max_iter=1000, update="printed", **RAW)
    w = written_from_the_text(X, y, data.groups, 1000, gamma=gamma, alpha=alpha)
    on = awake(path)
    assert on[:9].all()
    np.testing.assert_allclose(path.at(1000)[on], w[on], rtol=1e-6, atol=1e-6 * np.abs(w).max())
    assert path.init_scale == alpha


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize(("k", "s"), [(10.0, 1.0), (1.0, 0.1), (0.3, 7.0)])
def test_steps_are_on_the_datas_own_scale(depth, k, s):
    """X in other units and y in others: the paper's formulas say what gamma and eta have to become."""
    groups = LAYOUTS["equal"]
    X, y = make(groups)
    first = groups.norms(X.T @ y / len(y)).max()
    gamma, eta = 0.02 / first ** ((2 * depth - 2) / depth), 0.2 / first**2
    options = {"algorithm": "two-stage", "switch_tol": 0.005, "depth": depth, "max_iter": 150, "init_scale": 1e-2}
    options |= {"engine": "exact", **RAW}
    one = group_path(X, y, groups, step_size=gamma, direction_step=eta, **options)
    unit = s ** ((2 * depth - 2) / depth) * k ** (2 / depth)
    two = group_path(k * X, s * y, groups, step_size=gamma / unit, direction_step=eta / s**2, **options)
    np.testing.assert_array_equal(one.times, two.times)
    np.testing.assert_allclose(two.at(150) * k / s, one.at(150), rtol=1e-8, atol=1e-10)
    assert two.state.direction_step * s**2 == pytest.approx(one.state.direction_step)


def test_a_path_that_goes_on_keeps_its_direction_step():
    data = DATA["figure 3"]()
    runner = PathRunner(data.X, data.y, data.groups, standardize=False, fit_intercept=False)
    options = {"algorithm": "two-stage", "switch_tol": 0.01, "engine": "exact", "group_weights": None, **SECOND}
    first = runner.run(max_iter=850, **options)
    assert first.state.direction_step == pytest.approx(1e-3)
    on, whole = runner.run(max_iter=1100, start=first, **options), runner.run(max_iter=1100, **options)
    np.testing.assert_allclose(on.at(1100), whole.at(1100), rtol=1e-6, atol=1e-8)
