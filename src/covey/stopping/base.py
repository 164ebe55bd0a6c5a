"""What a stopping rule is given, and what it answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, overload

import numpy as np
import pandas as pd

from covey.designs import Design, as_design
from covey.network import PathRunner, Snapshot, StopRule
from covey.groups import Groups
from covey.path import Path
from covey.stopping.adjustment import Adjustment, adjust, read_factors
from covey.stopping.scorer import Scorer
from covey.validation import FloatArray

__all__ = ["Average", "Choice", "PathTask", "Stopping"]

Made = TypeVar("Made")

# Of the options of `group_path`, those that say what the problem is.
PROBLEM_OPTIONS = ("standardize", "fit_intercept")


class made_once(Generic[Made]):  # noqa: N801 - a decorator
    """`functools.cached_property` without its lock, which all instances share in Python 3.11.

    A fold that holds the lock while it waits for a cluster, and another one that waits for the lock on the worker that
    the first one waits for, would wait for ever.
    """

    def __init__(self, make: Callable[[Any], Made]) -> None:
        self.make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, instance: None, owner: Any) -> made_once[Made]: ...

    @overload
    def __get__(self, instance: object, owner: Any) -> Made: ...

    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return self
        made = self.make(instance)
        instance.__dict__[self.make.__name__] = made
        return made


@dataclass(frozen=True)
class PathTask:
    """A regression problem together with the settings of its path, and of the search for a better one.

    Rows are never copied: a part of them is chosen by giving the others weight zero.

    Attributes
    ----------
    X, y, groups, weight
        The problem; X any kind of design.
    options : mapping
        Those of `covey.group_path`.
    restarts : int
        How often the path is cleaned and run on at most.
    factors : int or "auto"
        How many common factors are taken out of X and fitted by themselves.
    dense_scales : tuple of float
        Larger start scales to try where much is left that no single group explains.
    average : bool
        Whether to average what the search has found, where noise is strong.
    """

    X: Any
    y: FloatArray
    groups: Groups
    weight: FloatArray
    options: Mapping[str, Any] = field(default_factory=dict)
    verbose: int = 0
    restarts: int = 0
    factors: int | str = 0
    dense_scales: tuple[float, ...] = ()
    average: bool = False

    @made_once
    def design(self) -> Design:
        """X, whatever its kind."""
        return as_design(self.X)

    @property
    def n_effective(self) -> float:
        """The number of rows, each counted by its weight."""
        return self.design.total(self.weight)

    @property
    def n_rows(self) -> float:
        """Rows counted by their weights, in units of the least."""
        return self.design.count(self.weight)

    def scaled(self, standardize: Any) -> PathTask:
        """The same task with another scaling of the columns; factors are not found again."""
        known: dict[Any, PathTask] = self.__dict__.setdefault("_scaled", {})
        if standardize not in known:
            other = replace(self, options={**self.options, "standardize": standardize})
            for name in ("design", "n_factors", "adjustment"):
                if name in self.__dict__:
                    other.__dict__[name] = self.__dict__[name]
            known[standardize] = other
        return known[standardize]

    @made_once
    def whole(self) -> PathTask:
        """The same task with common factors left in X."""
        return self if self.adjustment is None else replace(self, X=self.design, factors=0)

    def full(self, coef: FloatArray, intercept: float) -> tuple[FloatArray, float]:
        """A model of the columns less what factors explain, as one of the columns themselves."""
        if self.adjustment is None:
            return coef, intercept
        full, shift = self.adjustment.factors.full_coefficients(coef, self.adjustment.effects)
        return full, intercept + float(shift)

    @made_once
    def runner(self) -> PathRunner:
        """The problem, prepared once for all its paths."""
        settings = {name: self.options[name] for name in PROBLEM_OPTIONS if name in self.options}
        return PathRunner(self.adjusted_design, self.response, self.groups, sample_weight=self.weight, **settings)

    @property
    def init_scale(self) -> float:
        """The start scale of the sparse network."""
        return float(self.options.get("init_scale", 1e-6))

    @property
    def adjusted_design(self) -> Design:
        """X, less what factors explain."""
        return self.design if self.adjustment is None else self.adjustment.design

    @property
    def response(self) -> FloatArray:
        """y, less what factors explain."""
        return self.y if self.adjustment is None else self.adjustment.y

    @made_once
    def n_factors(self) -> int:
        """The number of factors, counted if it is to be found."""
        return read_factors(self.factors, self.design, self.weight, self.groups, self._fit_intercept)

    @made_once
    def adjustment(self) -> Adjustment | None:
        """The factors taken out of X and y; None for none."""
        if self.n_factors == 0:
            return None
        return adjust(self.design, self.y, self.weight, self.n_factors, self._fit_intercept)

    @property
    def _fit_intercept(self) -> bool:
        return bool(self.options.get("fit_intercept", True))

    def scorer(self, X: Any, y: Any, weight: Any) -> Scorer:
        """Rows that judge the models of this task's paths."""
        design = as_design(X)
        return Scorer(design, y, weight) if self.adjustment is None else self.adjustment.scorer(design, y, weight)

    def on(self, rows: Any) -> PathTask:
        """The same task on some of the rows (a boolean mask)."""
        return replace(self, X=self.design, weight=np.where(rows, self.weight, 0.0), factors=self.n_factors)

    def path(self, *, stop: StopRule | None = None, **overrides: Any) -> Path:
        """Run the path."""
        settings = {name: value for name, value in self.options.items() if name not in PROBLEM_OPTIONS}
        told = _Narrated(stop) if self.verbose > 1 else stop
        settings = {**settings, **overrides}
        start = settings.get("start")
        if start is not None and "max_iter" in settings:
            # a path that goes on from another one makes at least one step
            state = start.state if isinstance(start, Path) else start
            begun = 0 if state is None else state.time
            settings["max_iter"] = max(settings["max_iter"], begun + 1)
        path = replace(self.runner.run(stop=told, **settings), init_scale=settings.get("init_scale", self.init_scale))
        if self.adjustment is not None:
            path = replace(path, factors=self.adjustment.factors, factor_effects=self.adjustment.effects)
        if self.verbose > 0:
            print(f"[covey] path to iteration {path.times[-1]:g}: {len(path.entered)} groups awake, {path.status}")
        return path

    def residual_sums(self, path: Path) -> FloatArray:
        """Weighted residual sum of squares of every model on a path; shape (n_times,)."""
        columns = np.unique(path.coefs.indices)
        errors = self.scorer(self.design, self.y, self.weight).errors
        return errors(columns, path.coefs[:, columns].toarray(), path.intercepts) * self.n_effective


