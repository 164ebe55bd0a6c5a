"""Matrices of other libraries that stay in a file, dense or sparse, and are read in blocks of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from covey.designs.row_blocks import MEMORY_BUDGET, RowsOnDisk, check_matrix, float_type
from covey.validation import Array

__all__ = ["BackedDesign"]


class BackedDesign(RowsOnDisk):
    """Any object with `shape` and `dtype` whose rows ``stored[a:b]`` are an array or a scipy sparse matrix.

    This is what the X of a backed AnnData object is, or a dataset of h5py. It is only read.

    Parameters
    ----------
    stored : object
    columns : sequence of str, optional
    dtype : dtype, optional
        float32 or float64 to compute in; by default the stored type, or float64 for integers.
    memory_budget : int
        Memory for row blocks, in bytes.
    name : str
        The name of X in messages.
    """

    def __init__(
        self,
        stored: Any,
        *,
        columns: Sequence[str] | None = None,
        dtype: DTypeLike | None = None,
        memory_budget: int = MEMORY_BUDGET,
        name: str = "X",
    ) -> None:
        for needed in ("shape", "dtype", "__getitem__"):
            if not hasattr(stored, needed):
                raise ValueError(f"{name} is a {type(stored).__name__} without {needed!r}: its rows cannot be read.")
        check_matrix(tuple(stored.shape), columns, name)
        kind = np.dtype(stored.dtype)
        wanted = np.float64 if dtype is None and kind.kind in "iub" else dtype
        super().__init__(
            stored.shape, float_type(kind, wanted, name), memory_budget=memory_budget, columns=columns, name=name
        )
        self.stored = stored

    def _stored(self, start: int, stop: int) -> Array:
        rows = self.stored[start:stop]
        return np.asarray(rows.toarray() if sp.issparse(rows) else rows)
