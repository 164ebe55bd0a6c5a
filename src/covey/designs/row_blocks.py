"""Computations on one block of rows, and how results of blocks are combined.

Everything that the method needs from X is a sum over rows, so a block is an ordinary design by itself, and the workers
of a cluster run only these functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from covey.designs.dense import DenseDesign
from covey.designs.protocol import Design, Moments, block_offsets
from covey.designs.sparse import SparseDesign

__all__ = [
    "Announced",
    "BlockMoments",
    "ChunkError",
    "Place",
    "Spread",
    "Summary",
    "add",
    "block_columns",
    "block_count",
    "block_extremes",
    "block_gram",
    "block_gram_parts",
    "block_keys",
    "block_largest",
    "block_moments",
    "block_predictions",
    "block_product",
    "block_residual_products",
    "block_response",
    "block_spread",
    "block_triangles",
    "combined",
    "join_moments",
    "join_spreads",
    "join_triangles",
    "largest_of",
    "least_of",
    "on_block",
    "summarise",
]

Array = NDArray[Any]


class ChunkError(ValueError):
    """A block that cannot be used; the message names it."""


class Place(NamedTuple):
    """The position of a block of rows."""

    number: int
    first: int
    n_rows: int


@dataclass(frozen=True)
class Announced:
    """The expected shape and type of every block, for checks and messages."""

    n_columns: int
    dtype: np.dtype[Any]
    columns: tuple[str, ...] | None
    name: str

    def title(self, place: Place) -> str:
        """The name of a block in messages."""
        return f"Chunk {place.number} of {self.name} (rows {place.first} to {place.first + place.n_rows - 1})"

    def open(self, block: Any, place: Place) -> Design:
        """The block as a design; an error names the block if it is not as expected."""
        title = self.title(place)
        block = block if sp.issparse(block) else np.asarray(block)
        if block.dtype != self.dtype:
            raise ValueError(
                f"{title} holds {block.dtype}, but {self.name} was declared as {self.dtype}; "
                f"convert it where it is read, or with {self.name}.astype('float64')."
            )
        if block.shape != (place.n_rows, self.n_columns):
            raise ValueError(f"{title} has shape {block.shape}, not {(place.n_rows, self.n_columns)} as declared.")
        kind = SparseDesign if sp.issparse(block) else DenseDesign
        return kind(block, columns=self.columns, name=title)


def on_block(function: Callable[..., Any], block: Any, place: Place, vectors: list[Array], common: Any) -> Any:
    """One task: a function of a block, the blocks of some row vectors, and arguments common to all blocks."""
    announced, shared = common
    try:
        return function(announced.open(block, place), *vectors, *shared)
    except ValueError as error:
        raise ChunkError(str(error)) from error


def combined(combine: Callable[..., Any], parts: list[Any], common: tuple[Any, ...]) -> Any:
    """One task: combine the results of several blocks, given arguments common to all such tasks."""
    return combine(parts, *common)


@dataclass(frozen=True)
class BlockMoments:
    """Moments about the block's own means, and the block's share of the weight."""

    weight: float
    y_mean: float
    moments: Moments


def block_moments(
    design: Design, y: Array, q: Array, members: Array, starts: Array, centre: bool, scale: Array
) -> BlockMoments | None:
    """The moments of one block; None for a block without weight."""
    weight = float(q.sum())
    if weight == 0:
        return None
    share = q / weight
    moments = design.moments(y, share, members, starts, centre=centre, scale=scale)
    return BlockMoments(weight, float(share @ y), moments)


def join_moments(parts: list[BlockMoments | None], starts: Array, scale: Array) -> BlockMoments | None:
    """The moments of several blocks together, about their common means."""
    held = [part for part in parts if part is not None]
    if not held:
        return None
    weight = sum(part.weight for part in held)
    first = held[0].moments.mean
    # differences from the first block's means: exactly zero for a constant column
    mean = first + sum((part.weight / weight * (part.moments.mean - first) for part in held), np.zeros_like(first))
    y_mean = sum(part.weight / weight * part.y_mean for part in held)
    size = np.diff(starts)
    offsets = block_offsets(starts)
    rows, columns = _entries(starts, size)
    variance, correlation, blocks = np.zeros(mean.size), np.zeros(mean.size), np.zeros(offsets[-1])
    with np.errstate(over="ignore", invalid="ignore"):
        for part in held:
            share, own = part.weight / weight, part.moments
            apart = (own.mean - mean) * scale
            variance += share * (own.variance + apart * apart)
            correlation += share * (own.correlation + apart * (part.y_mean - y_mean))
            blocks += share * (own.blocks + apart[rows] * apart[columns])
    return BlockMoments(weight, y_mean, Moments(mean, variance, correlation, blocks, offsets))


def _entries(starts: Array, size: Array) -> tuple[Array, Array]:
    """The row and the column of every entry of the flat Gram blocks."""
    offsets = block_offsets(starts)
    lengths = np.diff(offsets)
    width = np.repeat(size, lengths)
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    left = np.repeat(starts[:-1], lengths)
    return left + within // np.maximum(width, 1), left + within % np.maximum(width, 1)


def block_gram(design: Design, q: Array, columns: Array, loadings: Array, offset: Array) -> Array:
    """The block's part of ``Z' diag(q) X``, bordered by its parts of ``Z' q`` on the right and ``q' X`` below."""
    Z = design.take(columns) @ loadings - offset
    out = np.zeros((Z.shape[1] + 1, design.shape[1] + 1), dtype=design.dtype)
    out[:, :-1] = design.correlate(np.vstack([Z.T * q, q]))
    out[:-1, -1] = q @ Z
    return out


def block_residual_products(
    design: Design, y: Array, weights: Array, which: Array, columns: Array, coefs: Array, intercepts: Array
) -> Array:
    """The block's part of the products of residuals with X; weights are the columns of a matrix."""
    return design.residual_products(y, list(weights.T), which, columns, coefs, intercepts)


