"""Stop at a given time."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from covey.stopping.base import Choice, PathTask, Stopping
from covey.validation import whole

__all__ = ["AtTime"]


@dataclass(frozen=True)
class AtTime(Stopping):
    """The model after `time` iterations."""

    time: int

    def choose(self, task: PathTask) -> Choice:
        """Run up to the time."""
        time = whole(self.time, "the time of AtTime", least=0)
        if time > task.max_iter:
            raise ValueError(f"AtTime({time}) lies beyond max_iter={task.max_iter}: give Network(max_iter={time}).")
        path = task.path(max_iter=time)
        return Choice(path, float(path.times[-1]), pd.DataFrame({"time": path.times}))
