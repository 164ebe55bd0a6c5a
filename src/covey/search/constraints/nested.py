"""Nested sets of groups under constraints: elimination, and ridges on the sets that it leaves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from covey.layout import offsets
from covey.search.constraints.cone import Rows
from covey.search.elimination import (
    JITTER,
    LARGEST,
    MORE_JITTER,
    NO_RISE,
    REPEATED_TIE,
    SMALLEST,
    TIE,
    Eliminated,
    QuadraticForm,
)
from covey.search.quadratic import Quadratic
from covey.validation import FloatArray

__all__ = ["eliminate_within", "ridges_within"]


def eliminate_within(form: QuadraticForm, rows: Rows, n_always: int = 0, units: FloatArray | None = None) -> Eliminated:
    """Drop groups one by one like `eliminate`, each time with the minimiser on the groups left under inequalities.

    What a group costs is read off this minimiser as if no inequality were active: a group that is held at zero costs
    nothing and is dropped first.

    Parameters
    ----------
    form : QuadraticForm
    rows : Rows
        Inequalities on the columns of the form, and perhaps on more columns after them.
    n_always : int
        How many of the first groups are never dropped.
    units : ndarray, shape (n_groups,), optional
        What a group's cost is divided by; by default its dimension.
    """
    from covey.search.constraints.kernels import nested_minimisers  # compiled with the first constraint

    K, c, starts, parents = form
    rows = rows.on(np.arange(len(c)))
    sizes = np.diff(starts)
    units = np.maximum(sizes, 1.0) if units is None else units
    inverse, repeated = _inverse(K)
    w = np.ascontiguousarray((inverse @ c).T)
    nothing = NO_RISE * float(np.nan_to_num(np.abs((c.T * w).sum()), nan=0.0))
    listed = [list(some) for some in parents] or [[] for _ in sizes]
    flat = np.array([p for some in listed for p in some], dtype=np.intp)
    dropped, W = nested_minimisers(
        inverse, w, starts, units, n_always, np.bincount(flat, minlength=sizes.size), flat,
        offsets(np.array([len(some) for some in listed], dtype=np.intp)), rows.G, rows.h,
        *rows.spans, REPEATED_TIE if repeated else TIE, nothing,
    )  # fmt: skip
    return dropped.tolist(), rows.kept(W).transpose(0, 2, 1)


def ridges_within(
    quadratic: Quadratic,
    M: FloatArray,
    dropped: Sequence[int],
    tried: Sequence[int],
    penalties: Sequence[float],
    rows: Rows,
) -> FloatArray:
    """Minimisers with ``penalty w'Mw/2`` added under inequalities, after the first drops of an elimination.

    Parameters
    ----------
    quadratic : Quadratic
    M : ndarray, shape (k, k)
    dropped : sequence of int
        The groups in the order in which they are dropped.
    tried : sequence of int
        After how many drops the minimiser is wanted.
    penalties : sequence of float
    rows : Rows
        As in `eliminate_within`.

    Returns
    -------
    ndarray, shape (n_tried * n_penalties, n_outputs, k)
    """
    from covey.search.constraints.kernels import nested_ridges

    # groups that are dropped first come last, so that what is left is on the first columns
    order = [*sorted(set(range(quadratic.starts.size - 1)) - set(dropped)), *reversed(dropped)]
    lengths = offsets(np.diff(quadratic.starts)[order])[len(order) - np.array(tried)]
    at = quadratic.positions(order)[: lengths.max(initial=0)]
    inside, some = np.ix_(at, at), Rows(np.ascontiguousarray(rows.G[:, at]), rows.h)
    W = nested_ridges(
        quadratic.K[inside], M[inside], np.array(penalties), np.ascontiguousarray(quadratic.c[at].T), lengths,
        some.G, some.h, *some.spans,
    )  # fmt: skip
    out = np.zeros((*W.shape[:-1], len(quadratic.c)))
    out[..., at] = some.kept(W)
    return out.reshape(len(tried) * len(penalties), *out.shape[2:])


def _inverse(K: FloatArray) -> tuple[FloatArray, bool]:
    """The inverse of a Gram matrix, and whether columns repeat others, so that it has few digits."""
    if len(K) == 0:
        return K, False
    diagonal = np.diag(K).copy()
    diagonal[diagonal <= SMALLEST] = 1.0
    for jitter in (JITTER, MORE_JITTER):
        S = K.copy()
        S.flat[:: len(S) + 1] += jitter * diagonal
        factor, failed = dpotrf(S.T, lower=1, overwrite_a=1)
        inverse = np.linalg.inv(K + np.diag(jitter * diagonal)) if failed else dpotri(factor, lower=1)[0]
        if float((np.diag(inverse) * diagonal).max(initial=0.0)) <= LARGEST:
            break
    if not failed:  # only the part below the diagonal has been computed
        inverse = np.tril(inverse)
        inverse += np.tril(inverse, -1).T
    return np.ascontiguousarray(inverse), jitter > JITTER
