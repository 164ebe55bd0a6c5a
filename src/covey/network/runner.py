"""PathRunner: one problem in working coordinates, for any number of runs of the network."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covey.designs import Design, RepeatedColumns, as_design
from covey.groups import Groups
from covey.network.beginning import read_start
from covey.network.exact import ExactPath, all_awake
from covey.network.overlap import InColumns
from covey.network.recorder import Recorder
from covey.network.screened import NearGroups, ScreenedPath
from covey.network.settings import check_engine, check_update, read_settings, start_scale, step_unit
from covey.network.snapshots import StopLike, as_stop_rule
from covey.path import Path, PathState
from covey.preprocess import Standardize, prepare
from covey.validation import positive, whole

__all__ = ["PathRunner", "read_times"]

MESSAGES = {
    "completed": "Reached max_iter = {max_iter} iterations.",
    "stopped": "Stopped by the caller at time {time}.",
    "exhausted": "Nothing is left to explain at time {time}.",
    "diverged": "The awake groups diverged after time {time}; use a smaller step_size.",
}


class PathRunner:
    """Prepares a problem once and runs paths on it; later runs reuse what earlier ones have read of X.

    The parameters are those of `covey.group_path`: the constructor takes those that define the problem, and `run` those
    that define the descent.

    Attributes
    ----------
    problem : WorkingProblem
    groups : Groups
    apart : Groups
        The same; if groups overlap, each has its own copy of its columns, as in the problem.
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        groups: Any = None,
        *,
        standardize: Standardize = "group",
        fit_intercept: bool = True,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        self.design = as_design(X)
        self._passes = self.design.n_passes
        self.groups = Groups.coerce(groups, self.design.shape[1], self.design.columns)
        working: Design = self.design
        apart = self.groups
        if self.groups.overlapping:
            working, apart = RepeatedColumns(self.design, self.groups.members), self.groups.apart()
        self.problem, self.apart = prepare(
            working, y, apart, standardize=standardize, fit_intercept=fit_intercept, sample_weight=sample_weight
        )
        self._near = NearGroups()

    def run(
        self,
        *,
        algorithm: str = "single-stage",
        init_scale: float | str = "auto",
        step_size: float | str = "auto",
        direction_step: float | str = "auto",
        switch_tol: float | str = "auto",
        depth: int = 2,
        group_weights: Any = "noise",
        max_iter: int = 100_000,
        times: ArrayLike | None = None,
        engine: str = "auto",
        update: str = "fast",
        tol: float = 1e-3,
        stop: StopLike | None = None,
        start: Path | PathState | None = None,
        verbose: int = 0,
    ) -> Path:
        """Run the network; see `covey.group_path`."""
        check_engine(engine)
        check_update(update, engine)
        max_iter = whole(max_iter, "max_iter")
        tol = positive(tol, "tol")
        wanted = read_times(times, max_iter)
        problem = self.problem
        rule = as_stop_rule(stop)
        if rule is not None and self.groups.overlapping:
            rule = InColumns(rule, self.groups)
        settings = read_settings(
            problem, algorithm=algorithm, init_scale=init_scale, step_size=step_size, direction_step=direction_step,
            switch_tol=switch_tol, depth=depth, group_weights=group_weights, update=update,
        )  # fmt: skip
        begin = read_start(start, problem, settings)
        if begin.time >= max_iter:
            raise ValueError(f"start ended at time {begin.time}; max_iter must be larger, not {max_iter}.")
        recorder = Recorder(problem, rule, wanted, self.groups.names, verbose)
        recorder.enter(begin.entered)
        run: ScreenedPath | ExactPath
        if settings.printed or engine == "exact" or (engine == "auto" and all_awake(settings)):
            run = ExactPath(problem, settings, recorder, begin)
        else:
            run = ScreenedPath(problem, settings, recorder, begin, tol, self._near)
        status = run.run(max_iter, np.empty(0, dtype=np.int64) if wanted is None else wanted)
        coefs, intercepts = recorder.coefficients()
        state = run.state()
        path = Path(
            times=np.array(recorder.times, dtype=np.int64),
            coefs=coefs,
            intercepts=intercepts,
            groups=self.apart,
            entered=recorder.entered,
            status=status,
            message=MESSAGES[status].format(max_iter=max_iter, time=state.time),
            strengths=recorder.strengths(),
            step_size=settings.gamma / step_unit(problem, settings.depth),
            init_scale=start_scale(init_scale, settings.depth),
            n_passes=self._count_passes(),
            n_gram_columns=run.n_gram_columns,
            state=state,
        )
        return path.added_up(self.groups) if self.groups.overlapping else path

    def forget(self) -> None:
        """Run the next path as if it were the first, bit for bit."""
        self._near = NearGroups()

    def _count_passes(self) -> int:
        """Passes over X since the last path."""
        before, self._passes = self._passes, self.design.n_passes
        return self.design.n_passes - before


def read_times(times: ArrayLike | None, max_iter: int) -> NDArray[np.int64] | None:
    """Sorted distinct iterations in range."""
    if times is None:
        return None
    values = np.asarray(times)
    if values.ndim != 1 or values.size == 0 or values.dtype.kind not in "iuf":
        raise ValueError("times must be a non-empty sequence of iterations.")
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError("times must be finite and not negative.")
    whole_values = np.unique(np.round(values).astype(np.int64))
    return whole_values[whole_values <= max_iter]
