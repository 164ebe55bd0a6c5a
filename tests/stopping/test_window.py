"""TheoryWindow: its ends recomputed in numpy, the paper's own data, units, and what it says where none exists."""

import warnings

import numpy as np
import pytest

from covey import Groups, GroupSparseRegressor, Network
from covey.datasets import legacy_paper_data, make_group_sparse
from covey.stopping import PathTask, TheoryWindow

RAW = {"standardize": False, "group_weights": None, "fit_intercept": False}
FIGURES = {
    "figures 2 and 6": (lambda: legacy_paper_data(), 0.02),
    "figure 3": (lambda: legacy_paper_data(support=range(5, 14)), 0.02),
    "figure 4": (lambda: legacy_paper_data(100, 500, 4, support=(1.0,) * 16, seed=42), 0.06),
}


def choose(X, y, groups, rule, **options):
    return rule.choose(PathTask(X, y, groups, np.ones(len(y)), {"max_iter": 100_000} | options))


def written_from_the_formulas(X, y, groups, sigma, alpha=1e-6, kind="theorem"):
    """The window's ends for orthonormal columns, in numpy, with the refitted groups of the truth as the pilot."""
    n, p, L = len(y), X.shape[1], groups.n_groups
    scale = np.sqrt(np.mean(y**2))
    y, sigma = y / scale, sigma / scale
    first = groups.norms(X.T @ y / n)
    gamma = 1 / (20 * first.max())
    noise = sigma / np.sqrt(n) * (np.sqrt(groups.sizes) + np.sqrt(2 * np.log(8 * L * p**3)))
    levels = first[first > noise]  # least squares on an orthonormal design
    u_max, u_min = np.sqrt(levels.max()), np.sqrt(levels.min())
    zeta = 80 * noise.max()
    assert noise.max() > 2 * np.sqrt(2) * sigma * np.sqrt(np.log(2 * p) / n), "the corollary's epsilon is smaller"
    T_ub = np.log(1 / np.sqrt(alpha)) / np.log(1 + 2 * gamma * (u_min**2 / 20 + noise.max()))
    if kind == "theorem":
        assert zeta <= u_min**2
        T_lb = np.log(u_max**2 / (2 * alpha**2)) / (2 * np.log(1 + gamma * u_min**2 / 2))
        return T_lb + np.floor(np.log2(u_max**2 / zeta)) * 5 / (2 * gamma * u_min**2), T_ub
    assert zeta > u_min**2
    d = np.minimum(noise[0], levels / 2)
    logs = np.log((levels / alpha**2 - 1) * (levels - d) / d)
    return np.max((1 + 2 * gamma * levels) / (4 * gamma * levels) * logs), T_ub


def orthogonal(sigma, values=3.0, **options):
    return make_group_sparse(400, 12, 3, design="orthogonal", active=2, values=values, sigma=sigma, **options)


@pytest.mark.parametrize(("sigma", "kind"), [(0.05, "theorem"), (1.0, "orthogonal")])
def test_the_window_is_its_formulas(sigma, kind):
    data = orthogonal(sigma, random_state=0)
    T_lb, T_ub = written_from_the_formulas(data.X, data.y, data.groups, sigma, kind=kind)
    assert T_lb < T_ub
    for where, time in (
        ("lower", np.ceil(T_lb)),
        ("middle", np.round(np.sqrt(T_lb * T_ub))),
        ("upper", np.floor(T_ub)),
    ):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            choice = choose(data.X, data.y, data.groups, TheoryWindow(sigma, where), fit_intercept=False)
        assert choice.scores["T_lb"].iloc[0] == pytest.approx(T_lb, rel=1e-9)
        assert choice.scores["T_ub"].iloc[0] == pytest.approx(T_ub, rel=1e-9)
        assert choice.scores["window"].iloc[0] == kind
        assert bool(told) == (kind == "orthogonal")
        assert choice.time == time
        assert set(np.flatnonzero(choice.path.group_norms[choice.position])) == {0, 1}
        # least squares up to the precision, which is what noise may reach in a group
        gap = data.groups.norms(choice.path.at(choice.time) - data.oracle())
        assert gap.max() <= sigma / 20 * (np.sqrt(3) + np.sqrt(2 * np.log(8 * 4 * 12**3)))


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("network", [Network(), Network.paper(), Network.paper(2)], ids=["covey", "paper", "paper 2"])
def test_it_works_on_the_papers_own_data(figure, network):
    make, most = FIGURES[figure]
    data = make()
    model = GroupSparseRegressor(data.groups, network=network, selection=TheoryWindow(0.5))
    with pytest.warns(UserWarning, match="does not apply here"):
        model.fit(data.X, data.y)
    assert set(np.flatnonzero(data.groups.norms(data.w_star))) <= set(model.selected_groups_)
    assert np.sum((model.coef_ - data.w_star) ** 2) < most


