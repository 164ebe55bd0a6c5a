"""What the two estimators share: validate, pose the path, take the chosen model over."""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any, TextIO

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from covey.designs import is_table
from covey.estimators.reading import read_problem, read_rows
from covey.groups import Groups
from covey.path import Path
from covey.stopping import Choice, PathTask
from covey.validation import FloatArray, boolean, positive, whole

__all__ = ["PathRegressor", "how_stopped"]

# Parameters that go to the path as they are.
PATH_OPTIONS = (
    "algorithm",
    "step_size",
    "direction_step",
    "switch_tol",
    "depth",
    "group_weights",
    "max_iter",
    "fit_intercept",
    "standardize",
    "engine",
)

# What ``init_scale="auto"`` stands for: the paper's scale; and, where much is left over, these.
INIT_SCALE, DENSE_SCALES = 1e-6, (1e-2, 1e-1)

# A drop of the error over the last half of the path that is worth a warning, as a share of the null model's error.
STILL_FALLING = 1e-4


class PathRegressor(RegressorMixin, BaseEstimator):
    """A linear model taken from a path at a chosen time."""

    groups: Any
    init_scale: Any
    factors: Any
    restarts: int
    average: bool
    warm_start: bool
    verbose: int

    coef_: FloatArray
    intercept_: float
    n_iter_: int
    n_factors_: int
    average_: pd.DataFrame | None
    init_scale_: float
    groups_: Groups
    group_norms_: FloatArray
    group_strengths_: FloatArray
    selected_groups_: list[Any]
    path_: Path
    n_features_in_: int

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _pose(self, X: Any, y: Any, sample_weight: Any) -> PathTask:
        """Validate and gather what the stopping rule needs."""
        design, y, weight = read_problem(self, X, y, sample_weight)
        groups = Groups.coerce(self.groups, design.shape[1], getattr(self, "feature_names_in_", None))
        options = {name: getattr(self, name) for name in PATH_OPTIONS}
        options["init_scale"], dense = _read_init_scale(self.init_scale)
        whole(self.max_iter, "max_iter")
        if self.warm_start and hasattr(self, "path_") and self.groups_ == groups:
            options["start"] = self.path_
        return PathTask(
            design, y, groups, weight, options, verbose=int(self.verbose),
            restarts=whole(self.restarts, "restarts", least=0), factors=self.factors, dense_scales=dense,
            average=boolean(self.average, "average"),
        )  # fmt: skip

    def _adopt(self, task: PathTask, choice: Choice) -> None:
        """Take the chosen model over as the fitted one."""
        path, at = choice.path, choice.position
        self.path_ = path
        self.groups_ = task.groups
        coef, self.intercept_ = choice.model
        self.average_ = None if choice.average is None else choice.average.parts
        self.coef_ = coef.astype(task.X.dtype)
        self.n_factors_ = 0 if path.factors is None else path.factors.n_factors
        self.init_scale_ = path.init_scale
        self.n_iter_ = max(1, int(choice.time))
        own = (path.coefs if path.parts is None else path.parts)[[at]].toarray().ravel().astype(task.X.dtype)
        self.group_norms_ = (task.groups if path.parts is None else task.groups.apart()).norms(own)
        assert path.strengths is not None
        self.group_strengths_ = path.strengths[[at]].toarray().ravel()
        awake = set(np.flatnonzero(self.group_norms_).tolist())
        order = [l for l, _ in path.entered if l in awake]
        self.selected_groups_ = [task.groups.names[l] for l in order]
        if path.status == "diverged":
            warnings.warn(path.message, ConvergenceWarning, stacklevel=3)

    def _warn_if_cut_short(self, times: FloatArray, errors: FloatArray) -> None:
        """Say so where the limit on iterations, and not the data, chose the time."""
        best = int(np.argmin(errors))
        half_way = int(np.searchsorted(times, times[-1] / 2))
        falling = errors[half_way] - errors[best] > STILL_FALLING * errors[0]
        if times[-1] >= self.max_iter and times[best] >= 0.98 * times[-1] and falling:
            warnings.warn(
                f"The error was still falling when the path reached max_iter={self.max_iter}; increase max_iter.",
                ConvergenceWarning,
                stacklevel=3,
            )

    max_iter: int

    def predict(self, X: Any) -> FloatArray:
        """Predict.

        Parameters
        ----------
        X : array-like or any kind of design, of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,)
            A numpy array, or what the kind of X keeps its rows in.
        """
        check_is_fitted(self)
        design = read_rows(self, X)
        used = np.flatnonzero(self.coef_)
        fitted = design.predict(used, self.coef_[None, used], np.array([self.intercept_], dtype=self.coef_.dtype))
        return fitted[:, 0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The coefficient of determination R^2 of the predictions, computed where the rows are.

        Parameters
        ----------
        X : array-like or any kind of design, of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        float
        """
        check_is_fitted(self)
        if is_table(X):
            return float(super().score(X, y, sample_weight))
        design = read_rows(self, X)
        response, weight = design.rows(y), design.weights(sample_weight)
        used = np.flatnonzero(self.coef_)
        error = design.errors(response, weight)(used, self.coef_[None, used], np.array([self.intercept_]))[0]
        spread = design.standard(response, weight, centre=True)[2]
        return 1.0 - float(error / spread**2)

    def __getstate__(self) -> dict[str, Any]:
        """What is kept is plain: numbers, arrays and text, so that files of it need no pickle."""
        state = dict(super().__getstate__())
        if "scores_" in state:
            state["scores_"] = {name: column.to_numpy() for name, column in state["scores_"].items()}
        if state.get("average_") is not None:
            state["average_"] = json.dumps(state["average_"].to_dict("list"))
        if "feature_names_in_" in state:
            state["feature_names_in_"] = json.dumps(state["feature_names_in_"].tolist())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "scores_" in state:
            state["scores_"] = pd.DataFrame(state["scores_"])
        if state.get("average_") is not None:
            state["average_"] = pd.DataFrame(json.loads(state["average_"]))
        if "feature_names_in_" in state:
            state["feature_names_in_"] = np.array(json.loads(state["feature_names_in_"]), dtype=object)
        super().__setstate__(state)

    def group_table(self) -> pd.DataFrame:
        """The selected groups, in the order in which they woke up.

        Returns
        -------
        DataFrame
            Indexed by group; columns ``size``, ``strength`` (the standard deviation of its part of the prediction,
            with the default ``standardize="group"``; in a dense network the norm of its coefficients on the columns as
            they were scaled), ``norm`` (of its coefficients), ``woke_up`` (iteration).
        """
        check_is_fitted(self)
        woke = dict(self.path_.entered)
        chosen = [self.groups_.names.index(name) for name in self.selected_groups_]
        return pd.DataFrame(
            {
                "size": self.groups_.sizes[chosen],
                "strength": self.group_strengths_[chosen],
                "norm": self.group_norms_[chosen],
                "woke_up": [int(woke[l]) for l in chosen],
            },
            index=pd.Index(self.selected_groups_, name="group"),
        )

    @property
    def dense_network_(self) -> bool:
        """Whether ``init_scale="auto"`` chose a denser network, in which all groups grow together."""
        check_is_fitted(self)
        return self.init_scale == "auto" and self.init_scale_ > INIT_SCALE

    def summary(self, file: TextIO | None = None) -> None:
        """Print what was selected: one line per group, with its size, norm and wake-up time.

        Above them stands how the model was come to: the time, restarts, whether a dense network was chosen, and whether
        models were averaged.
        """
        table = self.group_table()
        out = sys.stdout if file is None else file
        columns = np.unique(np.concatenate([self.groups_[name] for name in table.index])) if len(table) else table.index
        print(
            f"{type(self).__name__}: {len(table)} of {self.groups_.n_groups} groups selected "
            f"({len(columns)} of {self.n_features_in_} columns), {how_stopped(self)}",
            file=out,
        )
        if self.dense_network_:
            print(
                f"A dense network was chosen, started from {self.init_scale_:g}: all groups grew together, which "
                f"predicts better here. For few groups: init_scale={INIT_SCALE:g}",
                file=out,
            )
        if self.average_ is not None:
            print(
                f"Noise is strong: predictions are a mean of {len(self.average_)} models (average_), and the groups "
                "those of the simplest that cannot be told from the best. For one model: average=False",
                file=out,
            )
        if len(table):
            shown = table.assign(**{name: table[name].map("{:.4g}".format) for name in ("strength", "norm")})
            print(shown.reset_index().to_string(index=False), file=out)


def how_stopped(fitted: PathRegressor) -> str:
    """When the path was restarted and stopped, in words."""
    restarted = " and ".join(f"{time:g}" for time in fitted.path_.restarted)
    return (f"restarted at {restarted}, " if restarted else "") + f"stopped at iteration {fitted.n_iter_}"


def _read_init_scale(init_scale: Any) -> tuple[float, tuple[float, ...]]:
    """The start scale of the sparse network, and those of denser ones to try."""
    if isinstance(init_scale, str):
        if init_scale != "auto":
            raise ValueError(f"init_scale must be 'auto' or a number above 0, not {init_scale!r}.")
        return INIT_SCALE, DENSE_SCALES
    return positive(init_scale, "init_scale"), ()
