"""Problems, what a method gives for one, and covey as such a method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class Fit:
    """Predictions on the test rows, and the groups in the model."""

    predicted: np.ndarray
    groups: np.ndarray


@dataclass
class Problem:
    """Training rows, columns group after group, and how models are judged: by validation rows or by folds."""

    X: np.ndarray
    y: np.ndarray
    labels: np.ndarray  # 0, 1, ... in order
    X_test: np.ndarray
    error: Callable[[np.ndarray], float]  # of predictions on the test rows
    validation: tuple[np.ndarray, np.ndarray] | None = None
    fold_of: np.ndarray | None = None  # the fold of each training row

    def linear(self, coef: np.ndarray, intercept: float) -> Fit:
        """What a linear model predicts, and its groups."""
        return Fit(self.X_test @ coef + intercept, np.unique(self.labels[coef != 0]))

    def score(self, fit: Fit) -> dict[str, Any]:
        """What is kept of a fit."""
        return {"error": self.error(fit.predicted), "groups": len(fit.groups)}


Method = Callable[[Problem], Fit]


def covey(problem: Problem, **settings: Any) -> Fit:
    """The estimator, judged by the same validation rows or folds as the rivals."""
    from sklearn.model_selection import PredefinedSplit

    from covey import Groups, GroupSparseRegressor

    if problem.validation is not None:
        from covey.selection import HoldOut

        selection: Any = HoldOut(validation=problem.validation)
    else:
        selection = PredefinedSplit(problem.fold_of)
    settings = {"selection": selection} | settings
    model = GroupSparseRegressor(groups=Groups.from_labels(problem.labels), **settings).fit(problem.X, problem.y)
    return problem.linear(model.coef_, model.intercept_)


def network(problem: Problem) -> Fit:
    """The paper's network from a small start, its path stopped by the judge, nothing else."""
    from sklearn.model_selection import PredefinedSplit

    from covey import Groups
    from covey.paper import NetworkRegressor
    from covey.selection import HoldOut

    validation = problem.validation
    stopping: Any = PredefinedSplit(problem.fold_of) if validation is None else HoldOut(validation=validation)
    model = NetworkRegressor(Groups.from_labels(problem.labels), stopping=stopping).fit(problem.X, problem.y)
    return problem.linear(model.coef_, model.intercept_)


OURS: dict[str, Method] = {
    "covey": covey,
    "covey predict": lambda problem: covey(problem, rule="predict"),
}
