"""Ordered classes: the cumulative logit model, whose thresholds are profiled out of the likelihood.

The minimum over the thresholds of a function that is convex in thresholds and predictors together is convex in the
predictors. So a fit sees a loss of one predictor per row, and its minimiser is the joint maximum of the likelihood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit

from covey.layout import offsets
from covey.losses.base import CoupledLoss, LossOnRows, Response
from covey.losses.classes import ClassLoss, read_labels
from covey.validation import Array, FloatArray, finite_response

__all__ = ["Ordinal", "known_order"]

# Words whose order everybody knows, from the lowest to the highest; words between bars mean the same.
LADDERS = tuple(
    [step.split("|") for step in text.split(",")]
    for text in (
        "very low,low,medium|middle|moderate|mid|average|normal,high,very high",
        "sehr niedrig,niedrig|gering,mittel|normal,hoch,sehr hoch",
        "xs,s,m,l,xl,xxl",
        "tiny,small,medium|middle,large|big,huge",
        "none|no,mild|slight,moderate|medium,severe|strong,very severe",
        "very poor,poor|bad,fair|ok|average,good,very good,excellent",
        "never,rarely|seldom,sometimes,often,always",
        "strongly disagree,disagree,neutral|undecided,agree,strongly agree",
        "i,ii,iii,iv,v",
    )
)


def known_order(labels: Sequence[object]) -> list[object]:
    """At least three labels from the lowest to the highest, if these are words whose order is known; else none.

    >>> known_order(["high", "low", "medium"]), known_order(["cat", "dog", "owl"])
    (['low', 'medium', 'high'], [])
    """
    words = [str(label).strip().casefold() for label in labels]
    for ladder in LADDERS:
        steps = [next((k for k, step in enumerate(ladder) if word in step), -1) for word in words]
        if len(set(steps)) == len(steps) > 2 and min(steps) >= 0:
            return [labels[at] for at in np.argsort(steps)]
    return []


@dataclass(frozen=True)
class Ordinal(CoupledLoss, ClassLoss):
    """Ordered classes: ``log(p / (1 - p)) = threshold_k - eta``, with p the probability of class k or a lower one.

    One linear predictor moves the odds of a higher class by the same factor at every threshold (proportional odds). The
    thresholds take the place of an intercept: they are the likeliest ones at each predictor, so that the loss of a row
    depends on the other rows, and adding a constant to `eta` does not change it. `value`, `residual` and `curvature`
    treat the given rows as all the data, with weights of one; `deviance` takes the thresholds if they are known.

    Parameters
    ----------
    order : sequence, optional
        The labels from the lowest class to the highest. None means the order of a pandas categorical that has one, or
        that of numbers.
    thresholds : sequence of float, optional
        In ascending order, one fewer than classes; a fitted model sets them.

    Examples
    --------
    Rows are positions of classes, counted from zero.

    >>> y = np.array([0.0, 0.0, 1.0, 2.0])
    >>> Ordinal().with_thresholds(y, np.zeros(4), np.ones(4)).probabilities(np.zeros((1, 1))).round(6)
    array([[0.5 , 0.25, 0.25]])
    """

    order: Sequence[Any] | None = None
    thresholds: Sequence[float] | None = None
    name: ClassVar[str] = "ordinal"

    def __post_init__(self) -> None:
        if self.order is not None:
            if (
                isinstance(self.order, str)
                or np.ndim(self.order) != 1
                or len(set(self.order)) < max(2, len(self.order))
            ):
                raise ValueError(
                    "order must be a list of at least two different labels, from the lowest class to the highest, not "
                    f"{self.order!r}."
                )
            object.__setattr__(self, "order", tuple(np.asarray(self.order).tolist()))
        if self.thresholds is not None:
            values = tuple(np.asarray(self.thresholds, dtype=float).ravel().tolist())
            if not values or not np.isfinite(values).all() or (np.diff(values) <= 0).any():
                raise ValueError(f"thresholds must be finite and in ascending order, not {self.thresholds!r}.")
            object.__setattr__(self, "thresholds", values)

    def read(self, y: ArrayLike, name: str = "y", classes: Array | None = None) -> Response:
        """Labels as positions in their order; two classes are those of the binomial loss.

        Classes that no row has are left out. `classes` are the labels of an earlier response, in their order.
        """
        labels = self._labels(y, name) if classes is None else classes
        response = read_labels(y, name, labels)
        if labels.size == 2:
            return response
        codes = response.y.argmax(axis=1) if response.y.ndim == 2 else response.y
        return Response(replace(self, thresholds=None), codes.astype(float), labels, columns=True)

    def check(self, y: ArrayLike, name: str = "y") -> FloatArray:
        """Positions of classes, counted from zero."""
        codes = finite_response(y, name)
        if (codes < 0).any() or (codes != np.round(codes)).any():
            raise ValueError(
                f"{name} must hold positions of classes 0, 1, ... for the ordinal loss: use "
                "covey.GroupSparseClassifier, which accepts any labels."
            )
        return codes

    def on(self, y: FloatArray, weight: FloatArray) -> CumulativeLogits:
        """The likelihood of these rows at the best thresholds, as a function of eta."""
        return CumulativeLogits(self, np.asarray(y, dtype=float), np.asarray(weight, dtype=float))

    def with_thresholds(self, y: FloatArray, eta: FloatArray, weight: FloatArray) -> Ordinal:
        """The loss with the likeliest thresholds at a linear predictor; every class needs a row."""
        return replace(self, thresholds=tuple(self.on(y, weight).thresholds(eta).tolist()))

    def deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """Minus twice the log probability of each row's class: a perfect model is sure of every class."""
        if self.thresholds is None:
            return 2 * self.value(y, eta)
        low, high, gap = self._edges(y)
        return -2 * (log_expit(high - eta) + log_expit(eta - low) + gap)

    def probabilities(self, eta: FloatArray) -> FloatArray:
        """The probability of every class on the last axis, where `eta` has its one predictor."""
        return np.exp(self.log_probabilities(eta))

    def log_probabilities(self, eta: FloatArray) -> FloatArray:
        """Their logarithms, without underflow."""
        low, high, gap = self._edges(np.arange(len(self._known) + 1.0))
        return np.asarray(log_expit(high - eta) + log_expit(eta - low) + gap)

    def classes(self, y: FloatArray) -> NDArray[np.intp]:
        """The class of each row."""
        return np.asarray(y).astype(np.intp)

    def null(self, y: FloatArray, weight: FloatArray, offset: FloatArray | None = None) -> float:
        """Zero: a constant does not change the loss."""
        if np.unique(np.asarray(y)[np.asarray(weight) > 0]).size < 2:
            raise ValueError("Every row is of one class, and a fit needs several: give rows of another class.")
        return 0.0

    @property
    def _known(self) -> Sequence[float]:
        if self.thresholds is None:
            raise ValueError("Ordinal() has no thresholds yet: call with_thresholds(y, eta, weight).")
        return self.thresholds

    def _edges(self, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The thresholds below and above each row's class, and the logarithm of one minus exp of minus their gap."""
        low, high, gap = edges(np.array(self._known)[:, None])
        codes = np.asarray(y).astype(np.intp)
        return low[codes, 0], high[codes, 0], gap[codes, 0]

    def _labels(self, y: Any, name: str) -> Array:
        """The labels that rows have, in their order."""
        kind = getattr(y, "dtype", None)
        if isinstance(y, pd.DataFrame) and y.shape[1] == 1:
            kind = y.dtypes.iloc[0]
        found = read_labels(y, name).labels
        assert found is not None
        if self.order is not None:
            unknown = [label for label in found.tolist() if label not in self.order]
            if unknown:
                raise ValueError(
                    f"{name} has the label {unknown[0]!r}, which order does not name: give all labels from the lowest "
                    "class to the highest."
                )
            ordered: Sequence[Any] = self.order
        elif isinstance(kind, pd.CategoricalDtype) and kind.ordered:
            ordered = kind.categories.tolist()
        elif found.dtype.kind in "iufb":
            return found
        else:
            shown = ", ".join(map(repr, found.tolist()[:4]))
            raise ValueError(
                f"{name} holds labels such as {shown}, whose order is not known: give "
                "loss=covey.losses.Ordinal(order=[...]) from the lowest class to the highest, or an ordered pandas "
                "categorical."
            )
        present = set(found.tolist())
        return np.array([label for label in ordered if label in present], dtype=found.dtype)


@dataclass
class _At:
    """What depends on a predictor: the thresholds, and the shares of rows beyond the edges of their class."""

    eta: FloatArray
    thresholds: FloatArray
    above: FloatArray  # expit(eta - upper threshold)
    below: FloatArray  # expit(lower threshold - eta)
    value: FloatArray


class CumulativeLogits(LossOnRows):
    """Minus the log-likelihood of ordered classes, minimised over the thresholds between them.

    A row of class k between thresholds a and b has the loss ``log(1 + exp(eta - b)) + log(1 + exp(a - eta))`` plus
    ``-log(1 - exp(a - b))``, which does not involve eta. Classes without weight are left out. Of several models, which
    are the second axis of ``eta``, each has its thresholds.

    Parameters
    ----------
    loss : Ordinal
    y : ndarray, shape (n_rows,) or (n_rows, 1)
        Positions of classes.
    weight : ndarray, shape (n_rows,)
    """

    def __init__(self, loss: Ordinal, y: FloatArray, weight: FloatArray) -> None:
        super().__init__(loss, y, weight)
        self.n_rows, used = len(y), np.flatnonzero(weight > 0)
        _, codes, sizes = np.unique(np.ravel(y)[used], return_inverse=True, return_counts=True)
        order = np.argsort(codes, kind="stable")
        self._rows, self._class, self._starts = used[order], codes[order], offsets(sizes)
        self._w = weight[self._rows][:, None]
        self._totals = np.add.reduceat(self._w, self._starts[:-1], axis=0) if sizes.size else np.zeros((0, 1))
        self._last: _At | None = None

    def thresholds(self, eta: FloatArray) -> FloatArray:
        """The likeliest thresholds, one fewer than classes; models are the second axis."""
        found = self._at(eta).thresholds
        return found[:, 0] if np.ndim(eta) == 1 else found

    def values(self, eta: FloatArray) -> FloatArray:
        """Minus the log-likelihood of each row, without its weight; zero for rows without weight."""
        at = self._at(eta)
        low, high, gap = edges(at.thresholds)
        low, high, gap = low[self._class], high[self._class], gap[self._class]
        return self._scattered(-log_expit(high - at.eta) - log_expit(at.eta - low) - gap, eta)

    def total(self, eta: FloatArray) -> float | FloatArray:
        """Minus the log-likelihood."""
        value = self._at(eta).value
        return float(value[0]) if np.ndim(eta) == 1 else value

    def deviance(self, eta: FloatArray) -> float | FloatArray:
        """Twice the total: a perfect model is sure of every class."""
        return 2 * self.total(eta)

    def score(self, eta: FloatArray) -> FloatArray:
        """Minus the gradient of the total; at the likeliest thresholds, it is the same as if they were known."""
        at = self._at(eta)
        return self._scattered(self._w * (at.below - at.above), eta)

    def curvature(self, eta: FloatArray, bounding: bool = False) -> FloatArray:
        """The diagonal of the Hessian with known thresholds: a weight of two is then the same as the row twice."""
        at = self._at(eta)
        return self._scattered(self._w * (at.above * (1 - at.above) + at.below * (1 - at.below)), eta)

    def curvature_product(self, eta: FloatArray, direction: FloatArray) -> FloatArray:
        """The Hessian times a direction, for one model."""
        above, below, T = self._second(eta)
        along = np.asarray(direction, dtype=float)[self._rows]
        moved = np.append(np.linalg.solve(T, self._crossed(above, below, along[:, None])[:, 0]), 0.0)
        product = (above + below) * along - above * moved[self._class] - below * moved[self._class - 1]
        return self._scattered(product[:, None], eta)

    def gram(self, eta: FloatArray, A: FloatArray, bounding: bool = False) -> FloatArray:
        """``A' H A``: what the rows have with known thresholds, less what the thresholds explain."""
        above, below, T = self._second(eta)
        columns = A[self._rows]
        B, M = columns * np.sqrt(above + below)[:, None], self._crossed(above, below, columns)
        return np.asarray(B.T @ B - M.T @ np.linalg.solve(T, M))

    def _second(self, eta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weighted second derivatives of the rows at their upper and lower thresholds, and those in the thresholds."""
        from covey.losses.threshold_kernels import derivatives

        at, w = self._at(eta), self._w[:, 0]
        up, down, limits = (np.ascontiguousarray(one[:, 0]) for one in (at.above, at.below, at.thresholds))
        _, diagonal, beside = derivatives(w, self._starts, self._totals[:, 0], limits, up, down)
        T = np.diag(diagonal) + np.diag(beside[1:], 1) + np.diag(beside[1:], -1)
        return w * up * (1 - up), w * down * (1 - down), T

    def _crossed(self, above: FloatArray, below: FloatArray, columns: FloatArray) -> FloatArray:
        """Minus the mixed second derivatives times columns; shape (n_thresholds, n_columns)."""
        of_above, of_below = (np.add.reduceat(p[:, None] * columns, self._starts[:-1], axis=0) for p in (above, below))
        return np.asarray(of_above[:-1] + of_below[1:])

    def _at(self, eta: FloatArray) -> _At:
        """The likeliest thresholds, kept for one predictor: Newton's method needs total, score and Hessian there."""
        given = np.asarray(eta, dtype=float)[self._rows]
        given = given[:, None] if given.ndim == 1 else given
        last = self._last
        if last is not None and last.eta.shape == given.shape and (last.eta == given).all():
            return last
        at = self._minimised(given, None if last is None or given.shape[1] > 1 else last.thresholds)
        if given.shape[1] == 1:
            self._last = at
        return at

    def _minimised(self, eta: FloatArray, start: FloatArray | None) -> _At:
        """The likeliest thresholds of all models."""
        from covey.losses.threshold_kernels import likeliest  # compiled with the first ordered classes

        if start is None:
            shares = np.cumsum(self._totals / self._totals.sum(), axis=0)[:-1]
            middle = (self._w * eta).sum(axis=0) / self._w.sum()
            start = np.log(shares) - np.log1p(-shares) + middle
        thresholds = np.broadcast_to(start, (max(len(self._totals) - 1, 0), eta.shape[1])).copy()
        found = likeliest(np.ascontiguousarray(eta), self._w[:, 0], self._starts, self._totals[:, 0], thresholds)
        return _At(eta, thresholds, *found)

    def _scattered(self, values: FloatArray, eta: FloatArray) -> FloatArray:
        """Values of the sorted rows, in the order of all rows and the shape of eta."""
        out = np.zeros((self.n_rows, values.shape[1]))
        out[self._rows] = values
        return out[:, 0] if np.ndim(eta) == 1 else out


def edges(thresholds: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The thresholds below and above every class, and ``log(1 - exp(-gap))`` of their gap; first axis of all: classes.

    >>> [part[:, 0].round(2).tolist() for part in edges(np.array([[0.0], [1.0]]))]
    [[-inf, 0.0, 1.0], [0.0, 1.0, inf], [0.0, -0.46, 0.0]]
    """
    ends = np.full((len(thresholds) + 2, thresholds.shape[1]), np.inf)
    ends[0], ends[1:-1] = -np.inf, thresholds
    gap = np.zeros_like(ends[:-1])
    gap[1:-1] = np.log(-np.expm1(-np.diff(thresholds, axis=0)))
    return ends[:-1], ends[1:], gap
