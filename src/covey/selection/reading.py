"""Values that a user may pass as ``selection=``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
from sklearn.utils import check_random_state

from covey.selection.criteria import Size
from covey.selection.splitting import Folds, HoldOut
from covey.stopping import Discrepancy, InformationCriterion, Stopping
from covey.validation import whole

__all__ = ["Selection", "read_selection"]

Selection = Folds | HoldOut | Size | Stopping


def read_selection(selection: Any, random_state: Any = None, labels: Any = None) -> Selection:
    """Convert the ``selection=`` argument to a rule.

    >>> read_selection(5)
    Folds(cv=5, labels=None, random_state=None)
    >>> read_selection("ebic")
    InformationCriterion(criterion='ebic', gamma=1.0)
    """
    if isinstance(selection, HoldOut):
        return replace(selection, random_state=random_state) if selection.random_state is None else selection
    if isinstance(selection, Folds):
        return replace(selection, labels=labels) if selection.labels is None else selection
    if isinstance(selection, Size | Stopping):
        return selection
    if isinstance(selection, int | np.integer) and not isinstance(selection, bool):
        folds = whole(int(selection), "selection as a number of folds", least=2)
        return Folds(folds, labels, random_state)
    if isinstance(selection, str):
        if selection == "holdout":
            seed = check_random_state(0 if random_state is None else random_state).randint(2**31 - 1)
            return HoldOut(random_state=seed)
        if selection in ("bic", "ebic", "gcv"):
            return InformationCriterion(cast(Any, selection))
        if selection == "discrepancy":
            return Discrepancy()
    elif hasattr(selection, "split") or (hasattr(selection, "__iter__") and not isinstance(selection, dict)):
        return Folds(selection, labels, random_state)
    raise ValueError(
        "selection must be a number of folds, a splitter or an iterable of (train, test), 'holdout', 'ebic', 'bic', "
        "'gcv', 'discrepancy', covey.selection.HoldOut(...), covey.selection.Size(k), or a rule of covey.stopping, "
        f"not {selection!r}."
    )
