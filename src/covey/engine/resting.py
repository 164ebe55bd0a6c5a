"""A path that stands still: the model of its start, recorded once, with nothing read of X."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covey.engine.awake import AwakeGroups
from covey.engine.beginning import Beginning, ending
from covey.engine.recorder import Recorder
from covey.engine.settings import Settings
from covey.engine.switching import Switch
from covey.path import PathState
from covey.preprocess import WorkingProblem, spans

__all__ = ["RestingPath"]


class RestingPath:
    """One run of no iterations, with the interface of the engines."""

    n_gram_columns = 0

    def __init__(self, problem: WorkingProblem, settings: Settings, recorder: Recorder, begin: Beginning) -> None:
        self.problem, self.settings, self.recorder, self.begin = problem, settings, recorder, begin
        self.awake = AwakeGroups(problem)
        which, depth = begin.awake, settings.depth
        u = np.exp(begin.log_u[which])
        self.awake.add(which, u, begin.v[spans(problem.starts, which)], depth, settings.speeds[which])

    def run(self, max_iter: int, stops: NDArray[np.int64]) -> str:
        """Record the start; the status."""
        self.record()
        return "stopped"

    def record(self) -> None:
        """Hand the start to the recorder."""
        awake = self.awake
        self.recorder.record(self.begin.time, awake.which, awake.starts, awake.w, float(len(awake.which)))

    def state(self) -> PathState:
        """Where the path stands."""
        begin, switch = self.begin, Switch(self.settings, self.begin.eta, self.begin.armed)
        return ending(
            self.problem, begin.time, self.awake, self.awake.which, begin.log_u, switch, begin.v, self.recorder.entered
        )