@pytest.mark.filterwarnings("ignore:Theorem convergence-alg-1")
@pytest.mark.parametrize("standardize", ["group", "column", "block", False])
@pytest.mark.parametrize(("k", "s"), [(0.1, 1.0), (3.0, 1.0), (10.0, 1.0), (1.0, 1e-3), (1e5, 1e5)])
def test_units_do_not_matter(standardize, k, s):
    data = FIGURES["figures 2 and 6"][0]()
    one = choose(data.X, data.y, data.groups, TheoryWindow(0.5), standardize=standardize)
    two = choose(k * data.X, s * data.y, data.groups, TheoryWindow(0.5 * s), standardize=standardize)
    assert one.time == two.time
    np.testing.assert_allclose(two.path.at(two.time) * k / s, one.path.at(one.time), rtol=1e-6, atol=1e-9)
    for name in ("T_lb", "T_ub"):
        assert two.scores[name].iloc[0] == pytest.approx(one.scores[name].iloc[0], rel=1e-9)


@pytest.mark.filterwarnings("ignore:Theorem convergence-alg-1")
def test_units_of_each_group_do_not_matter_where_groups_are_orthonormalised():
    data = FIGURES["figures 2 and 6"][0]()
    units = np.repeat(np.exp(np.random.default_rng(0).normal(scale=3, size=100)), 3)
    one, two = (choose(X, data.y, data.groups, TheoryWindow(0.5)) for X in (data.X, data.X * units))
    assert one.time == two.time
    np.testing.assert_allclose(two.path.at(two.time) * units, one.path.at(one.time), rtol=1e-5, atol=1e-8)


@pytest.mark.filterwarnings("ignore:Theorem convergence-alg-1")
def test_weights_of_groups_count():
    """A group of weight c grows c times as slowly: the slowest one found opens the window, the fastest closes it."""
    data = orthogonal(1.0, random_state=0)
    even, uneven = (
        choose(
            data.X, data.y, data.groups, TheoryWindow(1.0), fit_intercept=False, group_weights=weights, step_size=0.01
        )
        for weights in ([1.0, 1.0, 1.0, 1.0], [1.0, 1.3, 0.7, 1.0])
    )
    # the closing group is one without signal, of weight 0.7; log(1 + x) is nearly x at this step
    assert uneven.scores["T_ub"].iloc[0] == pytest.approx(0.7 * even.scores["T_ub"].iloc[0], rel=0.02)
    assert uneven.scores["T_lb"].iloc[0] > even.scores["T_lb"].iloc[0]


def test_where_noise_wakes_too_early_it_says_which_start_opens_a_window():
    """A group without signal that grows more than twice as fast as the others."""
    data, rule = orthogonal(2.0, random_state=0), TheoryWindow(2.0, "lower")
    options = {"group_weights": [1.0, 1.0, 1.0, 0.4], "fit_intercept": False}
    with pytest.raises(ValueError, match=r"There is no window: .* Set init_scale=(\S+) or smaller") as told:
        choose(data.X, data.y, data.groups, rule, init_scale=0.3, **options)
    scale = float(str(told.value).split("init_scale=")[1].split()[0])
    with pytest.warns(UserWarning, match="does not apply"):
        choice = choose(data.X, data.y, data.groups, rule, init_scale=scale, **options)
    assert choice.scores["T_lb"].iloc[0] <= choice.scores["T_ub"].iloc[0] < 1.05 * choice.scores["T_lb"].iloc[0]


def test_where_no_start_opens_a_window_it_says_so():
    """Two groups twenty times apart, the weak one less than twice what noise reaches in a group."""
    data = orthogonal(1.0, values=[10.0] * 3 + [0.33] * 3, random_state=0)
    with pytest.raises(ValueError, match="No start is small enough to separate them: use more rows"):
        choose(data.X, data.y, data.groups, TheoryWindow(1.0), fit_intercept=False)


def test_nothing_above_the_noise_is_the_empty_model():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, 30)), rng.standard_normal(100)
    choice = choose(X, y, Groups.from_size(3, 30), TheoryWindow(0.9))
    assert not choice.path.at(choice.time).any()


def test_it_needs_its_numbers():
    data = orthogonal(0.05, random_state=0)
    for rule, options, message in (
        (TheoryWindow(0.0), {}, "sigma must be above 0"),
        (TheoryWindow(0.5, "end"), {}, "'lower', 'middle' or 'upper'"),
        (TheoryWindow(0.5), {"depth": 3}, "for depth=2, not 3"),
        (TheoryWindow(0.05), {"max_iter": 400}, "lies beyond max_iter=400"),
    ):
        with pytest.raises(ValueError, match=message):
            choose(data.X, data.y, data.groups, rule, **options)
