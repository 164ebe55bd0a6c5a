"""GroupedData: a real data set with its groups."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from covey.groups import Groups
from covey.summary import brief
from covey.validation import FloatArray

__all__ = ["GroupedData"]


@dataclass(frozen=True, repr=False)
class GroupedData:
    """A table, a response, and the groups of the columns.

    Attributes
    ----------
    X : DataFrame
    y : ndarray
    groups : Groups
    """

    X: pd.DataFrame
    y: FloatArray
    groups: Groups

    __repr__ = brief
