"""What the folds agreed on, done on all rows."""

from __future__ import annotations

from functools import reduce
from typing import Any

from covey.engine import Snapshot
from covey.engine.cleaning import clean
from covey.path import Path
from covey.stopping.base import PathTask
from covey.stopping.fold_search import Cut, FoldLeg
from covey.stopping.keeping import prefix_lengths, restart_state
from covey.stopping.legs import Kept
from covey.stopping.search import DENSE_SCALING

__all__ = ["cut_on_all_rows", "run_on_all_rows"]

# A path on all rows that is run for the order of its groups goes on for at most so many times the folds' time.
LONGER = 3


def run_on_all_rows(task: PathTask, leg: FoldLeg) -> Path:
    """The leg as the folds agreed on it, on all rows."""
    step, times = leg.errors.step_size, leg.errors.times
    last = max(1, int(times[-1]))
    if leg.init_scale is not None:
        dense = task.scaled(DENSE_SCALING)
        return dense.path(times=times, max_iter=last, step_size=step, init_scale=leg.init_scale)
    way, start = _come_to(task, leg)
    last = max(last, (leg.cuts[-1].time if leg.cuts else 0) + 1)
    way.append(task.path(start=start, times=times, max_iter=last, step_size=step))
    return reduce(lambda earlier, later: later.after(earlier), way)


def _come_to(task: PathTask, leg: FoldLeg) -> tuple[list[Path], Any]:
    """The paths on all rows through which a leg is come to, and where it starts."""
    start: Any = task.options.get("start")
    way: list[Path] = []
    for cut in leg.cuts:
        way.append(_ahead(task, start, cut, leg.errors.step_size))
        start = restart_state(task, _cut(task, way[-1], cut), max(cut.time, 1), way[-1].entered)
    return way, start


def cut_on_all_rows(task: PathTask, leg: FoldLeg, cut: Cut) -> Kept:
    """What a cleaning of a leg keeps on all rows."""
    ahead = _ahead(task, _come_to(task, leg)[1], cut, leg.errors.step_size)
    return _cut(task, ahead, cut)


def _ahead(task: PathTask, start: Any, cut: Cut, step: float) -> Path:
    """A path until as many groups are awake as are to be cleaned."""

    def enough(snapshot: Snapshot) -> bool:
        return snapshot.n_woken >= cut.length

    return task.path(stop=enough, start=start, step_size=step, max_iter=max(LONGER * cut.time, cut.time + 1))


def _cut(task: PathTask, path: Path, cut: Cut) -> Kept:
    """What a cleaning keeps of a path."""
    order = [l for l, _ in path.entered]
    length = min(cut.length, len(order), max(prefix_lengths(task, order, len(order)), default=0))
    nested = clean(task.runner.problem, order, [length], [cut.ridge])[0]
    left = nested.groups[nested.kept[length - min(cut.n_kept, length)]]
    return Kept(tuple(left.tolist()), cut.ridge)
