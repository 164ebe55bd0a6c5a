"""Stop where held-out rows are predicted best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covey.designs import as_design
from covey.path import Path
from covey.stopping.averaging import Part, average, clean_whole, parts_of
from covey.stopping.base import Choice, PathTask, Stopping
from covey.stopping.keeping import MOST_COLUMNS, restart_state
from covey.stopping.legs import Kept, Leg, Trial, way_to
from covey.stopping.monitor import PATIENCE
from covey.stopping.scorer import Scorer
from covey.stopping.search import DENSE_SCALING, Found, explore
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
        found = explore(trial, patience)
        chain = way_to(found.best)
        again = {leg: _on_all_rows(task, leg, leg is chain[-1]) for leg in chain} if refit else {}
        paths = [again.get(leg, leg.path) for leg in chain]
        mean = None
        parts = _to_average(trial, found, chain[-1]) if task.average else []
        if parts:
            run_again = (lambda leg: again[leg] if leg in again else _on_all_rows(task, leg)) if refit else None
            mean = average(task if refit else trial.task, parts, trial.scorer.n_rows, run_again)
        return Choice(reduce(lambda earlier, later: later.after(earlier), paths), chain[-1].time, _scores(chain), mean)

    def _given_rows(self, task: PathTask) -> Scorer:
        assert self.validation is not None
        X_val, y_val = self.validation
        design = as_design(X_val, name="X_val")
        if design.shape[1] != task.groups.n_columns:
            raise ValueError(f"The validation rows have {design.shape[1]} columns, and X has {task.groups.n_columns}.")
        y_val = design.rows(y_val, name="y_val")
        return task.scorer(design, y_val, np.ones_like(y_val))


def _scores(chain: Sequence[Leg]) -> pd.DataFrame:
    """The errors of some legs one after another; where two have the same time, those of the later one."""
    times = np.concatenate([leg.monitor.times for leg in chain])
    errors = np.concatenate([leg.monitor.errors for leg in chain])
    # those of the later leg come first among equals, and are so the ones that are kept
    times, last = np.unique(times[::-1], return_index=True)
    return pd.DataFrame(np.column_stack([times, errors[::-1][last]]), columns=["time", "mse"])


def _to_average(trial: Trial, found: Found, best: Leg) -> list[Part]:
    """The models to take instead of the best leg's, if any.

    Under strong noise that is everything found. Otherwise it may be the groups of the best leg, fitted with common
    factors left in X: the factors have done their work when the groups are known.
    """
    if found.noisy:
        parts = parts_of(trial, found)
        return parts if len(parts) > 1 else []
    whole = trial.whole
    n_columns = int(trial.task.runner.problem.ranks[best.awake].sum())
    if whole is None or best.dense or not 0 < n_columns <= MOST_COLUMNS * trial.task.n_rows:
        return []
    alone = clean_whole(whole, Kept(tuple(best.awake), 0.0))
    coef, intercept = best.path.model(best.path.index(best.time))
    coefs = np.zeros((2, coef.size))
    coefs[0, alone.columns], coefs[1] = alone.coef, coef
    levels = np.array([alone.intercept, intercept])
    return [alone] if whole.scorer.simplest(np.arange(coef.size), coefs, levels, [0, 1])[0] == 0 else []


def _on_all_rows(task: PathTask, leg: Leg, to_choice: bool = True) -> Path:
    """The same leg on all rows, to the time that it chose or as far as it went."""
    if leg.dense:
        task = task.scaled(DENSE_SCALING)
    settings, last = dict(leg.options), int(leg.time if to_choice else leg.path.times[-1])
    if leg.start is not None:
        begin = int(leg.path.times[0])
        settings["start"] = restart_state(task, leg.start, begin, leg.path.entered[: len(leg.start.groups)])
        settings["rest"] = last == begin
    return task.path(max_iter=max(1, last), step_size=leg.path.step_size, **settings)


def split_rows(task: PathTask, fraction: float, random_state: Any) -> NDArray[np.bool_]:
    """Which rows to hold out: about `fraction` of the weight, equal rows together."""
    if isinstance(fraction, bool) or not 0 < fraction < 1:
        raise ValueError(f"The held-out fraction must lie between 0 and 1, not {fraction!r}.")
    return task.design.hold_out(task.y, task.weight, fraction, random_state)
