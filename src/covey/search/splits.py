"""Which rows score the models: folds, a held-out share, or a validation set; and the resulting parts of the rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covey.designs import Design, as_design
from covey.designs.rows import canonical_keys, count_rows, hold_out, is_contingency_table, mix, split_masks
from covey.losses import Loss, Squared
from covey.losses.responses import read_offset
from covey.search.problem import Parts, Split, Validation, in_parts
from covey.validation import Array, FloatArray, MatrixLike, PerRow, on_host, read_row_labels, whole

__all__ = ["EmptyFoldError", "Folds", "HoldOut", "MissingClassError", "SplitsLike", "balanced_folds", "counts"]

SQUARED = Squared()

# The two keys of `covey.designs.rows.canonical_keys`; empty if they are not needed, or not known yet.
RowKeys = tuple[NDArray[np.uint64], ...]


class Splitter(Protocol):
    """One of scikit-learn's objects that split rows."""

    def split(self, X: MatrixLike, y: PerRow = None, groups: PerRow = None) -> Iterator[tuple[Array, Array]]: ...


# What is accepted as ``cv=``.
SplitsLike: TypeAlias = int | Splitter | Iterable[tuple[ArrayLike, ArrayLike]]


@dataclass(frozen=True)
class Folds:
    """Cross-validation, such as ``selection=Folds(10)``.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test)
        A number of folds, or anything that scikit-learn accepts. A number gives folds that depend only on the data:
        neighbours among the sorted responses go to different folds, equal rows to the same one. The order of the rows
        does not matter.
    labels : array-like of shape (n_rows,), optional
        Rows with the same label stay in the same fold, whose number is then at most that of the labels.
    random_state : int or None
        Decides which neighbour goes to which fold.
    deals : int
        How often the rows are dealt to folds at most. They are dealt again as long as it is open which model is chosen;
        given folds are used once.
    """

    cv: SplitsLike = 5
    labels: PerRow = None
    random_state: int | None = None
    deals: int = 8

    @property
    def most_deals(self) -> int:
        """How often the rows can be dealt to folds; once if the folds are given."""
        return whole(self.deals, "deals", least=1) if self._counted and self.labels is None else 1

    @property
    def _counted(self) -> bool:
        return isinstance(self.cv, int | np.integer) and not isinstance(self.cv, bool)

    def parts(
        self, design: Design, y: FloatArray, weight: FloatArray, loss: Loss = SQUARED, deal: int = 0, keys: RowKeys = ()
    ) -> Parts:
        """The parts of the rows of a problem; those of a later deal lack the split with all rows, and take its keys."""
        y, weight = np.asarray(y), np.asarray(weight)
        balance = loss.balance(y, weight)
        together = None if self.labels is None else read_row_labels(self.labels, len(weight), "split_groups")
        if self._counted:
            if together is None:
                folds, keys = self._deal(design, y, balance, weight, loss, deal, keys)
            else:
                folds = labelled_folds(together, weight, whole(self.cv, "the number of folds", least=2))
            n_folds = int(folds.max()) + 1
            if n_folds < 2:
                raise ValueError("Folds need at least 2 rows of positive weight; choose selection='ebic' instead.")
            # rows in no fold are in every training set
            labels = np.where(weight > 0, np.where(folds < 0, n_folds, folds), -1)
            parts = range(int(labels.max()) + 1)
            splits = [Split(tuple(k for k in parts if k != f), (f,)) for f in range(n_folds)]
        else:
            masks, used = split_masks(design.shape[0], self.cv, balance, together), weight > 0
            if together is not None:
                refuse_divided(self.labels, together, [(train & used, test & used) for train, test in masks])
            labels, splits = _from_splitter(masks)
            labels = np.where(used, labels, -1)
        for number, split in enumerate(splits):
            for name, parts_of in (("held-out", split.test), ("training", split.train)):
                if not in_parts(labels, parts_of).any():
                    raise EmptyFoldError(f"Fold {number} has no {name} rows of positive weight; use fewer folds.")
        check_training(loss, y, weight, labels, splits)
        if not deal:
            splits.append(Split(tuple(range(int(labels.max()) + 1)), everything=True))
        return Parts(labels, counts(weight, labels, loss, y), splits, keys=keys)

    def _deal(
        self,
        design: Design,
        y: FloatArray,
        balance: FloatArray,
        weight: FloatArray,
        loss: Loss,
        deal: int,
        keys: RowKeys,
    ) -> tuple[NDArray[np.intp], RowKeys]:
        """The fold of every row, and the keys of the rows, if they are needed."""
        k = _most_folds(loss, y, weight, whole(self.cv, "the number of folds", least=2))
        classes = loss.classes(y) is not None
        if not keys and (classes or loss.coupled or _is_tied(balance, weight, k)):
            keys = canonical_keys(design, _used_ranks(balance, weight), weight)
        seed: int | Sequence[int] | None = self.random_state
        mixed = keys
        if deal:
            # keys decide the order of equal responses, seeds which neighbour goes to which fold
            mixed = tuple(mix(one + np.uint64(deal)) for one in keys)
            seed = [int(np.random.default_rng(0 if seed is None else seed).integers(2**31)), deal]
        return balanced_folds(balance, weight, *mixed, k=k, seed=seed, classes=classes), keys


