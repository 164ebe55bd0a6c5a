"""Table: the rows of the groups that are most likely to wake next, in working coordinates, where X lives.

Paths work on these near groups. All others are checked now and then, by one product with X for many models at once
(`covey.search.paths`). A quadratic loss needs second moments only, so many rows per column are compressed, part by
part, to a root of their Gram matrix: rows with the same second moments, which every formula treats like rows of X.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpstrf

from covey.arrays import below, beside, host, like
from covey.designs import DenseDesign, Design
from covey.layout import offsets, spans
from covey.preprocess.factoring import times_factors
from covey.search.observations import Observations
from covey.search.posed import Posed
from covey.search.problem import Parts, Split, in_parts
from covey.validation import ArrayOrTensor, FloatArray

__all__ = ["HELD_OF_STREAM", "MOST_ROWS", "Table", "near_limits", "working_columns"]

# Near columns at the start: enough that few groups are missing, few enough to update at every event.
NEAR_COLUMNS = 500

# With up to this many columns, and at least half as many rows, all groups are near.
ALL_NEAR = 3000

# The most numbers of near columns held in memory (2 GiB), and the fewest near columns.
HELD, FEWEST_COLUMNS = 2**28, 50

# The same for an X that is streamed, if the loss is quadratic and does not need the rows themselves (256 MiB).
HELD_OF_STREAM = 2**25

# Rows are compressed from this many rows per column on; with fewer, it costs more than it saves.
ROWS_PER_COLUMN = 1.5

# Up to this many rows, ridges on all columns of a wide design are affordable; they need the rows themselves.
MOST_ROWS = 4000


def near_limits(n_rows: int) -> tuple[int, int]:
    """The number of near columns at the start, and the number of columns up to which all are near."""
    return NEAR_COLUMNS, max(2 * NEAR_COLUMNS, min(2 * n_rows, ALL_NEAR))


def _near_limits(posed: Posed) -> tuple[int, int]:
    """The same for a problem."""
    n, (some, every) = posed.design.shape[0], near_limits(posed.design.shape[0])
    if not posed.response.loss.quadratic:
        some, every = min(some, HELD // n), min(every, HELD // n)
    return some, every


class Table:
    """The working columns of the near groups on all training and scoring rows.

    Attributes
    ----------
    posed : Posed
    groups : ndarray of int
        The near groups, as positions among all groups.
    place : dict
        The position of each of them among the near ones.
    Z : array, shape (n_rows, n_columns)
        Their working columns, group by group.
    extras : ndarray, shape (n_rows, n_factors)
        The scores of common factors.
    response : Observations
        With weights for all rows.
    labels : ndarray of int, shape (n_rows,)
        The part of each row; -1 for rows of weight zero.
    compressed : bool
        Whether the rows are roots of Gram matrices instead of rows of X.
    version : int
        How often the rows have changed; predictors of different versions cannot be compared.
    kept : dict
        What the design keeps between checks of far groups.
    """

    def __init__(self, posed: Posed) -> None:
        self.posed, self.version = posed, 0
        self.kept: dict[str, Any] = {}
        self.Z: ArrayOrTensor = None
        # columns of a streamed X, by design: where they are, and their numbers
        self._held: dict[Design, tuple[NDArray[np.intp], FloatArray]] = {}
        self.groups = _nearest(posed)
        self._read()

    def dealt(self, parts: Parts) -> Table:
        """The same groups with the rows in other parts; rows of X are shared, not read again."""
        other = copy(self)
        other.posed, other.version, other._of_split, other.kept = self.posed.dealt(parts), 0, {}, {}
        self.kept.clear()  # other parts have other products, and these take much memory
        if self.compressed:
            other._read()
        else:
            other.labels = other.posed.labels
        return other

    @property
    def all_near(self) -> bool:
        """Whether all groups are near but late ones, which become near before a path that they may wake on."""
        n_late = len(self.posed.late)
        n_near = self.groups.size - (int(np.isin(self.posed.late, self.groups).sum()) if n_late else 0)
        return n_near == self.posed.ranks.size - n_late and self.posed.pairs is None

    @property
    def mains_near(self) -> bool:
        """Whether all main groups are near."""
        return int(np.count_nonzero(self.groups < self.posed.n_mains)) == self.posed.n_mains

    def columns(self, groups: Sequence[int] | NDArray[np.intp]) -> NDArray[np.intp]:
        """The columns of some near groups, given as positions among them, one group after another."""
        return spans(self.starts, np.asarray(groups, dtype=np.intp))

    def block(self, group: int) -> ArrayOrTensor:
        """The columns of a near group."""
        return self.Z[:, int(self.starts[group]) : int(self.starts[group + 1])]

    def parents(self, group: int) -> list[int]:
        """The parents of a near group, and theirs, as positions among the near groups; parents before children."""
        ancestors = self.posed.ancestors(int(self.groups[group]))
        return [self.place[l] for l in ancestors]

    def add(self, groups: NDArray[np.intp]) -> bool:
        """Make far groups and their parents near; near ones keep their positions. Return whether rows changed."""
        wanted = [one for l in groups.tolist() for one in (*self.posed.ancestors(l), l)]
        new = np.array([l for l in dict.fromkeys(wanted) if l not in self.place], dtype=np.intp)
        if not new.size:
            return False
        self.groups = np.concatenate([self.groups, new])
        if self.compressed:
            self.version += 1
            self._read()
            return True
        self.Z = beside(self.Z, working_columns(self.posed, new))
        self._index()
        return False

    def add_all(self) -> None:
        """Make all groups near if they have few columns."""
        every = np.delete(np.arange(self.posed.ranks.size), self.posed.late)
        if int(self.posed.ranks[every].sum()) <= _near_limits(self.posed)[1]:
            self.add(every)

    def on_split(self, split: Split) -> tuple[Observations, NDArray[np.intp]]:
        """The response with weight zero outside the training rows of a split, and the rows that score its models.

        If the loss couples rows, all rows of the split are needed for that.
        """
        if split not in self._of_split:
            training = np.where(in_parts(self.labels, split.train), self.response.weight, 0.0)
            parts = (*split.train, *split.test) if self.response.loss.coupled else split.test
            self._of_split[split] = self.response.weighted(training), np.flatnonzero(in_parts(self.labels, parts))
        return self._of_split[split]

    def gradient_norms(self, scores: ArrayOrTensor) -> FloatArray:
        """The norm of ``Z' score`` on each near group, over all outputs, for several models; projected on its cone.

        Parameters
        ----------
        scores : array, shape (n_rows, n_models, n_outputs)

        Returns
        -------
        ndarray, shape (n_models, n_groups)
        """
        n, k, m = scores.shape
        products = host(self.Z.T @ like(scores.reshape(n, k * m), self.Z))
        if self.posed.cone is not None:
            self.posed.cone.project(products, self.groups, self.starts)
        squares = products**2
        if m > 1:
            squares = squares.reshape(-1, k, m).sum(axis=2)
        if self.equal_rank:
            return np.sqrt(squares.reshape(-1, self.equal_rank, k).sum(axis=1).T)
        sums = np.add.reduceat(np.vstack([squares, np.zeros((1, k))]), self.starts[:-1], axis=0)
        sums[self.ranks == 0] = 0.0
        return np.sqrt(sums.T)

    def predictors(self, which: NDArray[np.intp], columns: NDArray[np.intp], W: FloatArray) -> FloatArray:
        """Linear predictors of models on some columns and rows, without intercepts.

        Parameters
        ----------
        which : ndarray of int
            Rows.
        columns : ndarray of int, shape (k,)
        W : ndarray, shape (n_models, n_outputs, k)

        Returns
        -------
        ndarray, shape (len(which), n_outputs, n_models)
        """
        n, m, k = W.shape
        Z = self.Z[which][:, columns] if not isinstance(self.Z, np.ndarray) else self.Z[np.ix_(which, columns)]
        flat = host(Z @ like(np.ascontiguousarray(W.transpose(2, 1, 0).reshape(k, m * n)), self.Z))
        return flat.reshape(len(which), m, n)

    # ------------------------------------------------------------------ reading X

    def _index(self) -> None:
        self.place = {int(l): i for i, l in enumerate(self.groups)}
        self.ranks = self.posed.ranks[self.groups]
        self.starts = offsets(self.ranks)
        # the common rank of all groups, if they have one
        self.equal_rank = int(self.ranks[0]) if self.ranks.size and (self.ranks == self.ranks[0]).all() else 0

    def _read(self) -> None:
        posed = self.posed
        self._of_split: dict[Split, tuple[Observations, NDArray[np.intp]]] = {}
        self._index()
        n, width = posed.design.shape[0], int(self.starts[-1]) + 1 + posed.response.n_outputs
        # a device has memory and arithmetic to spare
        tall = n > ROWS_PER_COLUMN * width * len(set(posed.labels.tolist()) - {-1}) and not posed.design.on_device
        # models with late groups are judged row by row
        by_row = bool(posed.late) or (n <= MOST_ROWS and not self.all_near)
        self.compressed = (
            posed.response.loss.quadratic
            and posed.pairs is None
            and ((tall and not by_row) or n * width > (HELD if posed.design.reads_columns else HELD_OF_STREAM))
        )
        if self.compressed:
            self._compress()
            return
        if n * FEWEST_COLUMNS > HELD:
            raise ValueError(
                f"The {posed.response.loss.name} loss keeps columns of the most promising groups in memory, and "
                f"{posed.design.name} has {n:,} rows; at most {HELD // FEWEST_COLUMNS:,} can be held. Fit a sample of "
                "the rows, or use loss='squared'."
            )
        self.Z, self.extras = working_columns(posed, self.groups), _scores(posed)
        self.response, self.labels = posed.response, posed.labels

    def _compress(self) -> None:
        """Roots of the parts' Gram matrices, which take one pass over X."""
        posed, n = self.posed, self.posed.design.shape[0]
        parts = [
            np.where(posed.labels[:n] == k, posed.response.weight[:n], 0.0) for k in range(posed.labels[:n].max() + 1)
        ]
        roots = self._roots(posed.design, posed.response.y[:n], parts)
        if (other := posed.validation) is not None:
            roots += self._roots(other.design, posed.response.y[n:], [posed.response.weight[n:]])
        rows, r = np.concatenate(roots), int(self.starts[-1])
        e = 0 if posed.factors is None else posed.factors.n_factors
        self.labels = np.repeat(np.arange(len(roots)), [len(root) for root in roots])
        self.Z, self.extras = np.asfortranarray(rows[:, :r]), rows[:, r : r + e]
        y = rows[:, r + e + 1 :]
        self.response = replace(
            posed.response, y=y if posed.response.loss.vector else y[:, 0], weight=np.ones(len(rows)),
            offset=np.zeros((len(rows), y.shape[1])), one=rows[:, r + e],
        )  # fmt: skip

    def _roots(self, design: Design, y: FloatArray, weights: list[FloatArray]) -> list[FloatArray]:
        """Tables ``[Z, E, 1, y]`` with the Gram matrix of each part's weighted rows."""
        posed, factors, working = self.posed, self.posed.factors, self.posed.working
        columns, loadings, _ = working.combination(self.groups.tolist())
        shift = working.mean[spans(working.layout.starts, self.groups)]
        n_columns, r = loadings.shape
        e, m = 0, posed.response.n_outputs
        if factors is not None:
            e, new = factors.n_factors, ~np.isin(factors.columns, columns)
            columns = np.concatenate([columns, factors.columns[new]])
            shift = np.concatenate([shift, factors.means[new]])
        grams = self._grams(design, columns, shift, y, weights)
        design.refuse(columns[~np.isfinite(np.sum(grams, axis=0)[1:-m, 1:-m].diagonal())])
        change = np.zeros((columns.size + 1 + m, r + e + 1 + m))
        change[1 : n_columns + 1, :r], change[0, r + e] = loadings, 1.0
        change[-m:, r + e + 1 :] = np.eye(m)
        if factors is not None:
            place = {int(j): i for i, j in enumerate(columns)}
            at = np.array([place[int(j)] for j in factors.columns], dtype=np.intp)
            change[at + 1, r : r + e] = factors.loadings
            change[0, r : r + e] = (shift[at] - factors.means) @ factors.loadings
        return [_root(change.T @ gram @ change) for gram in grams]

    def _grams(
        self, design: Design, columns: NDArray[np.intp], shift: FloatArray, y: FloatArray, weights: list[FloatArray]
    ) -> FloatArray:
        """`Design.gram_parts`; columns of a streamed X are read once, if there is memory for them."""
        if design.reads_columns or design.shape[0] * columns.size > HELD_OF_STREAM:
            self._held.pop(design, None)
            return design.gram_parts(columns, shift, y, weights)
        held, X = self._held.get(design, (columns[:0], np.empty((design.shape[0], 0))))
        new = columns[~np.isin(columns, held)]
        if new.size:
            held, X = np.concatenate([held, new]), np.hstack([X, design.take(new)])
            self._held[design] = held, X
        place = {int(j): i for i, j in enumerate(held)}
        return DenseDesign(X).gram_parts(np.array([place[int(j)] for j in columns], dtype=np.intp), shift, y, weights)


