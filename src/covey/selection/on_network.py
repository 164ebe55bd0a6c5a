"""A model of the paper's network: a time on its path, chosen by a rule or by held-out rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from covey.groups import Groups
from covey.losses import Squared
from covey.network import Network
from covey.selection.network_time import choose_by_folds, choose_by_holdout
from covey.selection.selecting import Problem, Selected, Selection
from covey.selection.splitting import Folds, HoldOut
from covey.stopping import Choice, PathTask, Stopping

__all__ = ["select_on_network"]


def select_on_network(
    problem: Problem,
    selection: Selection,
    network: Network,
    rule: str = "min",
    *,
    n_jobs: int | None = None,
    checkpoint: Any = None,
    verbose: int = 0,
) -> Selected:
    """Run the network's path or paths, and take the model at the chosen time.

    A number of folds means scikit-learn's KFold here. ``always=`` and common factors belong to the default search: the
    paper's method has neither.
    """
    if not isinstance(network, Network):
        raise ValueError(f"network must be a covey.Network, not {type(network).__name__}.")
    if not isinstance(problem.loss, Squared):
        raise ValueError(
            "network= runs the paper's network, which is for squared loss, and the loss is "
            f"{problem.loss.name}: leave network out. covey.dynamics has gradient descent for other losses."
        )
    if problem.offset is not None:
        raise ValueError("offset= is for the default search; with network= subtract the offset from y.")
    if problem.always:
        raise ValueError("always= is for the default search; in the network every group starts asleep.")
    options = {name: problem.options[name] for name in ("group_weights", "standardize", "fit_intercept")}
    settings = {**network.options(), **options, **network.problem_options()}
    task = PathTask(problem.design, problem.y, problem.groups, problem.weight, settings, verbose=verbose)
    choice, n_splits = _choose(task, selection, rule, n_jobs, checkpoint)
    return _published(problem.groups, choice, n_splits)


def _choose(task: PathTask, selection: Selection, rule: Any, n_jobs: int | None, checkpoint: Any) -> tuple[Choice, int]:
    if isinstance(selection, HoldOut):
        judges = selection.validation
        if judges is None:
            judges = selection.mask(task.design, task.y, task.weight)
        return choose_by_holdout(task, judges), 1
    if isinstance(selection, Folds):
        masks = task.design.folds(selection.cv, task.y, selection.labels)
        return choose_by_folds(task, masks, rule, n_jobs=n_jobs, checkpoint=checkpoint), len(masks)
    if isinstance(selection, Stopping):
        return selection.choose(task), 0
    raise ValueError(
        f"{type(selection).__name__} chooses among the candidates of the default search; for the network's path use "
        "folds, 'holdout', an information criterion, 'discrepancy' or a rule of covey.stopping."
    )


def _published(groups: Groups, choice: Choice, n_splits: int) -> Selected:
    path, at = choice.path.until(choice.position), choice.position
    coef, intercept = path.model(at)
    own = path.parts[[at]].toarray().ravel() if path.parts is not None else coef[groups.members]
    norms = groups.apart().norms(own)
    order = [l for l, _ in path.entered if norms[l] > 0]
    assert path.strengths is not None
    candidates = choice.scores.assign(chosen=choice.scores["time"].to_numpy() == path.times[at])
    return Selected(
        own[None, :], coef[None, :], np.array([intercept]), order, path.strengths[[at]].toarray().ravel(), path,
        candidates, None, n_splits, f"the network at iteration {int(choice.time)}", True,
    )  # fmt: skip