@dataclass(frozen=True)
class HoldOut:
    """Some rows held out once, or a separate validation set: ``selection=HoldOut(validation=(X_val, y_val))``.

    The choice of held-out rows depends on their positions and the seed, not on values, except that rows equal in X and
    y stay together (with the first of them). The same share of every class is held out.

    Parameters
    ----------
    fraction : float
        The share of the rows to hold out. The model is then fitted on all rows.
    validation : (X, y), (X, y, offset) or None
        Rows to score on, with an offset if the rows of the fit have one; nothing is held out then.
    random_state : int or None
        The seed; None means 0.
    """

    fraction: float = 0.2
    validation: Any = None
    random_state: int | None = None
    most_deals: ClassVar[int] = 1

    def parts(
        self, design: Design, y: FloatArray, weight: FloatArray, loss: Loss = SQUARED, deal: int = 0, keys: RowKeys = ()
    ) -> Parts:
        """The parts of the rows of a problem."""
        y, weight = np.asarray(y), np.asarray(weight)
        if self.validation is not None:
            # each counts as one row of the fit, however the weights of these are scaled
            row = float(weight.sum()) / count_rows(weight)
            other = read_validation(self.validation, design.shape[1], loss, row)
            labels = np.where(weight > 0, 0, -1)
            n = counts(other.weight, np.zeros(len(other.weight), dtype=np.intp), loss, other.y)
            return Parts(labels, [*counts(weight, labels, loss, y), *n], [Split((0,), (1,), everything=True)], other)
        classes, informative = loss.classes(y), loss.informative(y)
        if classes is None and informative is not None:
            classes = informative.astype(np.intp)
        labels = np.where(weight > 0, self.mask(design, y, weight, classes).astype(np.intp), -1)
        splits = [Split((0,), (1,)), Split((0, 1), everything=True)]
        check_training(loss, y, weight, labels, splits)
        return Parts(labels, counts(weight, labels, loss, y), splits)

    def mask(
        self, design: Design, y: FloatArray, weight: FloatArray, classes: Array | None = None
    ) -> NDArray[np.bool_]:
        """The rows to hold out."""
        if isinstance(self.fraction, bool) or not 0 < self.fraction < 1:
            raise ValueError(f"The held-out fraction must lie between 0 and 1, not {self.fraction!r}.")
        seed = 0 if self.random_state is None else self.random_state
        return np.asarray(hold_out(design, y, weight, self.fraction, seed, classes))


def read_validation(validation: Any, n_columns: int, loss: Loss, weight: float) -> Validation:
    """Check a validation set, whose rows all have this weight."""
    if not isinstance(validation, tuple | list) or len(validation) not in (2, 3):
        raise ValueError("validation must be a pair (X, y) of rows to score on, or (X, y, offset).")
    X, y, *rest = validation
    design = as_design(X, name="X_val")
    n = design.shape[0]
    if design.shape[1] != n_columns:
        raise ValueError(f"The validation rows have {design.shape[1]} columns, and X has {n_columns}.")
    response = loss.check(on_host(y), name="y_val")
    if len(response) != n:
        raise ValueError(f"y_val has {len(response)} entries, but X_val has {n} rows.")
    offset: FloatArray | None = None
    if rest and rest[0] is not None:
        offset = read_offset(rest[0], n, response.shape[1] if loss.vector else 1, loss)
    return Validation(design, response, np.full(n, weight), offset)


class EmptyFoldError(ValueError):
    """A fold has no training rows, or no held-out rows."""


class MissingClassError(ValueError):
    """The training rows lack a class. Holds its position, and the rest of the message to follow its name."""

    def __init__(self, position: int, rest: str) -> None:
        super().__init__(f"Class {position} (counted from 0) {rest}")
        self.position, self.rest = position, rest


def _most_folds(loss: Loss, y: FloatArray, weight: FloatArray, k: int) -> int:
    """The number of folds, reduced if needed so that each can have an informative row."""
    known = loss.informative(y)
    return k if known is None else max(2, min(k, int((known & (np.asarray(weight) > 0)).sum())))


