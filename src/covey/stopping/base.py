"""The interface of stopping rules: their input and their result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from covey.designs import Design, as_design
from covey.groups import Groups
from covey.network import Snapshot, StopLike, StopRule, as_stop_rule
from covey.path import Path
from covey.validation import FloatArray

if TYPE_CHECKING:
    from covey.network import PathRunner

__all__ = ["Choice", "PathTask", "Stopping"]

# The options of `group_path` that define the problem.
PROBLEM_OPTIONS = ("standardize", "fit_intercept")


class _Prepared:
    """Objects that a task creates once, on first use.

    There is no lock: a fold that held one while waiting for its cluster could block the fold running on that worker.
    """

    def __init__(self) -> None:
        self.design: Design | None = None
        self.runner: PathRunner | None = None


@dataclass(frozen=True)
class PathTask:
    """A regression problem together with the settings of its path.

    Rows are never copied: a subset is selected by giving the other rows weight zero.

    Attributes
    ----------
    X, y, groups, weight
        The problem; X may be any kind of design.
    options : mapping
        Options of `covey.group_path`.
    verbose : int
        1: one line per path; 2: one line per group that wakes up.
    """

    X: Any
    y: FloatArray
    groups: Groups
    weight: FloatArray
    options: Mapping[str, Any] = field(default_factory=dict)
    verbose: int = 0
    _prepared: _Prepared = field(default_factory=_Prepared, init=False, repr=False, compare=False)

    @property
    def design(self) -> Design:
        """X as a design."""
        if self._prepared.design is None:
            self._prepared.design = as_design(self.X)
        return self._prepared.design

    @property
    def runner(self) -> PathRunner:
        """The problem, prepared once for all its paths."""
        if self._prepared.runner is None:
            from covey.network import PathRunner  # its kernels are compiled

            settings = {name: self.options[name] for name in PROBLEM_OPTIONS if name in self.options}
            self._prepared.runner = PathRunner(self.design, self.y, self.groups, sample_weight=self.weight, **settings)
        return self._prepared.runner

    @property
    def n_effective(self) -> float:
        """The number of rows, counted by weight."""
        return self.design.total(self.weight)

    @property
    def fit_intercept(self) -> bool:
        """Whether models have an intercept."""
        return bool(self.options.get("fit_intercept", True))

    @property
    def max_iter(self) -> int:
        """The last possible iteration of a path."""
        return int(self.options.get("max_iter", 100_000))

    def on(self, rows: Any) -> PathTask:
        """The same task on some of the rows (a boolean mask)."""
        return replace(self, X=self.design, weight=np.where(rows, self.weight, 0.0))

    def path(self, *, stop: StopLike | None = None, **overrides: Any) -> Path:
        """Run the path; `overrides` are options that differ from the task's."""
        settings = {name: value for name, value in self.options.items() if name not in PROBLEM_OPTIONS} | overrides
        rule = as_stop_rule(stop)
        start = settings.get("start")
        if start is not None and "max_iter" in settings:
            # a continued path makes at least one step
            state = start.state if isinstance(start, Path) else start
            begun = 0 if state is None else state.time
            settings["max_iter"] = max(settings["max_iter"], begun + 1)
        path = self.runner.run(stop=_Narrated(rule) if self.verbose > 1 else rule, **settings)
        if self.verbose > 0:
            print(f"[covey] path to iteration {path.times[-1]:g}: {len(path.entered)} groups awake, {path.status}")
        return path

    def residual_sums(self, path: Path) -> FloatArray:
        """Weighted residual sum of squares of every model on a path; shape (n_times,)."""
        columns = np.unique(path.coefs.indices)
        errors = self.design.errors(self.y, self.weight)
        return errors(columns, path.coefs[:, columns].toarray(), path.intercepts) * self.n_effective


class _Narrated(StopRule):
    """A stop rule that prints a line whenever a group has woken up."""

    def __init__(self, rule: StopRule | None) -> None:
        self.rule = rule
        self.seen = 0

    def stop_at(self, snapshot: Snapshot) -> bool:
        if snapshot.n_woken > self.seen:
            self.seen = snapshot.n_woken
            print(f"[covey] iteration {snapshot.time}: {self.seen} groups awake")
        return self.rule is not None and self.rule.stop_at(snapshot)


@dataclass(frozen=True)
class Choice:
    """A time on a path.

    Attributes
    ----------
    path : Path
        The path to take the model from.
    time : float
        The chosen time.
    scores : DataFrame
        The values on which the rule is based, one row per time.
    """

    path: Path
    time: float
    scores: pd.DataFrame

    @property
    def position(self) -> int:
        """The index of the chosen model on the path."""
        return self.path.index(self.time)

    @property
    def model(self) -> tuple[FloatArray, float]:
        """Coefficients on the columns of X, shape (n_columns,), and the intercept."""
        return self.path.model(self.position)


class Stopping(ABC):
    """A rule that chooses a time on a path."""

    @abstractmethod
    def choose(self, task: PathTask) -> Choice:
        """Run the path or paths that the rule needs, and choose."""
