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
from scipy.special import expit, log_expit

from covey.losses.base import Response
from covey.losses.classes import ClassLoss, read_labels
from covey.losses.cumulative import CumulativeLogits, edges
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
class Ordinal(ClassLoss):
    """Ordered classes: ``log(p / (1 - p)) = threshold_k - eta``, with p the probability of class k or a lower one.

    One linear predictor moves the odds of a higher class by the same factor at every threshold (proportional odds). The
    thresholds take the place of an intercept: they are the likeliest ones at each predictor, so that the loss of a row
    depends on the other rows, and adding a constant to `eta` does not change it. `value`, `residual` and `curvature`
    treat the given rows as all the data, with weights of one, unless the thresholds are known.

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
    coupled: ClassVar[bool] = True
    has_intercept: ClassVar[bool] = False

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

    def value(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """Minus the logarithm of the probability of each row's class."""
        if self.thresholds is None:
            return self.on(y, np.ones(len(y))).values(eta)
        low, high, gap = self._edges(y)
        return -log_expit(high - eta) - log_expit(eta - low) - gap

    def residual(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """The probability of a lower class less that of a higher one, given that the row is in its class or beyond."""
        if self.thresholds is None:
            return self.on(y, np.ones(len(y))).score(eta)
        low, high, _ = self._edges(y)
        return expit(low - eta) - expit(eta - high)

    def curvature(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """The sum of ``p (1 - p)`` at the two thresholds of a row's class; the diagonal of the Hessian."""
        if self.thresholds is None:
            return self.on(y, np.ones(len(y))).curvature(eta)
        low, high, _ = self._edges(y)
        return expit(low - eta) * expit(eta - low) + expit(eta - high) * expit(high - eta)

    def curvature_product(self, y: FloatArray, eta: FloatArray, direction: FloatArray) -> FloatArray:
        """The Hessian times a direction; it is diagonal only if the thresholds are known."""
        if self.thresholds is None:
            return self.on(y, np.ones(len(y))).curvature_product(eta, direction)
        return super().curvature_product(y, eta, direction)

    def deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """Twice the value: a perfect model is sure of every class."""
        return 2 * self.value(y, eta)

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