def check_training(
    loss: Loss, y: FloatArray, weight: FloatArray, labels: NDArray[np.intp], splits: Sequence[Split]
) -> None:
    """Refuse splits whose training rows have no null model, for instance because they lack a class."""
    if loss.quadratic:
        return
    classes, informative = loss.classes(y), loss.informative(y)
    for number, split in enumerate(splits):
        train = np.where(in_parts(labels, split.train), weight, 0.0)
        if classes is not None:
            found = np.bincount(classes, weights=train, minlength=max(2, y.shape[1] if y.ndim == 2 else 2))
            if not found.all():
                lacking = int(np.argmin(found))
                n_rows = int(((classes == lacking) & (weight > 0)).sum())
                raise MissingClassError(
                    lacking,
                    f"({n_rows} row{'s' * (n_rows > 1)} in all) has no row among the training rows of fold {number}: "
                    "give more rows of it, use fewer folds, put rare classes together, or choose selection='ebic', "
                    "which needs no folds.",
                )
        scored = in_parts(labels, split.test or split.train)
        if informative is not None and not (scored & informative).any():
            raise ValueError(
                f"No held-out row of fold {number} has an event: use fewer folds, let selection=5 spread the events "
                "over the folds, or choose selection='ebic', which needs no folds."
            )
        try:
            loss.null(y, train)
        except ValueError as error:
            raise ValueError(
                f"The training rows of fold {number} cannot be fitted. {error} Use fewer folds, put rare classes "
                "together, or choose selection='ebic', which needs no folds."
            ) from None


# Responses this close, relative to their range, are equal: sums may differ in the last digit.
SAME = 1e-12


