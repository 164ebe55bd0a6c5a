"""Which rows score the models: folds, a held-out share, or a validation set; and the resulting parts of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.designs import Design, as_design
from covey.designs.rows import KEY_COLUMNS, MIXED, count_rows, hold_out, key_columns, mix, split_masks
from covey.limit.posed import Validation
from covey.limit.rows import Split
from covey.losses import Binomial, Cox, Loss, Multinomial, Squared
from covey.losses.offsets import read_offset
from covey.losses.risk_sets import EVENT, STOP, STRATUM
from covey.validation import FloatArray, as_response, whole

__all__ = ["Folds", "HoldOut", "MissingClassError", "Parts", "balanced_folds", "counts"]

SQUARED = Squared()

# How many columns are hashed to recognise equal rows: more if a larger share of the rows than this has the same hash.
MORE_KEY_COLUMNS, LARGEST_TIE = (KEY_COLUMNS[-1], 8 * KEY_COLUMNS[-1]), 0.05


@dataclass(frozen=True)
class Parts:
    """Disjoint parts of the rows, and the splits made of them.

    Attributes
    ----------
    weights : list of row vectors
        For each part, the weights of its rows, zero elsewhere.
    counts : list of float
        The number of rows per part.
    splits : list of Split
        The last one has all rows; with a validation set it is the only one.
    validation : Validation or None
        Rows of another design; they form one more part.
    """

    weights: list[Any]
    counts: list[float]
    splits: list[Split]
    validation: Validation | None = None


@dataclass(frozen=True)
class Folds:
    """Cross-validation.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test)
        A number of folds, or anything that scikit-learn accepts. A number gives folds that depend only on the response:
        neighbours among the sorted values go to different folds, equal values to the same one (if the response has few
        values, equal rows do). The order of the rows does not matter, and repeated rows stay together.
    labels : array-like of shape (n_rows,), optional
        Labels of the rows, for splitters such as GroupKFold.
    random_state : int or None
        Decides which neighbour goes to which fold.
    """

    cv: Any = 5
    labels: Any = None
    random_state: Any = None

    def parts(self, design: Design, y: Any, weight: Any, loss: Loss = SQUARED) -> Parts:
        """The parts of the rows of a problem."""
        counted = isinstance(self.cv, int | np.integer) and not isinstance(self.cv, bool)
        order = one_value(loss, y, weight)
        if counted and self.labels is None:
            k = _most_folds(loss, y, weight, whole(int(self.cv), "the number of folds", least=2))
            classes, keys = has_classes(loss, y), None
            if classes or loss.coupled or _is_tied(order, weight, k):
                keys = _row_keys(design, weight)
            own = balanced_folds(
                order, weight, keys, k=k, seed=self.random_state, classes=classes, apart=loss.coupled
            )
            n_folds = int(own.max()) + 1
            if n_folds < 2:
                raise ValueError("Folds need at least 2 rows of positive weight; choose selection='ebic' instead.")
            masks = [own == fold for fold in range(n_folds)]
            stays = (own < 0) & (weight > 0)
            masks += [stays] if stays.any() else []
            splits = [Split(tuple(k for k in range(len(masks)) if k != f), (f,)) for f in range(n_folds)]
        else:
            masks, splits = _from_splitter(split_masks(design.shape[0], self.cv, order, self.labels))
        weights = [np.where(mask, weight, 0.0) for mask in masks]
        for number, split in enumerate(splits):
            for name, own_parts in (("held-out", split.test), ("training", split.train)):
                if sum(weights[k].sum() for k in own_parts) <= 0:
                    raise ValueError(f"Fold {number} has no {name} rows of positive weight; use fewer folds.")
        if not isinstance(loss, Squared):
            check_training(loss, y, weights, splits)
        every = Split(tuple(range(len(masks))))
        return Parts(weights, counts(weight, weights, loss, y), [*splits, every])


@dataclass(frozen=True)
class HoldOut:
    """Some rows held out once, or a separate validation set.

    The choice of held-out rows depends on their positions and the seed, not on values, except that rows equal in X and
    y stay together (with the first of them). The same share of every class is held out.

    Parameters
    ----------
    fraction : float
        The share of the rows to hold out. The model is then fitted on all rows.
    validation : (X, y) or None
        Rows to score on; nothing is held out then.
    random_state : int or None
        The seed; None means 0.
    """

    fraction: float = 0.2
    validation: Any = None
    random_state: Any = None

    def parts(self, design: Design, y: Any, weight: Any, loss: Loss = SQUARED) -> Parts:
        """The parts of the rows of a problem."""
        if self.validation is not None:
            other = read_validation(self.validation, design.shape[1], loss)
            n = counts(other.weight, [other.weight], loss, other.y)
            return Parts([weight], [*counts(weight, [weight], loss, y), *n], [Split((0,), (1,))], other)
        classes = None
        if has_classes(loss, y):
            classes = np.asarray(y).astype(np.intp) if y.ndim == 1 else np.argmax(y, axis=1)
        elif loss.coupled:
            classes = y[:, EVENT].astype(np.intp)
        held = self.mask(design, y, weight, classes)
        weights = [np.where(held, 0.0, weight), np.where(held, weight, 0.0)]
        splits = [Split((0,), (1,)), Split((0, 1))]
        if not isinstance(loss, Squared):
            check_training(loss, y, weights, splits)
        return Parts(weights, counts(weight, weights, loss, y), splits)

    def mask(self, design: Design, y: Any, weight: Any, classes: Any = None) -> Any:
        """The rows to hold out."""
        if isinstance(self.fraction, bool) or not 0 < self.fraction < 1:
            raise ValueError(f"The held-out fraction must lie between 0 and 1, not {self.fraction!r}.")
        seed = 0 if self.random_state is None else self.random_state
        return hold_out(design, y, weight, self.fraction, seed, classes)


def read_validation(validation: Any, n_columns: int, loss: Loss = SQUARED) -> Validation:
    """Check a validation set."""
    if not isinstance(validation, tuple | list) or len(validation) not in (2, 3):
        raise ValueError("validation must be a pair (X, y) of rows to score on, or (X, y, offset).")
    X, y, *rest = validation
    design = as_design(X, name="X_val")
    n = design.shape[0]
    if design.shape[1] != n_columns:
        raise ValueError(f"The validation rows have {design.shape[1]} columns, and X has {n_columns}.")
    squared = isinstance(loss, Squared)
    response = as_response(y, n, name="y_val") if squared else loss.check(y, name="y_val")
    if not squared and len(response) != n:
        raise ValueError(f"y_val has {len(response)} entries, but X_val has {n} rows.")
    offset: Any = None
    if rest and rest[0] is not None:
        offset = read_offset(rest[0], n, response.shape[1] if loss.vector else 1, loss)
        if squared:
            offset = offset[:, 0]
    return Validation(design, response, np.ones_like(response) if squared else np.ones(n), offset)


def one_value(loss: Loss, y: FloatArray, weight: FloatArray) -> FloatArray:
    """The value by which folds are balanced, per row: the response, the class, or the sum of standardised responses.

    For survival times it is their rank, with events after censored rows.
    """
    y = np.asarray(y)
    if y.ndim == 1:
        return y
    if isinstance(loss, Cox):
        return np.unique(y[:, [EVENT, STRATUM, STOP]], axis=0, return_inverse=True)[1].ravel().astype(float)
    if isinstance(loss, Multinomial):
        return y.argmax(axis=1).astype(float)
    q = np.asarray(weight, dtype=float) / np.sum(weight)
    centred = y - q @ y
    spread = np.sqrt(q @ centred**2)
    return np.asarray((centred / np.where(spread > 0, spread, 1.0)).sum(axis=1))


def has_classes(loss: Loss, y: FloatArray) -> bool:
    """Whether responses are classes, which every fold should contain."""
    return isinstance(loss, Multinomial | Binomial) and bool(np.isin(y, (0.0, 1.0)).all())


class MissingClassError(ValueError):
    """The training rows lack a class. Holds its position, and the rest of the message to follow its name."""

    def __init__(self, position: int, rest: str) -> None:
        super().__init__(f"Class {position} (counted from 0) {rest}")
        self.position, self.rest = position, rest


def _most_folds(loss: Loss, y: Any, weight: Any, k: int) -> int:
    """The number of folds, reduced if needed so that each can have an informative row."""
    known = loss.informative(y)
    return k if known is None else max(2, min(k, int((known & (np.asarray(weight) > 0)).sum())))


def check_training(loss: Loss, y: FloatArray, weights: Sequence[FloatArray], splits: Sequence[Split]) -> None:
    """Refuse splits whose training rows have no null model, for instance because they lack a class."""
    for number, split in enumerate(splits):
        weight = np.sum([weights[k] for k in split.train], axis=0)
        if has_classes(loss, y):
            seen = weight @ (y if y.ndim == 2 else np.stack([1 - y, y], axis=1))
            if not seen.all():
                raise MissingClassError(
                    int(np.argmin(seen)),
                    f"has no row among the training rows of fold {number}: give more rows of it, use fewer folds, put "
                    "rare classes together, or choose selection='ebic', which needs no folds.",
                )
        known = loss.informative(y)
        judges = np.sum([weights[k] for k in split.test or split.train], axis=0)
        if known is not None and not judges[known].any():
            raise ValueError(
                f"No held-out row of fold {number} has an event: use fewer folds, let selection=5 spread the events "
                "over the folds, or choose selection='ebic', which needs no folds."
            )
        try:
            loss.null(y, weight)
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
    *,
    k: int,
    seed: Any = None,
    classes: bool = False,
    apart: bool = False,
) -> NDArray[np.intp]:
    """The fold of every row: k neighbours among the sorted responses go to k different folds; -1 for weight zero.

    Equal responses count as one neighbour, unless a single value would fill a fold by itself, they are classes, or
    `apart` is true. Then equal rows, as identified by their keys, count as one; if rows differ only in their response,
    as in a table of a few categories, every row counts separately. Classes are dealt round-robin, so that no fold gets
    a second row of a class while another has none. A class that consists of one repeated row is in no fold (-1): it
    has to be in every training set.

    >>> y = np.array([3.0, 1.0, 2.0, 2.0, 5.0, 4.0])
    >>> folds = balanced_folds(y, np.ones(6), k=2)
    >>> bool(folds[2] == folds[3]), np.bincount(folds).tolist() in ([3, 3], [2, 4], [4, 2])
    (True, True)
    """
    used = np.flatnonzero(weight > 0)
    out = np.full(y.size, -1, dtype=np.intp)
    rank = _ranks(y[used])
    shares = np.bincount(rank, weights=weight[used])
    if classes or apart or shares.max(initial=0.0) * k > shares.sum():
        number = np.zeros(used.size, dtype=np.intp)
        if keys is not None:
            number = np.unique(keys[used], return_inverse=True)[1]
        distinct, own = np.unique(rank * used.size + number, return_inverse=True)
        of = distinct % used.size
        alike = np.bincount(of, minlength=used.size)[number] > 1
        if keys is None or distinct.size < 2 or weight[used][alike].sum() > MIXED * weight[used].sum():
            own = np.empty(used.size, dtype=np.intp)
            own[np.lexsort((number, rank))] = np.arange(used.size)
        elif classes:
            counts = np.bincount(distinct // used.size)
            lone = (counts[rank] == 1) & (shares[rank] >= 2 * weight[used].min())
            used, own = used[~lone], np.unique(own[~lone], return_inverse=True)[1]
        rank = own
    n = int(rank.max(initial=-1)) + 1
    k = min(k, n)
    rng = np.random.default_rng(0 if seed is None else seed)
    rounds = [rng.permutation(k) for _ in range(1 if classes else -(-n // k))]
    dealt = np.resize(np.concatenate(rounds), n) if n else np.empty(0, dtype=np.intp)
    out[used] = dealt[rank]
    return out


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


def _is_tied(y: FloatArray, weight: FloatArray, k: int) -> bool:
    """Whether one value of the response would fill a fold by itself."""
    used = weight > 0
    shares = np.bincount(_ranks(y[used]), weights=weight[used])
    return bool(shares.max(initial=0.0) * k > shares.sum())


def _row_keys(design: Design, weight: FloatArray) -> NDArray[np.uint64]:
    """A hash of some columns of each row, from the ranks of their values; units and column order do not matter."""
    for n_columns in MORE_KEY_COLUMNS:
        keys = _rank_keys(design.take(key_columns(design.shape[1], n_columns)), weight)
        # columns of zeros and ones distinguish few rows
        if _largest_share(keys, weight) <= LARGEST_TIE:
            break
    return keys


def _rank_keys(values: FloatArray, weight: FloatArray) -> NDArray[np.uint64]:
    """The sum over columns of a hash of each value's rank; zero for rows of weight zero."""
    used = weight > 0
    out = np.zeros(weight.size, dtype=np.uint64)
    for column in values[used].T:
        out[used] += mix(np.unique(column, return_inverse=True)[1].astype(np.uint64) + np.uint64(1))
    return out


