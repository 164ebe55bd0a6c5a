"""Problems in working coordinates for tests of the search."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from covey.designs import as_design
from covey.groups import Groups
from covey.losses import Binomial, MultiSquared, Poisson, Squared
from covey.search import far, table
from covey.search.dense import score_dense
from covey.search.posed import pose
from covey.search.problem import Parts, Problem, Split
from covey.search.search import Found
from covey.search.settings import SETTINGS
from search.limit_reference import mixed_problem

__all__ = ["LOSSES", "draw", "few_near", "in_folds", "on_all_rows", "posed_with", "problem_with", "searched"]

OPTIONS = {"group_weights": "noise", "standardize": "group", "fit_intercept": True, "factors": 0}


STRUCTURE = ("parents", "families", "n_mains")


LOSSES = {"squared": Squared(), "several": MultiSquared(), "binomial": Binomial(), "poisson": Poisson()}


def draw(name, seed=0, n=90):
    """Groups of sizes 1 to 5, one without full rank, with a response for a loss."""
    X, signal, lists = mixed_problem(n, seed)
    rng = np.random.default_rng(seed + 1)
    signal = (signal - signal.mean()) / signal.std()
    if name == "several":
        return X, np.column_stack([signal, 0.5 * signal]) + rng.standard_normal((n, 2)), lists
    if name == "binomial":
        return X, (rng.random(n) < expit(signal)).astype(float), lists
    if name == "poisson":
        return X, rng.poisson(np.exp(0.5 * signal)).astype(float), lists
    return X, signal + rng.standard_normal(n), lists


def problem_with(X, y, groups, *, weight=None, loss=None, offset=None, always=(), **options):
    """A problem in the user's terms, with the defaults of an estimator but without common factors."""
    structure = {name: options.pop(name) for name in STRUCTURE if name in options}
    weight = np.ones(len(X)) if weight is None else weight
    given = Groups.from_lists(groups) if isinstance(groups, list) else groups
    return Problem(
        as_design(X),
        y,
        weight,
        given,
        list(always),
        {**OPTIONS, **options},
        Squared() if loss is None else loss,
        offset,
        **structure,
    )


def posed_with(parts, X, y, groups, *, settings=SETTINGS, **options):
    """A problem in working coordinates, for given parts of the rows."""
    return pose(problem_with(X, y, groups, **options), parts, settings)


def in_folds(X, y, groups, n_folds=3, *, weight=None, **options):
    """A problem whose rows are dealt to folds in turn; the last split has all rows."""
    weight = np.ones(len(X)) if weight is None else weight
    labels = np.where(weight > 0, np.arange(len(X)) % n_folds, -1)
    counts = [float((labels == k).sum()) for k in range(n_folds)]
    splits = [Split(tuple(j for j in range(n_folds) if j != k), (k,)) for k in range(n_folds)]
    parts = Parts(labels, counts, [*splits, Split(tuple(range(n_folds)))])
    return posed_with(parts, X, y, groups, weight=weight, **options)


def on_all_rows(X, y, groups, *, weight=None, **options):
    """A problem with one split, which has all rows."""
    weight = np.ones(len(X)) if weight is None else weight
    return posed_with(Parts.everything(weight, float((weight > 0).sum())), X, y, groups, weight=weight, **options)


def searched(posed, always=(), recipes=()):
    """All candidates of a problem and their scores, as `select` finds them."""
    found = Found(table.Table(posed), always, recipes)
    while found.starts:
        found.run_paths()
        found.add_round()
    score_dense(found)
    found.score_further()
    return found


def verdict_of(found):
    """The verdict of all splits on all candidates."""
    return found.judge.board(found.recipes).verdict()


def few_near(monkeypatch, columns, per_check=12, growth=None):
    """Begin with few near columns and check the others often, as in a wide problem."""
    monkeypatch.setattr(table, "NEAR_COLUMNS", columns)
    monkeypatch.setattr(table, "ALL_NEAR", 2 * columns)
    monkeypatch.setattr(far, "EVENTS_PER_CHECK", per_check)
    if growth is not None:
        monkeypatch.setattr(far, "GROWTH", growth)
        monkeypatch.setattr(far, "LEAST_GROWTH", 1)