def block_gram_parts(design: Design, y: Array, weights: Array, columns: Array, shift: Array) -> Array:
    """The block's part of the second moments of some columns in several parts of the rows."""
    return design.gram_parts(columns, shift, y, list(weights.T))


def block_product(design: Design, rows: Array) -> Array:
    """The block's part of ``rows' X``."""
    return design.correlate(rows.T)


def block_columns(design: Design, columns: Array) -> Array:
    """Some columns of the block."""
    return np.asarray(design.take(columns), dtype=np.float64)


def block_predictions(design: Design, columns: Array, coefs: Array, intercepts: Array) -> Array:
    """The predictions of several models for the block."""
    return np.asarray(design.predict(columns, coefs, intercepts), dtype=np.float64)


@dataclass(frozen=True)
class Spread:
    """Weight, means and centred second moments of some columns and, last, of a residual."""

    weight: float
    mean: Array
    gram: Array


def block_spread(
    design: Design, y: Array, h: Array, columns: Array, coef: Array, intercept: float, unit: float
) -> Spread:
    """The spread of some columns and of ``(y - X[:, columns] coef - intercept) / unit`` on one block."""
    used = h > 0
    X = design.take(columns)[used]
    A = np.column_stack([X, y[used] / unit - X @ (coef / unit) - intercept / unit])
    weight = float(h.sum())
    if weight == 0:
        return Spread(0.0, np.zeros(A.shape[1]), np.zeros((A.shape[1], A.shape[1])))
    share = h[used] / weight
    mean = share @ A
    A -= mean
    return Spread(weight, mean, (A.T * share) @ A)


def join_spreads(parts: list[Spread]) -> Spread:
    """The spread of several blocks together."""
    weight = sum(part.weight for part in parts)
    if weight == 0:
        return parts[0]
    mean = sum((part.weight / weight * part.mean for part in parts), np.zeros_like(parts[0].mean))
    gram = np.zeros_like(parts[0].gram)
    for part in parts:
        apart = part.mean - mean
        gram += part.weight / weight * (part.gram + np.outer(apart, apart))
    return Spread(weight, mean, gram)


def block_triangles(
    design: Design, q: Array, pieces: list[Array], means: list[Array], gains: list[Array]
) -> list[Array]:
    """The R factors of some columns of the block."""
    return design.triangles(q, pieces, means, gains)


def join_triangles(parts: list[list[Array]]) -> list[Array]:
    """The R factors of several blocks together, computed from their stacked R factors."""
    return [np.asarray(np.linalg.qr(np.concatenate(own), mode="r")) for own in zip(*parts, strict=True)]


def block_extremes(design: Design, weight: Array, columns: Array) -> Array:
    """The least values of some columns of the block, and of their negatives, over the rows of positive weight."""
    own = block_columns(design, columns)[weight > 0]
    return np.stack([own.min(axis=0, initial=np.inf), -own.max(axis=0, initial=-np.inf)])


def block_largest(design: Design) -> Array:
    """The largest absolute value of each column."""
    return design.largest() if design.shape[0] else np.zeros(design.shape[1])


def block_response(y: Array, q: Array) -> tuple[float, float, float, float]:
    """The weight and largest absolute value of a block of the response, and its mean and variance in units of it."""
    weight = float(q.sum())
    largest = float(np.abs(y, where=q > 0, out=np.zeros(y.size)).max(initial=0.0))
    if weight == 0 or largest == 0:
        return weight, largest, 0.0, 0.0
    share, unit = q / weight, y / largest
    mean = float(share @ unit)
    return weight, largest, mean, float(share @ (unit - mean) ** 2)


def block_count(weight: Array) -> tuple[float, float]:
    """The sum of the weights of a block, and the least positive one."""
    return float(weight.sum()), float(weight.min(initial=np.inf, where=weight > 0))


def add(parts: list[Array]) -> Array:
    """The sum of several blocks' results, always in the same order."""
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


def largest_of(parts: list[Array]) -> Array:
    """The largest of several blocks' results, column by column."""
    return np.maximum.reduce(parts)


def least_of(parts: list[Array]) -> Array:
    """The smaller of several blocks' results, entry by entry."""
    return np.minimum.reduce(parts)


def block_keys(design: Design, columns: Array) -> Array:
    """A hash of some columns of each row of the block."""
    return design.row_keys(columns)


class Summary(NamedTuple):
    """Facts about a block of a row vector that are checked before it is used."""

    n_bad: int
    first_bad: int
    least: float
    largest: float
    scaled_sum: float


def summarise(values: Array) -> Summary:
    """Summarise a block: non-finite entries, the least and largest value, and the sum in units of the largest."""
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size or values.size == 0:
        return Summary(bad.size, int(bad[0]) if bad.size else 0, 0.0, 0.0, 0.0)
    largest = float(values.max())
    return Summary(0, 0, float(values.min()), largest, float((values / largest).sum()) if largest > 0 else 0.0)
