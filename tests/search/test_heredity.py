"""Parents: a group is in a model only together with them, wherever the search makes models."""

from __future__ import annotations

import numpy as np
import pytest

from covey import Groups
from covey.designs import as_design
from covey.losses import Binomial, Cox, Poisson, Squared
from covey.preprocess.working import noise_weights
from covey.search.cleaned import Cleaned
from covey.search.paths import Paths
from covey.search.select import read_selection, select
from covey.search.settings import SETTINGS
from covey.search.table import Table, working_columns
from covey.selection import Folds
from search.posing import few_near, in_folds, on_all_rows, posed_with, problem_with, searched, verdict_of

N_MAINS, N_GROUPS = 8, 30


def random_parents(rng):
    """One or two earlier groups for each group that is not a main one: parents may have parents."""
    return {
        l: tuple(sorted(rng.choice(l, size=rng.integers(1, 3), replace=False).tolist()))
        for l in range(N_MAINS, N_GROUPS)
    }


def families_of(parents):
    return np.array([int(l in parents) for l in range(N_GROUPS)])


def case(seed, n=90):
    """Correlated groups of 1 to 3 columns; a grandchild matters most."""
    rng = np.random.default_rng(seed)
    groups = Groups.from_sizes(rng.integers(1, 4, N_GROUPS))
    X = rng.standard_normal((n, groups.n_columns)) + 0.5 * rng.standard_normal((n, 1))
    eta = sum(X[:, groups.lists()[l]].sum(axis=1) for l in (0, N_GROUPS - 1, N_GROUPS - 5))
    return X, 1.5 * (eta - eta.mean()) / eta.std(), groups, random_parents(rng), rng


RESPONSES = {
    "squared": (Squared(), lambda eta, rng: eta + 0.5 * rng.standard_normal(eta.size)),
    "binomial": (Binomial(), lambda eta, rng: (rng.logistic(size=eta.size) < eta).astype(float)),
    "poisson": (Poisson(), lambda eta, rng: rng.poisson(np.exp(eta)).astype(float)),
    "cox": (
        Cox(),
        lambda eta, rng: Cox().check(np.column_stack([rng.exponential(np.exp(-eta)), rng.random(eta.size) < 0.7])),
    ),
}


def ancestors(parents, group):
    return {p for parent in parents.get(group, ()) for p in (*ancestors(parents, parent), parent)}


def assert_closed(groups, parents):
    assert all(set(parents.get(l, ())) <= set(groups) for l in groups), groups


def assert_all_closed(found, parents, always=()):
    """Check the groups of every candidate on every split, of all deals."""
    n_models = 0
    trainings = {id(one): one for one in (*found.trainings, *found.scored)}
    for training in trainings.values():
        for round_ in training.rounds:
            for recipe in round_.recipes:
                groups = recipe.groups(training)
                assert_closed(groups, parents)
                assert set(always) <= set(groups)
                # coefficients of other groups are zero, but for rounding
                left = np.isin(np.repeat(round_.groups, np.diff(round_._starts)), groups)
                assert np.abs(round_.W[round_.place[recipe]][:, ~left]).max(initial=0.0) < 1e-12
                n_models += 1
    assert n_models > 100
    for recipe in verdict_of(found).recipes:
        model = recipe.fit(found.final)
        if isinstance(recipe, Cleaned):
            assert_closed(model.groups, parents)


@pytest.mark.parametrize("name", RESPONSES)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_model_of_every_candidate_has_the_parents_of_its_groups(name, seed):
    X, eta, groups, parents, rng = case(seed)
    loss, respond = RESPONSES[name]
    y, weight = respond(eta, rng), np.ones(len(X))
    folds = Folds(3)
    parts = folds.parts(as_design(X), y, weight, loss)
    posed = posed_with(parts, X, y, groups, loss=loss, parents=parents, n_mains=N_MAINS, families=families_of(parents))
    found = searched(posed)
    found.deal_again(folds.parts(as_design(X), y, weight, loss, deal=1), set(found.recipes))
    assert_all_closed(found, parents)
    for training in found.scored:
        first = training.rounds[0]
        assert max(first.groups) < N_MAINS  # the first round is of main groups alone
        assert {l for recipe in first.recipes for l in recipe.groups(training)} <= set(range(N_MAINS))
        assert max(training.rounds[1].groups) >= N_MAINS


@pytest.mark.parametrize("far", [False, True], ids=["all near", "most far"])
def test_groups_that_are_always_in_may_have_parents(far, monkeypatch):
    if far:
        few_near(monkeypatch, 8, 3, growth=4)
    X, eta, groups, parents, rng = case(2)
    y = eta + rng.standard_normal(eta.size)
    last = N_GROUPS - 2
    always = sorted({*ancestors(parents, last), last})
    posed = in_folds(X, y, groups, parents=parents, n_mains=N_MAINS, families=families_of(parents))
    found = searched(posed, always)
    assert_all_closed(found, parents, always)