def balanced_folds(
    y: FloatArray,
    weight: FloatArray,
    keys: NDArray[np.uint64] | None = None,
    same: NDArray[np.uint64] | None = None,
    *,
    k: int,
    seed: int | Sequence[int] | None = None,
    classes: bool = False,
) -> NDArray[np.intp]:
    """The fold of every row: k neighbours among the sorted responses go to k different folds; -1 for weight zero.

    `keys` and `same` are the two keys of `covey.designs.rows.canonical_keys`, by which rows with equal responses are
    told apart. Where many rows have the same response, they must be: a fold with all of them would be predicted by
    rows that were chosen by their response.

    Equal rows, as identified by their keys, count as one neighbour; if many rows differ only in their response, as in a
    table of a few categories, and most are repeated, every row counts separately. Without keys, equal responses count
    as one. Classes are dealt round-robin, so that no fold gets a second row of a class while another has none. A class
    that consists of one repeated row is in no fold (-1): it has to be in every training set.

    >>> y = np.array([3.0, 1.0, 2.0, 2.0, 5.0, 4.0])
    >>> folds = balanced_folds(y, np.ones(6), k=2)
    >>> bool(folds[2] == folds[3]), np.bincount(folds).tolist() in ([3, 3], [2, 4], [4, 2])
    (True, True)
    """
    used = np.flatnonzero(weight > 0)
    out = np.full(y.size, -1, dtype=np.intp)
    rank = _ranks(y[used])
    if keys is not None and same is not None:
        shares = np.bincount(rank, weights=weight[used])
        number, equal = _row_numbers(rank, keys[used], same[used], weight[used], k)
        distinct, order = np.unique(rank * used.size + number, return_inverse=True)
        if distinct.size < 2 or is_contingency_table(rank, equal, weight[used]):
            order = np.empty(used.size, dtype=np.intp)
            order[np.lexsort((weight[used], equal, number, rank))] = np.arange(used.size)
        elif classes:
            counts = np.bincount(distinct // used.size)
            lone = (counts[rank] == 1) & (shares[rank] >= 2 * weight[used].min())
            used, order = used[~lone], np.unique(order[~lone], return_inverse=True)[1]
        rank = order
    n = int(rank.max(initial=-1)) + 1
    k = min(k, n)
    rng = np.random.default_rng(0 if seed is None else seed)
    rounds = [rng.permutation(k) for _ in range(1 if classes else -(-n // k))]
    dealt = np.resize(np.concatenate(rounds), n) if n else np.empty(0, dtype=np.intp)
    out[used] = dealt[rank]
    return out


def labelled_folds(labels: NDArray[np.intp], weight: FloatArray, k: int) -> NDArray[np.intp]:
    """The fold of every row, that of its label; -1 for weight zero.

    These are the folds of scikit-learn's GroupKFold if rows count by weight: the heaviest label first, each goes to the
    fold that is lightest so far.

    >>> labelled_folds(np.array([7, 7, 8, 9, 9]), np.array([1.0, 1.0, 3.0, 1.0, 0.0]), 2).tolist()
    [1, 1, 0, 1, -1]
    """
    used = np.flatnonzero(weight > 0)
    which = np.unique(labels[used], return_inverse=True)[1]
    shares = np.bincount(which, weights=weight[used]) / weight.sum()
    if shares.size < 2:
        raise ValueError("split_groups has the same label in every row, so there are no folds: leave it out.")
    fold, totals = np.empty(shares.size, dtype=np.intp), np.zeros(min(k, shares.size))
    # sums that should be equal differ by round-off error
    for label in np.argsort(_ranks(shares), kind="stable")[::-1]:
        fold[label] = np.argmin(np.round(totals, 12))
        totals[fold[label]] += shares[label]
    out = np.full(labels.size, -1)
    out[used] = fold[which]
    return out


def refuse_divided(
    given: PerRow, labels: NDArray[np.intp], masks: Sequence[tuple[NDArray[np.bool_], NDArray[np.bool_]]]
) -> None:
    """Refuse folds that divide rows with the same label."""
    for number, (train, test) in enumerate(masks):
        if (both := np.flatnonzero(train & np.isin(labels, labels[test]))).size:
            raise ValueError(
                f"In selection=, split {number} trains on rows with the label {np.asarray(on_host(given))[both[0]]} of "
                "split_groups and holds out others: give a number of folds, or a splitter that keeps them together, "
                "such as scikit-learn's GroupKFold."
            )


def _row_numbers(
    rank: NDArray[np.intp], keys: NDArray[np.uint64], same: NDArray[np.uint64], weight: FloatArray, k: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Numbers of the rows in the order of their keys, and numbers that only equal rows share.

    Rows with the same key and response have the same number, unless they would fill a fold and are not equal.
    """
    number = np.unique(keys, return_inverse=True)[1]
    unit = np.unique(rank * rank.size + number, return_inverse=True)[1]
    shares = np.bincount(unit, weights=weight)
    fills = shares[unit] * k > shares.sum()
    pairs = np.stack([number.astype(np.uint64), np.where(fills, same, np.uint64(0))], axis=1)
    number = np.unique(pairs, axis=0, return_inverse=True)[1].ravel()
    return number, np.unique(same, return_inverse=True)[1]


def _ranks(values: FloatArray) -> NDArray[np.intp]:
    """The rank of each value among the distinct ones."""
    order = np.argsort(values, kind="stable")
    rank = np.zeros(values.size, dtype=np.intp)
    if values.size:
        ordered = values[order]
        # halved, because the range of large numbers may overflow
        apart = np.diff(ordered / 2) > SAME * (ordered[-1] / 2 - ordered[0] / 2)
        rank[order[1:]] = np.cumsum(apart)
    return rank


def _used_ranks(y: FloatArray, weight: FloatArray) -> NDArray[np.intp]:
    """The rank of each response among those of positive weight; zero for rows of weight zero."""
    out = np.zeros(y.size, dtype=np.intp)
    out[weight > 0] = _ranks(y[weight > 0])
    return out


def _is_tied(y: FloatArray, weight: FloatArray, k: int) -> bool:
    """Whether so many rows have the same response that each fold could have one of them."""
    used = weight > 0
    shares = np.bincount(_ranks(y[used]), weights=weight[used])
    return bool(shares.max(initial=0.0) * count_rows(weight) > (k - 0.5) * shares.sum())


def _from_splitter(pairs: Sequence[tuple[Array, Array]]) -> tuple[NDArray[np.intp], list[Split]]:
    """Labels of disjoint parts such that all training and test sets are unions of them."""
    memberships = np.array([mask for pair in pairs for mask in pair])
    kinds, labels = np.unique(memberships, axis=1, return_inverse=True)
    splits = [
        Split(tuple(np.flatnonzero(kinds[2 * f]).tolist()), tuple(np.flatnonzero(kinds[2 * f + 1]).tolist()))
        for f in range(len(pairs))
    ]
    return labels.ravel(), splits


def counts(weight: FloatArray, labels: NDArray[np.intp], loss: Loss, y: FloatArray) -> list[float]:
    """The number of observations per part, counted by weight (`count_rows`)."""
    informative = loss.informative(y)
    counted = weight if informative is None else weight * informative
    unit = count_rows(weight) / float(weight.sum())
    totals = np.bincount(labels[labels >= 0], weights=counted[labels >= 0], minlength=int(labels.max()) + 1)
    return [max(float(total), 0.0) * unit for total in totals]
