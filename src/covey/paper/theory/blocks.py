"""Gram blocks of a design, a few groups at a time: the p x p Gram is never formed.

X is any `covey.designs.Design`. Its columns are read as dense blocks, multiplied as they are if X is sparse, or reached
through Gram products only if reading columns costs a pass over X.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from covey.designs import Design, Moments, SparseDesign, as_design
from covey.groups import Groups
from covey.validation import FloatArray, IntArray, whole


@dataclass(frozen=True)
class Span:
    """The groups ``first:last``: their columns, and where each group starts among these."""

    first: int
    last: int
    members: IntArray
    starts: IntArray


def read_design(X: object, groups: object) -> tuple[Design, Groups]:
    design = as_design(X)
    return design, Groups.coerce(groups, design.shape[1], design.columns)


def gram_blocks(X: Design, groups: Groups, scale: float, block_columns: int) -> Iterator[tuple[Span, Span, FloatArray]]:
    """``X_a'X_b/(n scale^2)`` for all pairs of spans a and b of about `block_columns` columns, a not after b."""
    n, sparse = X.shape[0], isinstance(X, SparseDesign)
    remote = not (X.reads_columns or sparse)

    def columns(span: Span) -> Any:
        read = X.X[:, span.members].astype(float) if isinstance(X, SparseDesign) else X.take(span.members)
        return read if scale == 1.0 else read / scale

    starts, edges, longest = groups.starts, [0], whole(block_columns, "block_columns")
    for l in range(1, groups.n_groups):
        if starts[l + 1] - starts[edges[-1]] > longest:
            edges.append(l)
    spans = [
        Span(a, b, groups.members[starts[a] : starts[b]], np.asarray(starts[a : b + 1] - starts[a], dtype=np.intp))
        for a, b in zip(edges, [*edges[1:], groups.n_groups], strict=True)
    ]
    for i, left in enumerate(spans):
        A = columns(left)
        gram_rows = X.correlate(A.T / n).astype(float) / scale if remote else None
        for right in spans[i:]:
            if gram_rows is not None:
                C = gram_rows[:, right.members]
            else:
                C = A.T @ (A if right is left else columns(right))
                C = (C.toarray() if sp.issparse(C) else C) / n
            yield left, right, np.ascontiguousarray(C)


def correlate(X: Design, r: FloatArray) -> FloatArray:
    """``X'r``, shape (p,)."""
    return _moments(X, r, np.ones(X.shape[1])).correlation * X.shape[0]


def fitted(X: Design, w: FloatArray) -> FloatArray:
    """``X w``, reading only columns with nonzero coefficients."""
    used = np.flatnonzero(w)
    return X.predict(used, w[None, used], np.zeros(1))[:, 0]


def column_norms(X: Design) -> FloatArray:
    """Euclidean norm of every column over sqrt(n), without overflow."""
    n = X.shape[0]
    # powers of two near the largest values prevent overflow and are exact
    scale = np.exp2(-np.frexp(X.largest())[1].clip(-1000, 1000).astype(float))
    return np.sqrt(_moments(X, np.full(n, 1 / n), scale).variance) / scale


def _moments(X: Design, r: FloatArray, scale: FloatArray) -> Moments:
    (n, p), single = X.shape, np.arange(X.shape[1] + 1)
    return X.moments(r, np.full(n, 1 / n), np.arange(p), single, centre=False, scale=scale)