class _Narrated:
    """A stop rule that prints a line whenever a group has woken up."""

    def __init__(self, stop: StopRule | None) -> None:
        self.stop = stop
        self.seen = 0
        look_ahead = getattr(stop, "look_ahead", None)
        if look_ahead is not None:
            self.look_ahead = look_ahead

    def __call__(self, snapshot: Snapshot) -> bool:
        if snapshot.n_woken > self.seen:
            self.seen = snapshot.n_woken
            print(f"[covey] iteration {snapshot.time}: {self.seen} groups awake")
        return self.stop is not None and self.stop(snapshot)


@dataclass(frozen=True)
class Average:
    """A mean of models.

    Attributes
    ----------
    coef : ndarray, shape (n_columns,)
        Of the columns of X.
    intercept : float
    parts : DataFrame
        What it is the mean of: ``model``, ``groups`` (how many it has), ``mse`` on the judging rows, ``weight``.
    """

    coef: FloatArray
    intercept: float
    parts: pd.DataFrame


@dataclass(frozen=True)
class Choice:
    """A time on a path.

    Attributes
    ----------
    path : Path
        The path to take the model from.
    time : float
        Where on it.
    scores : DataFrame
        What the rule looked at: one row per time.
    average : Average or None
        The mean of several models, to be taken instead of the one on the path.
    """

    path: Path
    time: float
    scores: pd.DataFrame
    average: Average | None = None

    @property
    def position(self) -> int:
        """The chosen model's position on the path."""
        return self.path.index(self.time)

    @property
    def model(self) -> tuple[FloatArray, float]:
        """Coefficients on the columns of X, shape (n_columns,), and the intercept."""
        if self.average is None:
            return self.path.model(self.position)
        return self.average.coef, self.average.intercept


class Stopping(ABC):
    """A rule that chooses a time on a path."""

    @abstractmethod
    def choose(self, task: PathTask) -> Choice:
        """Run the path or paths that the rule needs, and choose."""
