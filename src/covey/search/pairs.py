"""Pairs of thousands of variables: millions of products in the race, none of them stored.

The gradient of a loss on all products of two columns is one matrix product, ``Z' diag(score) Z``. It is computed in
single precision, and only tells which pairs may wake soon. Those become groups like all others (`Posed.meet`), with
sums that are computed anew in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.designs import Design
from covey.search.arrays import host, like
from covey.validation import FloatArray

__all__ = ["AllPairs", "PairRace", "PairRates"]

# Numbers of a tile of the matrix of all pairs (16 MiB, or 512 MiB on a device).
TILE, DEVICE_TILE = 2**22, 2**27

# A pair becomes a group when its sum is this close to waking: single precision has seven digits.
SLACK = 1e-3

# Pairs that become groups at a time: those that come next, too, or the path would go back for each of them.
GROWTH = 60

# A product whose variance is below this share of its square is constant.
CONSTANT = 1e-5


@dataclass(frozen=True)
class AllPairs:
    """All pairs of some main groups of one column each.

    Attributes
    ----------
    groups, columns : ndarray of int, shape (n_variables,)
        The main groups, and their columns in the design.
    family : int
        The family of a pair.
    """

    groups: NDArray[np.intp]
    columns: NDArray[np.intp]
    family: int

    def __len__(self) -> int:
        return self.groups.size * (self.groups.size - 1) // 2


class PairRates:
    """The rates of all pairs that are not groups yet.

    Attributes
    ----------
    Z : array, shape (n_rows, n_variables)
        The columns, in single precision, where X lives.
    gains : array, shape (n_variables, n_variables)
        Rate per unit of the gradient, above the diagonal; zero for pairs that are groups already.
    """

    def __init__(
        self, design: Design, columns: NDArray[np.intp], q: FloatArray, intercept: bool, weight: float
    ) -> None:
        Z = design.device_columns(columns)
        self.Z = Z.astype(np.float32) if isinstance(Z, np.ndarray) else Z.float()
        self.intercept, self.n_variables = intercept, columns.size
        self.gains = self.zeros()
        weights = like(np.asarray(q, dtype=np.float32)[:, None], self.Z)
        squares = self.Z * self.Z
        for a, b in self.tiles():
            second = (squares[:, a:b] * weights).T @ squares[:, a:]
            variance = second
            if intercept:
                variance = second - ((self.Z[:, a:b] * weights).T @ self.Z[:, a:]) ** 2
            varies = variance > CONSTANT * second
            gain = varies / (abs(variance) + (~varies)) ** 0.5 / weight
            # a pair is counted once
            self.gains[a:b, a:] = np.triu(gain, 1) if isinstance(gain, np.ndarray) else gain.triu(1)

    def zeros(self) -> Any:
        """A matrix for all pairs, where X lives."""
        p = self.Z.shape[1]
        return np.zeros((p, p), dtype=np.float32) if isinstance(self.Z, np.ndarray) else self.Z.new_zeros((p, p))

    def tiles(self) -> Iterator[tuple[int, int]]:
        """Ranges of rows of the matrix of all pairs."""
        p = self.Z.shape[1]
        step = max(1, (TILE if isinstance(self.Z, np.ndarray) else DEVICE_TILE) // p)
        return ((a, min(a + step, p)) for a in range(0, p, step))

    def add(self, sums: Any, score: FloatArray, step: float, weight: FloatArray) -> float:
        """Add what pairs accumulate while the model has this score, for a time; return the largest sum.

        Parameters
        ----------
        sums : array, shape (n_variables, n_variables)
        score : ndarray, shape (n_rows, n_outputs)
        step : float
        weight : ndarray, shape (n_rows,)
            The weights of the training rows.
        """
        if self.intercept:  # columns are centred
            score = score - np.outer(weight, score.sum(axis=0)) / weight.sum()
        largest = 0.0
        for a, b in self.tiles():
            squares: Any = 0.0
            for output in score.T:
                r = like(output.astype(np.float32)[:, None], self.Z)
                G = (self.Z[:, a:b] * r).T @ self.Z[:, a:]
                squares = abs(G) if score.shape[1] == 1 else squares + G * G
            rates = squares if score.shape[1] == 1 else squares**0.5
            rates *= self.gains[a:b, a:]
            rates *= float(step)
            sums[a:b, a:] += rates
            largest = max(largest, float(sums[a:b, a:].max()))
        return largest

    def largest(self, sums: Any, least: float) -> list[tuple[int, int]]:
        """The pairs with the largest sums: those above `least`, and some more."""
        p, flat = self.n_variables, sums.reshape(-1)
        k = min(GROWTH, p * p)
        if isinstance(sums, np.ndarray):
            which = np.concatenate(
                [np.argpartition(flat, flat.size - k)[flat.size - k :], np.flatnonzero(flat > least)]
            )
        else:
            which = np.concatenate([host(flat.topk(k).indices), host((flat > least).nonzero()[:, 0])]).astype(np.intp)
        found = np.unique(which)
        return [divmod(int(k), p) for k in found[host(flat[found]) > 0]]

    def leave_out(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Take pairs out of the matrix because they have become groups."""
        for a, b in pairs:
            self.gains[a, b] = 0.0


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
        for sums in self.sums:
            for a, b in pairs if sums is not None else ():
                sums[a, b] = 0.0
