"""What a path tells its stop rule of what lies ahead, and what the monitor makes of it."""

import numpy as np
import pytest

from covey import Groups, group_path
from covey.datasets import make_group_sparse
from covey.engine.screened import ScreenedPath
from covey.stopping.monitor import PATIENCE, Monitor
from covey.stopping.search import explore
from engine_problems import LAYOUTS, make
from search_problems import split, task_of


class Listener:
    """Keeps what it is told, and asks for an end after a while."""

    def __init__(self, last=10**9):
        self.last, self.heard = last, []

    def __call__(self, snapshot):
        return False

    def look_ahead(self, prospects):
        self.heard.append(prospects)
        return len(self.heard) >= self.last


def residual_of(X, y, snapshot):
    return y - snapshot.intercept - X[:, snapshot.columns] @ snapshot.coef


def own_fit(X, r, columns, weight):
    """Least squares on some columns with an intercept."""
    root = np.sqrt(weight)
    A = np.column_stack([X[:, columns], np.ones(len(r))])
    return np.linalg.lstsq(root[:, None] * A, root * r, rcond=None)[0]


@pytest.mark.parametrize("layout", ["equal", "unequal", "scattered"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_moves_are_least_squares_on_what_is_left(layout, weighted):
    groups = LAYOUTS[layout]
    X, y = make(groups)
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float) if weighted else np.ones(len(y))
    listener = Listener()
    for last in (100, 140, 170, 400):
        group_path(X, y, groups, sample_weight=weight, max_iter=last, engine="screened", stop=listener)
    assert len(listener.heard) >= 4
    members = [set(own) for own in groups.lists()]
    for prospects in listener.heard:
        r = residual_of(X, y, prospects.now)
        # the means belong to the model: nothing is left of them
        assert abs(np.average(r, weights=weight)) < 1e-8
        assert 0 < len(prospects.next) <= 16
        for move in prospects.next:
            assert set(move.columns.tolist()) in members
            *coef, intercept = own_fit(X, r, move.columns, weight)
            np.testing.assert_allclose(move.coef, coef, atol=1e-6)
            assert move.intercept == pytest.approx(intercept, abs=1e-6)
        for whole_way in prospects.settling[1:]:
            *coef, intercept = own_fit(X, r, whole_way.columns, weight)
            np.testing.assert_allclose(whole_way.coef, coef, atol=1e-5)
            assert whole_way.intercept == pytest.approx(intercept, abs=1e-5)
        for step in prospects.settling[:1]:
            # a gradient step goes downhill
            after = r - step.intercept - X[:, step.columns] @ step.coef
            assert np.average(after**2, weights=weight) <= np.average(r**2, weights=weight) * (1 + 1e-12)
    assert any(prospects.settling for prospects in listener.heard)


def test_the_group_that_wakes_next_is_among_those_in_line():
    groups = LAYOUTS["equal"]
    X, y = make(groups)
    listener = Listener()
    for last in (100, 140, 170, 400):
        group_path(X, y, groups, max_iter=last, engine="screened", stop=listener)
    path = group_path(X, y, groups, max_iter=20_000, engine="screened")
    group_of = {j: l for l, own in enumerate(groups.lists()) for j in own}
    for prospects in listener.heard:
        following = next(l for l, t in path.entered if t > prospects.now.time)
        assert following in {group_of[int(move.columns[0])] for move in prospects.next}


def test_the_model_stays_as_it_is_for_as_long_as_promised():
    groups = LAYOUTS["equal"]
    X, y = make(groups, noise=0.05)
    listener = Listener()
    path = group_path(X, y, groups, max_iter=5000, engine="screened", stop=listener)
    promised = [prospects for prospects in listener.heard if prospects.until > prospects.now.time]
    assert promised
    for prospects in promised:
        now = np.zeros(groups.n_columns)
        now[prospects.now.columns] = prospects.now.coef
        for t in path.times[(path.times >= prospects.now.time) & (path.times <= prospects.until)]:
            np.testing.assert_allclose(path.at(t), now, atol=2e-2)


def test_a_true_answer_ends_the_path():
    groups = LAYOUTS["equal"]
    X, y = make(groups)
    listener = Listener(last=2)
    path = group_path(X, y, groups, max_iter=100_000, engine="screened", stop=listener)
    assert path.status == "stopped"
    assert len(listener.heard) == 2


def run(task, patience):
    trial = split(task)
    (leg,) = explore(trial, patience).legs
    return leg


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n", "noise"), [(160, 0.5), (600, 0.2)])
def test_looking_ahead_finds_what_patience_does_and_less_noise(seed, n, noise):
    data = make_group_sparse(n, 300, 3, active=4, sigma=noise, random_state=seed)
    task = task_of(data.X, data.y, data.groups)
    quick, patient = run(task, PATIENCE), run(task, PATIENCE * (1 + 1e-9))
    assert {0, 1, 2, 3} <= set(quick.awake) <= set(patient.awake)
    assert len(quick.order) <= len(patient.order)
    if set(quick.awake) == set(patient.awake):
        assert quick.time == patient.time
        np.testing.assert_array_equal(quick.path.at(quick.time), patient.path.at(patient.time))
    else:
        # what patience found besides is noise
        errors = [np.sum((leg.path.at(leg.time) - data.w_star) ** 2) for leg in (quick, patient)]
        assert errors[0] < 1.05 * errors[1]


def test_looking_ahead_is_done_sooner():
    lengths = []
    for seed in range(30):
        data = make_group_sparse(160, 300, 3, active=4, sigma=0.5, random_state=seed)
        task = task_of(data.X, data.y, data.groups)
        lengths.append([len(run(task, patience).order) for patience in (PATIENCE, PATIENCE * (1 + 1e-9))])
    quick, patient = np.sum(lengths, axis=0)
    assert quick < 0.8 * patient


@pytest.mark.parametrize("seed", range(3))
def test_a_plateau_does_not_hide_a_weak_group_far_behind(seed):
    rng = np.random.default_rng(seed)
    groups = Groups.from_size(3, 90)
    X = rng.standard_normal((200, 90))
    w = np.zeros(90)
    w[:3], w[45:48] = 5.0, 0.05
    task = task_of(X, X @ w + 0.05 * rng.standard_normal(200), groups)
    leg = run(task, PATIENCE)
    woke = dict(leg.path.entered)
    # the error stands still for most of the way
    assert woke[15] > 20 * woke[0]
    assert set(leg.awake) == {0, 15}


def test_who_asks_for_more_patience_sees_for_himself():
    data = make_group_sparse(80, 60, 3, active=2, sigma=0.5, random_state=0)
    trial = split(task_of(data.X, data.y, data.groups))
    listener = Listener()
    group_path(data.X, data.y, data.groups, max_iter=300, engine="screened", stop=listener)
    for prospects in listener.heard:
        assert not Monitor(trial.scorer, 2 * PATIENCE, 20).look_ahead(prospects)
        by_score = Monitor(trial.scorer, PATIENCE, 20, score=lambda error, snapshot: error)
        assert not by_score.look_ahead(prospects)


def test_correlations_are_those_of_the_present_model(monkeypatch):
    """A march in vain, after a sleeper that did not wake, must not leave those of an earlier node behind."""
    # of many problems one in which that happens just before a look
    rng = np.random.default_rng(8)
    X = np.sqrt(0.5) * rng.standard_normal((60, 40)) + np.sqrt(0.5) * rng.standard_normal((60, 1))
    beta = np.zeros((8, 5))
    for j in rng.choice(8, 5, replace=False):
        beta[j] = rng.standard_normal(5)
    y = X @ beta.ravel() + rng.standard_normal(60)
    gaps = []

    def look(self):
        awake = self.path.view
        gaps.append(np.abs(self.path.g[awake.columns] - (awake.c - awake.K @ awake.w)).max(initial=0.0))

    monkeypatch.setattr(ScreenedPath, "_look_ahead", look)
    monkeypatch.setattr(ScreenedPath, "_one_by_one", True)
    group_path(X, y, Groups.from_size(4, 40), max_iter=1500, engine="screened")
    # a group that has just joined is not in them yet
    assert len(gaps) > 1
    assert max(gaps) < 1e-4
