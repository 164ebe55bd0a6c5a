"""Block coherence of a design: the two numbers of the paper's assumption, exact, without the p x p Gram."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from covey.designs import Design
from covey.groups import Groups
from covey.paper.theory.blocks import Span, column_norms, gram_blocks, read_design
from covey.validation import FloatArray, IntArray

# A 1024 x 1024 block of the Gram is 8 MiB: large enough for full BLAS speed, small enough to stay in cache.
BLOCK_COLUMNS = 1024

# Bounds are compared with this relative slack, so that rounding in a bound never prunes a true maximum.
SLACK = 1 + 1e-12


@dataclass(frozen=True)
class Coherence:
    """The result of `coherence`: `delta_in` and `delta_out`, and their profile over the groups.

    `inner` has each group's deviation ``norm(X_l'X_l/n - I)``, `outer` its largest cross norm ``norm(X_l'X_m/n)`` with
    another group, and `partner` the position of that group, or -1 if there is none; `n` is the number of rows.
    """

    delta_in: float
    delta_out: float
    inner: FloatArray
    outer: FloatArray
    partner: IntArray
    groups: Groups
    n: int

    @property
    def worst_group(self) -> Hashable:
        """The name of the group that attains `delta_in`."""
        return self.groups.names[int(np.argmax(self.inner))]

    @property
    def worst_pair(self) -> tuple[Hashable, Hashable] | None:
        """The names of the two groups that attain `delta_out`; None with a single group."""
        pairs = self.worst_pairs(1)
        return pairs[0][:2] if pairs else None

    def worst_pairs(self, k: int = 5) -> list[tuple[Hashable, Hashable, float]]:
        """Up to `k` pairs of groups with their cross norms, largest first, each the worst pair of one of its groups."""
        order = np.argsort(-self.outer, kind="stable")
        found: dict[tuple[int, int], float] = {}
        for l in order:
            m = int(self.partner[l])
            if m >= 0:
                found.setdefault((min(int(l), m), max(int(l), m)), float(self.outer[l]))
            if len(found) == k:
                break
        names = self.groups.names
        return [(names[l], names[m], value) for (l, m), value in found.items()]

    def to_frame(self) -> pd.DataFrame:
        """One row per group: size, inner deviation, largest cross norm and the corresponding group."""
        names = self.groups.names
        partner = [names[m] if m >= 0 else None for m in self.partner]
        columns = {"group": list(names), "size": self.groups.sizes, "inner": self.inner, "outer": self.outer}
        return pd.DataFrame({**columns, "partner": partner})

    def __str__(self) -> str:
        pair = self.worst_pair
        out = f"groups {pair[0]!r} and {pair[1]!r}" if pair else "a single group"
        return (
            f"coherence of {self.n} rows, {self.groups!r}\n"
            f"  delta_in  = {self.delta_in:.6g}  (group {self.worst_group!r})\n"
            f"  delta_out = {self.delta_out:.6g}  ({out})"
        )


def coherence(X: object, groups: object = None, *, block_columns: int = BLOCK_COLUMNS) -> Coherence:
    """Within- and between-group coherence of a design, exact (the paper's Assumption, equations in and out).

        delta_in  = max_l      norm(X_l'X_l/n - I)
        delta_out = max_{l!=m} norm(X_l'X_m/n)          (spectral norms)

    The Gram is visited in blocks and never stored. A pair's spectral norm is computed only if its Frobenius norm
    exceeds the current maximum of one of its two groups, which keeps every maximum exact and skips most pairs.

    X, dense or sparse, is used as given: standardise or orthonormalise first if the fit does. Memory is about
    ``8 * block_columns**2`` bytes besides X. A group with more columns than rows, or with a column of zeros, has
    delta_in of at least 1: its Gram is singular.

    >>> X = np.sqrt(4) * np.eye(4)
    >>> X[0, 3] = 0.5
    >>> result = coherence(X, 2)
    >>> result.delta_in, result.delta_out, result.worst_pair
    (0.0625, 0.25, (0, 1))
    """
    X, groups = read_design(X, groups)
    n, L, scale = X.shape[0], groups.n_groups, _scale(X)
    outer2, partner, inner = np.zeros(L), np.full(L, -1, dtype=np.intp), np.empty(L)
    for left, right, C in gram_blocks(X, groups, scale, block_columns):
        if left is right:
            inner[left.first : left.last] = group_deviations(C, left.starts, scale)
        _raise_profile(C, left, right, outer2, partner)
    # if every pair is orthogonal the partner is arbitrary: take the first other group
    if L > 1:
        partner[partner < 0] = np.where(np.flatnonzero(partner < 0) == 0, 1, 0)
    outer = _rescale(np.sqrt(outer2), scale)
    return Coherence(float(inner.max()), float(outer.max()), inner, outer, partner, groups, n)


def coherence_matrix(X: object, groups: object = None, *, block_columns: int = BLOCK_COLUMNS) -> FloatArray:
    """Every spectral norm at once: ``norm(X_l'X_m/n)`` off the diagonal, ``norm(X_l'X_l/n - I)`` on it.

    For heat maps: shape (n_groups, n_groups), no pruning. Use `coherence` if the largest values are enough.

    >>> coherence_matrix([[2.0, 0.0], [0.0, 1.0]]).tolist()
    [[1.0, 0.0], [0.0, 0.5]]
    """
    X, groups = read_design(X, groups)
    scale = _scale(X)
    norms = np.empty((groups.n_groups, groups.n_groups))
    for left, right, C in gram_blocks(X, groups, scale, block_columns):
        shape = left.last - left.first, right.last - right.first
        a, b = (index.ravel() for index in np.indices(shape))
        values = np.sqrt(_squared_norms(C, left, right, a, b, np.full(a.size, -1.0))).reshape(shape)
        values = _rescale(values, scale)
        norms[left.first : left.last, right.first : right.last] = values
        norms[right.first : right.last, left.first : left.last] = values.T
        if left is right:
            diagonal = np.arange(left.first, left.last)
            norms[diagonal, diagonal] = group_deviations(C, left.starts, scale)
    return norms


def group_deviations(C: FloatArray, starts: IntArray, scale: float = 1.0) -> FloatArray:
    """``norm(scale^2 C_ll - I)`` for each diagonal block of C; blocks of equal size are solved together."""
    sizes = np.diff(starts)
    out = np.empty(sizes.size)
    for size in np.unique(sizes):
        which = np.flatnonzero(sizes == size)
        index = starts[which][:, None] + np.arange(size)
        stacked = C[index[:, :, None], index[:, None, :]]
        eigenvalues = np.linalg.eigvalsh(stacked)
        # rescale the eigenvalues, not the matrix: 1 is subtracted once, and a huge scale cannot overflow early
        out[which] = np.abs(_rescale(eigenvalues, scale) - 1.0).max(axis=1)
    return out


def _raise_profile(C: FloatArray, left: Span, right: Span, outer2: FloatArray, partner: IntArray) -> None:
    """Raise the largest squared cross norm of every group, and its partner, by the pairs of one block."""
    fro2 = np.add.reduceat(np.add.reduceat(C * C, left.starts[:-1], axis=0), right.starts[:-1], axis=1)
    if left is right:
        fro2 = np.triu(fro2, 1)
    # the most promising partner of every group first: it lifts the bar for all others
    a, b = np.arange(fro2.shape[0]), np.arange(fro2.shape[1])
    first = np.zeros(fro2.shape, dtype=bool)
    first[a, fro2.argmax(axis=1)] = first[fro2.argmax(axis=0), b] = True
    for wanted in (first, ~first):
        floor = np.minimum.outer(outer2[left.first : left.last], outer2[right.first : right.last])
        a, b = np.nonzero(wanted & (fro2 * SLACK > floor))
        squared = _squared_norms(C, left, right, a, b, floor[a, b])
        # where several partners raise a group, the largest comes last and stays
        order = np.argsort(squared, kind="stable")
        l, m, squared = left.first + a[order], right.first + b[order], squared[order]
        for one, other in ((l, m), (m, l)):
            higher = squared > outer2[one]
            outer2[one[higher]], partner[one[higher]] = squared[higher], other[higher]


def _squared_norms(C: FloatArray, left: Span, right: Span, a: IntArray, b: IntArray, floor: FloatArray) -> FloatArray:
    """Squared spectral norms of the pairs (a, b) of a block; zero where a Schatten norm shows it to be below `floor`.

    The Frobenius norms of ``M = A A'`` and of M^2, the Schatten 4 and 8 norms of the pair's A, are never below its
    spectral norm. Pairs of equal shape are handled together.
    """
    out = np.zeros(a.size)
    heights, widths = np.diff(left.starts)[a], np.diff(right.starts)[b]
    for height, width in {(int(h), int(w)) for h, w in zip(heights, widths, strict=True)}:
        which = np.flatnonzero((heights == height) & (widths == width))
        i, j = left.starts[a[which], None] + np.arange(height), right.starts[b[which], None] + np.arange(width)
        A = C[i[:, :, None], j[:, None, :]]
        if min(height, width) == 1:
            out[which] = np.einsum("kij,kij->k", A, A)
            continue
        M = A @ A.swapaxes(1, 2) if height <= width else A.swapaxes(1, 2) @ A
        near = np.sqrt(np.einsum("kij,kij->k", M, M)) * SLACK > floor[which]
        which, M = which[near], M[near]
        near = np.sqrt(np.linalg.norm(M @ M, axis=(1, 2))) * SLACK > floor[which]
        out[which[near]] = np.maximum(np.linalg.eigvalsh(M[near])[:, -1], 0.0)
    return out


def _scale(X: Design) -> float:
    """A power of two near the largest column norm: dividing by it is exact and prevents overflow of squares."""
    largest = float(column_norms(X).max())
    if largest == 0.0 or 2.0**-40 < largest < 2.0**40:
        return 1.0
    return float(2.0 ** np.floor(np.log2(largest)))


def _rescale(values: FloatArray, scale: float) -> FloatArray:
    """Undo the division by `scale` in a quantity quadratic in X; overflow gives infinity."""
    with np.errstate(over="ignore"):
        return values * scale * scale