def _nearest(posed: Posed) -> NDArray[np.intp]:
    """The near groups at the start, in order: all main groups, or those with the largest gradients."""
    ranks, (some, every) = posed.ranks[: posed.n_mains], _near_limits(posed)
    if ranks.sum() <= every:
        return np.arange(ranks.size)
    order = np.argsort(-posed.null_norms()[: ranks.size] / posed.weights[: ranks.size], kind="stable")
    count = int(np.searchsorted(np.cumsum(ranks[order]), some)) + 1
    return np.array(sorted({one for l in order[:count].tolist() for one in (*posed.ancestors(l), l)}), dtype=np.intp)


def working_columns(posed: Posed, groups: NDArray[np.intp]) -> ArrayOrTensor:
    """The working columns of some groups, including the validation rows."""
    Z = _on_design(posed, posed.design, groups)
    if posed.validation is None:
        return Z
    return below(Z, _on_design(posed, posed.validation.design, groups))


def _on_design(posed: Posed, design: Design, groups: NDArray[np.intp]) -> ArrayOrTensor:
    """The working columns of some groups on the rows of a design, where it lives."""
    working = posed.working
    if design.on_device:
        columns, loadings, offset = working.combination(groups.tolist())
        X = design.device_columns(columns)
        return X @ like(loadings, X) - like(offset, X)
    places = spans(working.layout.starts, groups)
    columns, mean = working.layout.members[places], working.mean[places]
    X = np.asarray(design.take(columns), dtype=float)
    design.refuse(columns[~np.isfinite(X).all(axis=0)])
    if mean.any():
        X = X - mean
    return np.asfortranarray(
        times_factors(X, working.factors_of(groups), working.layout.sizes[groups], working.ranks[groups])
    )


def _scores(posed: Posed) -> FloatArray:
    """The scores of common factors, including the validation rows."""
    designs = [posed.design] if posed.validation is None else [posed.design, posed.validation.design]
    if posed.factors is None:
        return np.empty((len(posed.labels), 0))
    return np.concatenate([posed.factors.scores(design) for design in designs])


def _root(gram: FloatArray) -> FloatArray:
    """A matrix with this Gram matrix and as many rows as its rank."""
    unit = np.sqrt(np.maximum(np.diag(gram), 0.0))
    unit[unit == 0] = 1.0
    factor, pivots, rank, _ = dpstrf(gram / unit / unit[:, None], tol=1e-14)
    out = np.zeros_like(gram)
    out[:, pivots - 1] = np.triu(factor)
    return np.asarray(out[: max(rank, 1)] * unit)
