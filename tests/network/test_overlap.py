"""Overlapping groups are groups of copied columns whose coefficients add up; the copies are never made."""

import pickle

import numpy as np
import pytest

from covey import Groups, group_path
from covey.designs import DenseDesign
from covey.dynamics import normalized_descent
from covey.network import stored_rows
from covey.selection.network_time import choose_by_folds
from covey.stopping import AtTime, Discrepancy, PathTask
from covey.stopping.information import degrees_of_freedom

P = 60
# consecutive groups of five share two columns
LISTS = [list(range(a, min(a + 5, P))) for a in range(0, P - 2, 3)]
GROUPS = Groups.from_lists(LISTS, overlap=True)
MEMBERS = np.concatenate(LISTS)
APART = Groups.from_sizes(GROUPS.sizes)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, P)) + 0.5
    latent = np.zeros(MEMBERS.size)
    for l in (3, 4, 11):  # the first two share columns
        latent[GROUPS.starts[l] : GROUPS.starts[l + 1]] = rng.choice([-1.0, 1.0], len(LISTS[l]))
    return X, X[:, MEMBERS] @ latent + 0.3 * rng.standard_normal(100)


class NoCopies(DenseDesign):
    """A design that fails where many of its columns are copied."""

    def take(self, columns):
        assert columns.size < MEMBERS.size
        return super().take(columns)


@pytest.mark.parametrize(
    "settings", [{}, {"engine": "exact"}, {"standardize": "column"}, {"standardize": False}, {"algorithm": "two-stage"}]
)
def test_the_path_is_that_of_a_copy(data, settings, monkeypatch):
    # a design as small as this one is held as a copy
    monkeypatch.setattr(stored_rows, "WHOLE", 0)
    X, y = data
    settings = {"max_iter": 500, "times": np.arange(0, 501, 25), **settings}
    copied = group_path(np.take(X, MEMBERS, axis=1), y, APART, **settings)
    path = group_path(NoCopies(X), y, GROUPS, **settings)
    assert path.entered == copied.entered
    assert len(path.entered) >= 3
    np.testing.assert_allclose(path.parts.toarray(), copied.coefs.toarray(), atol=1e-10)
    total = np.zeros((MEMBERS.size, P))
    total[np.arange(MEMBERS.size), MEMBERS] = 1.0
    np.testing.assert_allclose(path.coefs.toarray(), copied.coefs.toarray() @ total, atol=1e-10)
    np.testing.assert_allclose(path.intercepts, copied.intercepts, atol=1e-10)
    np.testing.assert_allclose(path.group_norms, copied.group_norms, atol=1e-10)


def test_a_path_goes_on(data):
    X, y = data
    whole = group_path(X, y, GROUPS, max_iter=400, times=[400])
    first = group_path(X, y, GROUPS, max_iter=200)
    rest = group_path(X, y, GROUPS, max_iter=400, times=[400], start=first)
    np.testing.assert_allclose(rest.at(400), whole.at(400), atol=1e-3)


@pytest.mark.parametrize("rule", ["discrepancy", "time", "folds"])
def test_choices_are_those_of_a_copy(data, rule):
    X, y = data
    choices = []
    for Z, groups in ((X, GROUPS), (np.take(X, MEMBERS, axis=1), APART)):
        task = PathTask(Z, y, groups, np.ones(len(y)))
        if rule == "folds":
            choices.append(choose_by_folds(task, task.design.folds(3, y, None)))
        else:
            choices.append((Discrepancy(0.3) if rule == "discrepancy" else AtTime(300)).choose(task))
    choice, copied = choices
    assert choice.time == copied.time
    assert choice.path.entered == copied.path.entered
    np.testing.assert_allclose(choice.model[0], GROUPS.from_contiguous(copied.model[0]), atol=1e-9)
    assert choice.model[1] == pytest.approx(copied.model[1], abs=1e-9)


def test_a_shared_column_spends_one_degree_of_freedom(data):
    X, y = data
    path = group_path(X, y, GROUPS, max_iter=400)
    expected = [1 + len({j for l, woke in path.entered if woke <= t for j in LISTS[l]}) for t in path.times]
    np.testing.assert_array_equal(degrees_of_freedom(path, True), expected)
    assert expected[-1] < 1 + GROUPS.sizes[[l for l, _ in path.entered]].sum()


def test_shared_columns_are_asked_for():
    with pytest.raises(ValueError, match=r"Groups must not overlap: column 1 .* overlap=True"):
        Groups.from_lists([[0, 1], [1, 2]])
    with pytest.raises(ValueError, match=r"Group 1 lists column 2 more than once"):
        Groups.from_lists([[0, 1], [1, 2, 2]], overlap=True)
    with pytest.raises(ValueError, match=r"column 3 has none"):
        Groups.from_lists([[0, 1], [1, 2]], n_columns=4, overlap=True)


def test_overlapping_groups_are_values():
    groups = Groups.from_lists([[0, 1, 2], [2, 3]], overlap=True)
    assert groups.overlapping
    assert groups.n_columns == 4
    assert repr(groups).endswith("overlapping)")
    assert pickle.loads(pickle.dumps(groups)) == groups != Groups.from_lists([[0, 1, 2], [3]])
    assert groups.with_columns(["a", "b", "c", "d"]).column_name(2) == "c"
    np.testing.assert_array_equal(groups.from_contiguous([1.0, 2, 3, 10, 20]), [1, 2, 13, 20])
    assert not Groups.from_lists([[0, 1], [2]], overlap=True).overlapping


def test_elsewhere_they_are_refused(data):
    X, y = data
    with pytest.raises(ValueError, match="These groups overlap"):
        normalized_descent(X, y, GROUPS, n_steps=2)
