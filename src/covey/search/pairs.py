"""Pairs of thousands of variables: millions of products in the race, none of them stored.

The gradient of a loss on all products of two columns is one matrix product, ``Z' diag(score) Z``. It is computed in
single precision, and only tells which pairs may wake soon. Those become groups like all others (`Posed.meet`), with
sums that are computed anew in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from covey.arrays import host, like
from covey.designs import Design
from covey.layout import alike, offsets
from covey.validation import FloatArray

__all__ = ["AllPairs", "PairRace", "PairRates"]

# Numbers of a tile of the matrix of all pairs (16 MiB, or 512 MiB on a device).
TILE, DEVICE_TILE = 2**22, 2**27

# A pair becomes a group when its sum is this close to waking: single precision has seven digits.
SLACK = 1e-3

# Columns of pairs that become groups at a time: those that come next, too, or the path would go back for each of them.
GROWTH = 60

# A product whose variance is below this share of its square is constant.
CONSTANT = 1e-5

# The first of some neighbours among the members, and the one after the last.
Run: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class AllPairs:
    """All pairs of some main groups, the members, but those left out.

    A member has one column, or those of a category: indicators of its levels, each less its mean.

    Attributes
    ----------
    groups : ndarray of int, shape (n_members,)
    first, sizes : ndarray of int, shape (n_members,)
        The first column of each member in the design, and the number of its columns, which are neighbours.
    family : int
        The family of a pair.
    left_out : tuple of pairs of int
        Positions among the members, the smaller one first.
    """

    groups: NDArray[np.intp]
    first: NDArray[np.intp]
    sizes: NDArray[np.intp]
    family: int
    left_out: tuple[tuple[int, int], ...] = ()

    def __len__(self) -> int:
        return self.groups.size * (self.groups.size - 1) // 2 - len(self.left_out)

    @property
    def dimensions(self) -> NDArray[np.intp]:
        """The dimension of each member: the effects of the levels of a category have mean zero."""
        return np.maximum(self.sizes - 1, 1)

    def count_dimensions(self) -> NDArray[np.intp]:
        """The number of pairs of each dimension, if all levels of two categories occur together."""
        distinct, n_members = np.unique(self.dimensions, return_counts=True)
        n_pairs = np.triu(np.outer(n_members, n_members), 1) + np.diag(n_members * (n_members - 1) // 2)
        counts = np.zeros(distinct[-1] ** 2 + 1, dtype=np.intp)
        np.add.at(counts, np.outer(distinct, distinct), n_pairs)
        a, b = np.array(self.left_out, dtype=np.intp).reshape(-1, 2).T
        np.subtract.at(counts, self.dimensions[a] * self.dimensions[b], 1)
        return counts

    def products(self, pairs: Sequence[tuple[int, int]]) -> tuple[NDArray[np.intp], NDArray[np.intp], list[int]]:
        """The two factors of each product of the columns of some pairs, and the number of products of each pair."""
        columns = {a: np.arange(self.first[a], self.first[a] + self.sizes[a]) for pair in pairs for a in pair}
        left = [np.repeat(columns[a], columns[b].size) for a, b in pairs]
        right = [np.tile(columns[b], columns[a].size) for a, b in pairs]
        return np.concatenate(left), np.concatenate(right), [one.size for one in left]


class PairRates:
    """The rates of all pairs of numbers that are not groups yet, and upper bounds of those of pairs with categories.

    A pair with a category consists of functions on its cells, which are pairs of levels, or levels times a number. The
    products of the indicators `R` have a diagonal matrix of second moments `D`, from which centring takes ``m m'``. So
    the squared norm of the gradient ``g = R' score`` on all functions on the cells is ``g' (D - m m')^-1 g``, at most
    ``g' D^-1 g / (1 - m' D^-1 m)``; if constants are among these functions, it is ``g' D^-1 g``. The products of the
    columns `Z` differ from those of `R` by main effects, which are no part of the pair: with ``g = Z' score`` the same
    formula bounds the norm on the pair, sharply if the two variables are independent. It does so only if all cells have
    rows, and if constants are not among the functions on the cells of a number.

    Attributes
    ----------
    Z, R : array, shape (n_rows, n_columns)
        The columns, in single precision, where X lives, and those with indicators in place of levels.
    gains : array, shape (n_columns, n_columns)
        Bound of the rate per unit of the gradient, above the diagonal; zero for pairs that are groups already.
    is_raw : array, shape (n_members, n_members), or None
        One for pairs whose gradients are those on R.
    """

    def __init__(self, design: Design, pairs: AllPairs, q: FloatArray, intercept: bool, weights: FloatArray) -> None:
        # members of equal size are neighbours, so that their cells are an array of four axes
        self.order = np.argsort(pairs.sizes, kind="stable")
        self.sizes, self.dimensions = pairs.sizes[self.order], pairs.dimensions[self.order]
        self.starts, self.intercept = offsets(self.sizes), intercept
        columns = np.repeat(pairs.first[self.order] - self.starts[:-1], self.sizes) + np.arange(self.starts[-1])
        Z = design.device_columns(columns)
        self.R = self.Z = Z.astype(np.float32) if isinstance(Z, np.ndarray) else Z.float()
        self.gains, self.is_raw = self._zeros(columns.size), None
        n_numbers = int((self.sizes == 1).sum())
        if n_numbers < columns.size:
            self.R, self.is_raw = self.Z + 0, self.zeros()
            self.R[:, n_numbers:] = self.Z[:, n_numbers:] > 0
        by_dimension, share = (like(np.asarray(values, dtype=np.float32), self.Z) for values in (weights, q))
        squares = self.R * self.R
        for rows, runs in self.tiles():
            own, after = self._columns(rows), slice(self.starts[rows[0]], None)
            D = (squares[:, own] * share[:, None]).T @ squares[:, after]
            M = (self.R[:, own] * share[:, None]).T @ self.R[:, after]
            for run in runs:
                self._set_gains(rows, run, self._cells(D, rows, run), self._cells(M, rows, run), by_dimension)
        if self.is_raw is not None and not self.is_raw.any():
            self.is_raw = None
        self.leave_out(pairs.left_out)

    def _set_gains(self, rows: Run, run: Run, D: Any, M: Any, weights: Any) -> None:
        """The gains of some pairs, given the second and the first moments of their cells."""
        first, second = rows[0], run[0]
        has_levels, has_number = bool(self.sizes[second] > 1), bool(self.sizes[first] == 1)
        dimension = int(self.dimensions[first] * self.dimensions[second])
        occupied = D > 0
        roots = occupied / (D + ~occupied) ** 0.5
        left = 1.0 - float(self.intercept) * ((M * roots) ** 2).sum((1, 3))
        constant, n_empty = left <= CONSTANT, (~occupied).sum((1, 3))
        gains = (constant * float(has_levels) + ~constant) / (abs(left) * ~constant + constant) ** 0.5
        # a cell without rows takes away one dimension at most, and weights grow with the dimension
        gains = gains / weights[(dimension - n_empty).clip(1)]
        # a pair is counted once
        upper = np.arange(*rows)[:, None] < np.arange(*run)
        gains = gains * like(upper.astype(np.float32), self.Z)
        if self.is_raw is not None and has_levels:
            self.is_raw[slice(*rows), slice(*run)] = (n_empty > 0) | (constant & has_number)
        cells = roots * gains[:, None, :, None]
        self.gains[self._columns(rows), self._columns(run)] = cells.reshape(D.shape[0] * D.shape[1], -1)

    def zeros(self) -> Any:
        """A matrix for all pairs, where X lives."""
        return self._zeros(self.sizes.size)

    def _zeros(self, n: int) -> Any:
        return np.zeros((n, n), dtype=np.float32) if isinstance(self.Z, np.ndarray) else self.Z.new_zeros((n, n))

    def _columns(self, run: Run) -> slice:
        return slice(self.starts[run[0]], self.starts[run[1]])

    def _cells(self, tile: Any, rows: Run, run: Run) -> Any:
        """The part of a tile of rows that belongs to the pairs with a run; (members, columns, members, columns)."""
        (a, b), (c, d), origin = rows, run, self.starts[rows[0]]
        part = tile[:, self.starts[c] - origin : self.starts[d] - origin]
        return part.reshape(b - a, int(self.sizes[a]), d - c, int(self.sizes[c]))

    def tiles(self) -> Iterator[tuple[Run, list[Run]]]:
        """Members of equal size whose rows of the matrix are a tile, and those of the columns from there on."""
        most = (TILE if isinstance(self.Z, np.ndarray) else DEVICE_TILE) // self.Z.shape[1]
        runs = [(int(some[0]), int(some[-1]) + 1) for _, some in alike(self.sizes)]
        for k, (first, last) in enumerate(runs):
            step = max(1, most // int(self.sizes[first]))
            for a in range(first, last, step):
                yield (a, min(a + step, last)), [(a, last), *runs[k + 1 :]]

    def add(self, sums: Any, score: FloatArray, step: float, weight: FloatArray) -> float:
        """Add what pairs accumulate while the model has this score, for a time; return the largest sum.

        Parameters
        ----------
        sums : array, shape (n_members, n_members)
        score : ndarray, shape (n_rows, n_outputs)
        step : float
        weight : ndarray, shape (n_rows,)
            The weights of the training rows.
        """
        if self.intercept:  # columns are centred
            score = score - np.outer(weight, score.sum(axis=0)) / weight.sum()
        outputs = [like(output.astype(np.float32)[:, None], self.Z) for output in score.T]
        largest = 0.0
        for rows, runs in self.tiles():
            gradients = [self._gradient(self.Z, rows, r) for r in outputs]
            raw = [self._gradient(self.R, rows, r) for r in outputs] if self.is_raw is not None else []
            gains = self.gains[self._columns(rows), self.starts[rows[0]] :]
            for run in runs:
                place = (slice(*rows), slice(*run))
                rates: Any = None
                for k, gradient in enumerate(gradients):
                    G = self._cells(gradient, rows, run)
                    if self.is_raw is not None and self.sizes[run[0]] > 1:
                        is_raw = self.is_raw[place][:, None, :, None]
                        G = G * (1 - is_raw) + self._cells(raw[k], rows, run) * is_raw
                    G *= self._cells(gains, rows, run)
                    G *= G
                    # a sum over one cell would take as long as the product
                    squares = G[:, 0, :, 0] if G.shape[1] == G.shape[3] == 1 else G.sum((1, 3))
                    rates = squares if rates is None else rates + squares
                rates **= 0.5
                rates *= float(step)
                sums[place] += rates
                largest = max(largest, float(sums[place].max()))
        return largest

    def _gradient(self, columns: Any, rows: Run, score: Any) -> Any:
        """The gradient on a tile of all products of these columns."""
        return (columns[:, self._columns(rows)] * score).T @ columns[:, self.starts[rows[0]] :]

    def largest(self, sums: Any, least: float) -> list[tuple[int, int]]:
        """The pairs with the largest sums: those above `least`, and some more."""
        m, flat = self.sizes.size, sums.reshape(-1)
        k = min(GROWTH, m * m)
        if isinstance(sums, np.ndarray):
            which = np.concatenate(
                [np.argpartition(flat, flat.size - k)[flat.size - k :], np.flatnonzero(flat > least)]
            )
        else:
            which = np.concatenate([host(flat.topk(k).indices), host((flat > least).nonzero()[:, 0])]).astype(np.intp)
        which = np.unique(which)
        found = host(flat[which])
        order = np.argsort(-found, kind="stable")[: int((found > 0).sum())]
        a, b = np.divmod(which[order], m)
        n_columns = np.cumsum(self.sizes[a] * self.sizes[b])
        near = (found[order] > least) | (n_columns - n_columns[:1] < GROWTH)
        pairs = np.sort(np.column_stack([self.order[a], self.order[b]])[near], axis=1)
        return [(int(i), int(j)) for i, j in pairs]

    def place(self, pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Where pairs of members are in a matrix for all pairs."""
        rank = np.argsort(self.order)
        a, b = np.sort(rank[np.array(pairs, dtype=np.intp).reshape(-1, 2)], axis=1).T
        return list(zip(a.tolist(), b.tolist(), strict=True))

    def leave_out(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Take pairs out of the matrix because they have become groups."""
        for a, b in self.place(pairs):
            self.gains[self._columns((a, a + 1)), self._columns((b, b + 1))] = 0.0


class PairRace:
    """The sums of all pairs that are not groups yet, on every split."""

    def __init__(self, rates: PairRates, n_splits: int) -> None:
        self.rates = rates
        self.sums: list[Any] = [None] * n_splits
        self._ahead: dict[int, Any] = {}

    def soonest(self, score: FloatArray, weight: FloatArray) -> list[tuple[int, int]]:
        """The pairs that would wake first if the model did not change."""
        sums = self.rates.zeros()
        self.rates.add(sums, score, 1.0, weight)
        return self.rates.largest(sums, np.inf)

    def first_late(
        self, split: int, scores: FloatArray, steps: FloatArray, weight: FloatArray
    ) -> tuple[int, list[tuple[int, int]]]:
        """The first of some events at which a pair should have woken, and the pairs that come next then.

        Parameters
        ----------
        scores : ndarray, shape (n_rows, n_events, n_outputs)
            Those of the models before the events.
        steps : ndarray, shape (n_events,)
            The time from one event to the next.
        """
        sums = self._copy(split)
        for event, step in enumerate(steps):
            if step and self.rates.add(sums, scores[:, event], step, weight) > 1 - SLACK:
                return event, self.rates.largest(sums, 1 - SLACK)
        self._ahead[split] = sums
        return steps.size, []

    def accept(self, split: int, scores: FloatArray, steps: FloatArray, weight: FloatArray, n_events: int) -> None:
        """Keep the sums after the first of these events."""
        ahead = self._ahead.pop(split, None)
        if n_events < steps.size or ahead is None:
            ahead = self._copy(split)
            for event in range(n_events):
                self.rates.add(ahead, scores[:, event], steps[event], weight)
        self.sums[split] = ahead

    def _copy(self, split: int) -> Any:
        sums = self.sums[split]
        if sums is None:
            return self.rates.zeros()
        return sums.copy() if isinstance(sums, np.ndarray) else sums.clone()

    def leave_out(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Forget the sums of pairs that have become groups."""
        self.rates.leave_out(pairs)
        places = self.rates.place(pairs)
        for sums in self.sums:
            for place in places if sums is not None else ():
                sums[place] = 0.0
