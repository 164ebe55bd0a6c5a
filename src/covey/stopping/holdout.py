"""Stop where held-out rows are predicted best."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covey.designs import as_design
from covey.path import Path
from covey.stopping.base import Choice, PathTask, Stopping
from covey.stopping.monitor import PATIENCE
from covey.stopping.scorer import Scorer
from covey.stopping.search import DENSE_SCALING, Leg, Trial, best_leg, explore, restart_state, way_to
from covey.validation import positive

__all__ = ["HoldOut", "split_rows"]


@dataclass(frozen=True)
class HoldOut(Stopping):
    """The time of least squared error on held-out rows: the earliest within 0.3% of the least.

    A share of the rows is set aside, the path runs on the others until the error has not improved while a few more
    groups rose, and the best time is taken; then the path is run on all rows to that time.

    Rows that are equal stay on the same side, and shares are measured by weight: a weight of two is the same as the
    row twice, and duplicates never leak from one side to the other.

    Parameters
    ----------
    fraction : float
        The share of the rows to hold out.
    refit : bool
        Whether to run the path on all rows to the chosen time; otherwise the held-out rows are not used again.
    patience : float
        How many groups may rise without lowering the error before the path is given up. Counted in groups and not
        in iterations, because the model stands still for long times between them.
    validation : (X, y), optional
        Use these rows instead of holding out some.
    random_state : int, Generator or None
    """

    fraction: float = 0.2
    refit: bool = True
    patience: float = PATIENCE
    validation: tuple[Any, Any] | None = None
    random_state: Any = None

    def choose(self, task: PathTask) -> Choice:
        """Hold out, choose, and run again on all rows."""
        patience = positive(self.patience, "patience")
        if self.validation is not None:
            trial = Trial(task, self._given_rows(task))
            refit = False
        else:
            held = split_rows(task, self.fraction, self.random_state)
            task.design.expect(task.y, task.weight, [held])
            training = task.on(~held)
            trial = Trial(training, training.scorer(task.design, task.y, np.where(held, task.weight, 0.0)))
            refit = self.refit
        legs = explore(trial, patience)
        chain = way_to(best_leg(trial, legs), legs)
        scores = pd.concat([leg.monitor.to_frame() for leg in chain]).drop_duplicates("time", keep="last")
        paths = self._on_all_rows(task, chain) if refit else [leg.path for leg in chain]
        return Choice(reduce(lambda earlier, later: later.after(earlier), paths), chain[-1].time, scores)

    def _given_rows(self, task: PathTask) -> Scorer:
        assert self.validation is not None
        X_val, y_val = self.validation
        design = as_design(X_val, name="X_val")
        if design.shape[1] != task.groups.n_columns:
            raise ValueError(f"The validation rows have {design.shape[1]} columns, and X has {task.groups.n_columns}.")
        y_val = design.rows(y_val, name="y_val")
        return task.scorer(design, y_val, np.ones_like(y_val))

    def _on_all_rows(self, task: PathTask, chain: list[Leg]) -> list[Path]:
        """The same legs on all rows, each to the beginning of the next, and the last to the time that it chose."""
        if chain[-1].dense:
            task = task.scaled(DENSE_SCALING)
        paths = []
        for leg, following in zip_longest(chain, chain[1:]):
            last = int(leg.time) if following is None else int(following.path.times[0])
            settings = dict(leg.options)
            if leg.start is not None:
                begin = int(leg.path.times[0])
                woke = leg.path.entered[: len(leg.start.groups)]
                settings["start"] = restart_state(task, leg.start, begin, woke, task.init_scale)
                last = max(last, begin + 1)
            paths.append(task.path(max_iter=max(1, last), step_size=leg.path.step_size, **settings))
        return paths


def split_rows(task: PathTask, fraction: float, random_state: Any) -> NDArray[np.bool_]:
    """Which rows to hold out: about `fraction` of the weight, equal rows together."""
    if isinstance(fraction, bool) or not 0 < fraction < 1:
        raise ValueError(f"The held-out fraction must lie between 0 and 1, not {fraction!r}.")
    return task.design.hold_out(task.y, task.weight, fraction, random_state)
