"""How X is touched: one small protocol, one file per kind of storage."""

from __future__ import annotations

from typing import Any

from covey.designs.blocks import GatheredColumns
from covey.designs.dense import DenseDesign
from covey.designs.protocol import Design, Moments
from covey.validation import as_numeric_matrix, column_names

__all__ = ["DenseDesign", "Design", "GatheredColumns", "Moments", "as_design"]


def as_design(X: Any, *, name: str = "X") -> Design:
    """Wrap X in the design for its kind of storage; a `Design` is returned as it is.

    >>> import numpy as np
    >>> as_design(np.eye(3, 5)).shape
    (3, 5)
    """
    if isinstance(X, Design):
        return X
    return DenseDesign(as_numeric_matrix(X, name=name), columns=column_names(X), name=name)