def reference_events(posed, y, n_events):
    """The path on all rows, computed in the plainest way: groups, times."""
    Z = [working_columns(posed, np.array([l])) for l in range(N_GROUPS)]
    awake, times, sums, now = [], [], np.zeros(N_GROUPS), 0.0
    while len(awake) < n_events:
        A = np.column_stack([np.ones(len(y)), *(Z[l] for l in awake)])
        residual = y - A @ np.linalg.lstsq(A, y, rcond=None)[0]
        rate = np.array([np.linalg.norm(block.T @ residual) / len(y) for block in Z]) / posed.weights
        rate[awake] = 0.0
        wait = np.divide(1 - sums, rate, out=np.full(N_GROUPS, np.inf), where=rate > 0)
        first = int(wait.argmin())
        now, sums = now + wait[first], sums + wait[first] * rate
        brought = [l for l in posed.ancestors(first) if l not in awake]
        woken = [*sorted(brought, key=lambda l: (len(posed.ancestors(l)), wait[l])), first]
        awake, times = awake + woken, times + [now] * len(woken)
    return awake, times


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("far", [False, True], ids=["all near", "most far"])
def test_parents_wake_just_before_their_child(seed, far, monkeypatch):
    if far:
        few_near(monkeypatch, 5, 4, growth=3)
    X, eta, groups, parents, rng = case(seed)
    y = eta + 0.5 * rng.standard_normal(eta.size)
    posed = on_all_rows(X, y, groups, parents=parents)
    paths = Paths(Table(posed), [[]])
    assert paths.far.are_none != far
    paths.advance(12)
    awake, times = reference_events(posed, (y - y.mean()) / y.std(), 12)
    assert paths.groups(0) == awake
    np.testing.assert_allclose(paths.paths[0].times, times, rtol=1e-8)
    for at in range(len(awake)):
        assert_closed(awake[: at + 1], parents)
    assert len(set(times)) < len(times), "No parent woke with its child: the test shows nothing."


@pytest.mark.parametrize("name", RESPONSES)
def test_a_path_goes_on_from_the_middle_of_an_event(name):
    X, eta, groups, parents, rng = case(3)
    loss, respond = RESPONSES[name]
    paths = Paths(Table(on_all_rows(X, respond(eta, rng), groups, loss=loss, parents=parents)), [[]])
    paths.advance(10)
    path = paths.paths[0]
    awake, times, sums = paths.groups(0), list(path.times), path.sums
    middles = [m for m in range(1, len(times)) if times[m] == times[m - 1]]
    assert middles
    for back in (*middles, 0):
        path.truncate(back)
        assert paths.groups(0) == awake[:back]
        np.testing.assert_allclose(path.times, times[:back], rtol=1e-6)
        paths.advance(len(awake))
        assert paths.groups(0) == awake
        np.testing.assert_allclose(path.times, times, rtol=1e-6)
        np.testing.assert_allclose(path.sums, sums, rtol=1e-6)


def test_only_main_groups_wake_on_a_path_of_main_groups():
    X, eta, groups, parents, rng = case(4)
    y = eta + 0.5 * rng.standard_normal(eta.size)
    paths = Paths(Table(in_folds(X, y, groups, parents=parents, n_mains=N_MAINS)), [[]] * 4, mains=True)
    paths.advance(N_GROUPS)
    for s in range(4):
        assert sorted(paths.groups(s)) == list(range(N_MAINS))


def test_pairs_of_groups_that_are_in_compete_like_main_groups():
    X, eta, groups, parents, _ = case(5)
    posed = on_all_rows(X, eta, groups, parents=parents, families=families_of(parents), n_mains=N_MAINS)
    start = list(range(N_MAINS))
    paths = Paths(Table(posed), [start])
    weights = dict(zip(paths.table.groups.tolist(), paths.paths[0].weights, strict=True))
    inner = {l for l, some in parents.items() if len(some) == 2 and set(some) <= set(start)}
    assert 2 <= len(inner) < len(parents)
    like_mains = noise_weights(posed.ranks, SETTINGS.first_groups, N_MAINS)
    scale = posed.weights[0] / like_mains[0]
    for l in range(N_GROUPS):
        assert weights[l] == pytest.approx(scale * like_mains[l] if l in inner else posed.weights[l])
    assert all(weights[l] < posed.weights[l] for l in inner)


@pytest.mark.parametrize("selection", [3, "holdout", "ebic", "bic"])
@pytest.mark.parametrize("far", [False, True], ids=["all near", "most far"])
def test_the_selected_model_has_the_parents_of_its_groups(selection, far, monkeypatch):
    """Also if a table of all groups is too wide, and far groups come near on the way."""
    if far:
        few_near(monkeypatch, 8, 3, growth=4)
    X, eta, groups, parents, rng = case(5)
    y = eta + 0.5 * rng.standard_normal(eta.size)
    problem = problem_with(X, y, groups, parents=parents, n_mains=N_MAINS, families=families_of(parents))
    chosen = select(problem, read_selection(selection))
    assert {N_GROUPS - 1, N_GROUPS - 5} <= set(chosen.groups)
    assert_closed(chosen.groups, parents)
    assert_closed([l for l, _ in chosen.path.entered], parents)


def test_without_parents_nothing_changes():
    X, eta, groups, _, rng = case(6)
    y = eta + 0.5 * rng.standard_normal(eta.size)
    plain, structured = (
        select(problem_with(X, y, groups, **structure), read_selection(3))
        for structure in ({}, {"parents": {}, "n_mains": N_GROUPS, "families": np.zeros(N_GROUPS, dtype=int)})
    )
    np.testing.assert_array_equal(plain.coef, structured.coef)
    assert plain.recipe == structured.recipe
