"""PathRunner: one problem in working coordinates, and as many runs of the network on it as are wanted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covey.designs import Design, RepeatedColumns, as_design
from covey.engine.beginning import Beginning, read_start
from covey.engine.exact import ExactPath
from covey.engine.held import HeldPath
from covey.engine.overlap import InColumns, add_up
from covey.engine.recorder import Recorder
from covey.engine.resting import RestingPath
from covey.engine.rowspace import RowSpacePath, all_awake, prefers_rows
from covey.engine.screened import NearGroups, ScreenedPath
from covey.engine.settings import Settings, read_settings, step_unit
from covey.engine.snapshots import StopRule
from covey.engine.working_rows import WorkingRows
from covey.groups import Groups
from covey.path import Path, PathState
from covey.preprocess import Standardize, prepare
from covey.validation import positive, whole

__all__ = ["PathRunner", "read_times"]

ENGINES = ("auto", "screened", "exact")

MESSAGES = {
    "completed": "Reached max_iter = {max_iter} iterations.",
    "stopped": "Stopped by the caller at time {time}.",
    "exhausted": "Nothing is left to explain at time {time}.",
    "diverged": "The awake groups diverged after time {time}; use a smaller step_size.",
}


class PathRunner:
    """Prepares a problem once and runs paths on it; what one run has read of X serves the next.

    The parameters are those of `covey.group_path`: here the ones that say what the problem is, and in `run` the ones
    that say how to descend.

    Attributes
    ----------
    problem : WorkingProblem
    groups : Groups
    apart : Groups
        The same; where they overlap, with a copy of its columns for each, as the problem has them.
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
        self._held: WorkingRows | None = None

    def run(
        self,
        *,
        algorithm: str = "single-stage",
        init_scale: float = 1e-6,
        step_size: float | str = "auto",
        direction_step: float | str = "auto",
        switch_tol: float | str = "auto",
        depth: int = 2,
        group_weights: Any = "noise",
        max_iter: int = 100_000,
        times: ArrayLike | None = None,
        engine: str = "auto",
        tol: float = 1e-3,
        stop: StopRule | None = None,
        start: Path | PathState | None = None,
        rest: bool = False,
        verbose: int = 0,
    ) -> Path:
        """Run the network; see `covey.group_path`. With `rest` it stands still: the path is the model of its start."""
        if engine not in ENGINES:
            raise ValueError(f"engine must be one of {', '.join(map(repr, ENGINES))}, not {engine!r}.")
        max_iter = whole(max_iter, "max_iter")
        tol = positive(tol, "tol")
        wanted = read_times(times, max_iter)
        problem = self.problem
        if stop is not None and self.groups.overlapping:
            stop = InColumns(stop, self.groups)
        settings = read_settings(
            problem, algorithm=algorithm, init_scale=init_scale, step_size=step_size, direction_step=direction_step,
            switch_tol=switch_tol, depth=depth, group_weights=group_weights,
        )  # fmt: skip
        begin = read_start(start, problem, settings)
        if begin.time >= max_iter and not rest:
            raise ValueError(f"start ended at time {begin.time}; max_iter must be larger, not {max_iter}.")
        recorder = Recorder(problem, stop, wanted, self.groups.names, verbose)
        recorder.enter(begin.entered)
        run: ScreenedPath | ExactPath | RestingPath
        if rest:
            run = RestingPath(problem, settings, recorder, begin)
        elif engine == "exact" or (engine == "auto" and all_awake(settings)):
            run = self._exact_path(settings, recorder, begin)
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
            n_passes=self._count_passes(),
            n_gram_columns=run.n_gram_columns,
            state=state,
        )
        return add_up(path, self.groups) if self.groups.overlapping else path

    def _exact_path(self, settings: Settings, recorder: Recorder, begin: Beginning) -> ExactPath:
        """The exact engine in the form that suits the problem."""
        held = self.working_rows
        if held is not None:
            return HeldPath(self.problem, settings, recorder, begin, held)
        kind = RowSpacePath if prefers_rows(self.problem) else ExactPath
        return kind(self.problem, settings, recorder, begin)

    @property
    def working_rows(self) -> WorkingRows | None:
        """The problem held as one array, made when it is first asked for; None where it is too large."""
        if self._held is None and WorkingRows.affordable(self.problem):
            self._held = WorkingRows.of(self.problem)
        return self._held

    def forget(self) -> None:
        """Run the next path as if it were the first: the runs before then do not show, not even in the last bit."""
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
        raise ValueError("times must not be negative, and finite.")
    whole_values = np.unique(np.round(values).astype(np.int64))
    return whole_values[whole_values <= max_iter]