def _largest_share(keys: NDArray[np.uint64], weight: FloatArray) -> float:
    """The largest share of the weight that rows with the same key have."""
    used = weight > 0
    shares = np.bincount(np.unique(keys[used], return_inverse=True)[1], weights=weight[used])
    return float(shares.max(initial=0.0) / shares.sum())


def _from_splitter(pairs: Sequence[tuple[Any, Any]]) -> tuple[list[Any], list[Split]]:
    """Disjoint parts such that all training and test sets are unions of them."""
    memberships = np.array([mask for pair in pairs for mask in pair])
    kinds, own = np.unique(memberships, axis=1, return_inverse=True)
    own = own.ravel()
    masks = [own == k for k in range(kinds.shape[1])]
    splits = [
        Split(tuple(np.flatnonzero(kinds[2 * f]).tolist()), tuple(np.flatnonzero(kinds[2 * f + 1]).tolist()))
        for f in range(len(pairs))
    ]
    return masks, splits


def counts(weight: FloatArray, parts: Sequence[FloatArray], loss: Loss, y: Any) -> list[float]:
    """The number of observations per part, counted by weight in units of the least weight among all rows."""
    known = loss.informative(y)
    totals = [float((own if known is None else own * known).sum()) for own in parts]
    unit = count_rows(weight) / float(weight.sum())
    return [max(total, 0.0) * unit for total in totals]
