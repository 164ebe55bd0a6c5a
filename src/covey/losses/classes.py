"""Classes: binomial loss for two classes or proportions, multinomial loss for several classes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pandas import isna
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from covey.arrays import doubles, namespace, spread
from covey.losses.base import Loss, Response
from covey.losses.responses import codes_among, refuse_rows
from covey.validation import Array, FloatArray, finite_response, on_host, one_value

__all__ = ["Binomial", "ClassLoss", "Multinomial", "read_labels"]

# How far the proportions of a row may be from adding up to one: above the round-off error of thousands of float32.
SUM_TOLERANCE = 1e-4

# The least probability with a finite logarithm.
TINY = float(np.finfo(np.float64).tiny)

# The least probability of a class in `deviance_at_mean`, as in scikit-learn's log_loss: a class that was thought
# impossible has a finite deviance.
LEAST = float(np.finfo(np.float64).eps)


class ClassLoss(Loss):
    """Base class of losses whose response may be classes."""

    labelled: ClassVar[bool] = True
    support: ClassVar[tuple[float, float]] = (0.0, 1.0)
    known_dispersion: ClassVar[bool] = True
    effect: ClassVar[str | None] = "odds ratio"

    def classes(self, y: FloatArray) -> NDArray[np.intp] | None:
        """The class of each row; None if there are proportions."""
        if not np.isin(y, (0.0, 1.0)).all():
            return None
        return np.asarray(y if not self.vector else np.argmax(y, axis=1)).astype(np.intp)

    @abstractmethod
    def probabilities(self, eta: FloatArray) -> FloatArray:
        """The probability of every class on the last axis, where `eta` has one predictor or one per class."""

    @abstractmethod
    def log_probabilities(self, eta: FloatArray) -> FloatArray:
        """Their logarithms, without underflow."""

    def deviance_at_mean(self, y: FloatArray, mean: FloatArray) -> FloatArray:
        """Unit deviance of each row at predicted probabilities, with an upper bound."""
        mean = np.clip(mean, LEAST, 1 - LEAST)
        return self.deviance(y, self.link(mean / mean.sum(axis=-1, keepdims=True) if self.vector else mean))

    def check_estimable(self, response: Response, weight: FloatArray, offset: FloatArray | None = None) -> None:
        """Refuse labels of fewer than two classes, and classes without weight."""
        if response.labels is None:
            super().check_estimable(response, weight, offset)
            return
        weights = np.bincount(np.asarray(self.classes(response.y)), weights=weight, minlength=response.labels.size)
        if (weights > 0).sum() < 2:
            raise ValueError(
                f"y has only one class, {_shown(response.labels, np.argmax(weights))}, and a classifier needs two: add "
                "rows of another class with positive weight."
            )
        if not weights.all():
            label = _shown(response.labels, np.argmin(weights))
            raise ValueError(f"All rows of class {label} have weight zero: leave these rows out.")


@dataclass(frozen=True)
class Binomial(ClassLoss):
    """Logistic regression: two classes, 0 and 1, or proportions in between; ``log(1 + exp(eta)) - y eta``.

    Examples
    --------
    >>> Binomial().residual(np.array([0.0, 1.0]), np.zeros(2))
    array([-0.5,  0.5])
    """

    name: ClassVar[str] = "binomial"
    canonical: ClassVar[bool] = True
    takes_tensors: ClassVar[bool] = True

    def check(self, y: ArrayLike, name: str = "y") -> FloatArray:
        """Numbers from 0 to 1."""
        y = finite_response(y, name)
        rule = f"{name} must lie between 0 and 1 for the binomial loss"
        remedy = "Code the two classes as 0 and 1, or use covey.GroupSparseClassifier, which accepts any labels."
        refuse_rows((y < 0) | (y > 1), y, rule, remedy)
        return y

    def value(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``log(1 + exp(eta)) - y eta``."""
        y, eta = doubles(y, eta)
        xp, size = namespace(eta), abs(eta)
        # the second term is exactly zero if a class of 0 or 1 is predicted correctly
        return xp.log1p(xp.exp(-size)) + ((eta + size) / 2 - y * eta)

    def residual(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``y - p`` with ``p = 1 / (1 + exp(-eta))``."""
        # measured from the nearer of 0 and 1, so that no digits are lost when p is close to it
        y, eta = doubles(y, eta)
        xp = namespace(eta)
        small = xp.exp(-abs(eta))
        small = small / (1 + small)
        return xp.where(eta >= 0, (y - 1) + small, y - small)

    def curvature(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``p (1 - p)``."""
        y, eta = doubles(y, eta)
        small = namespace(eta).exp(-abs(eta))
        return spread(small / (1 + small) ** 2, y)

    def link(self, mean: FloatArray) -> FloatArray:
        """``log(p / (1 - p))``, finite at 0 and 1."""
        (mean,) = doubles(mean)
        return np.log(np.maximum(mean, TINY)) - np.log(np.maximum(1 - mean, TINY))

    def inverse_link(self, eta: FloatArray) -> FloatArray:
        """``1 / (1 + exp(-eta))``."""
        return 1 / (1 + np.exp(-np.maximum(*doubles(eta, np.ceil(np.log(TINY))))))

    def probabilities(self, eta: FloatArray) -> FloatArray:
        """Of class 0 and class 1."""
        p = self.inverse_link(eta)
        return np.concatenate([1 - p, p], axis=-1)

    def log_probabilities(self, eta: FloatArray) -> FloatArray:
        """``-log(1 + exp(eta))`` and ``-log(1 + exp(-eta))``."""
        return -np.concatenate([np.logaddexp(0, eta), np.logaddexp(0, -eta)], axis=-1)

    def deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``2 (y log(y / p) + (1 - y) log((1 - y) / (1 - p)))``."""
        y, eta = doubles(y, eta)
        return namespace(eta).clip(2 * (self.value(y, eta) + _times_log(y) + _times_log(1 - y)), 0, None)

    def _constant(self, y: FloatArray, weight: FloatArray, offset: FloatArray) -> float:
        if not y.any() or (y == 1).all():
            raise ValueError(f"Every row is of class {y[0]:g}, and a fit needs both: give rows of the other class.")
        if not np.ptp(offset):
            mean = float(weight @ y)
            return float(np.log(max(mean, TINY)) - np.log(max(1 - mean, TINY)) - offset[0])
        return super()._constant(y, weight, offset)


@dataclass(frozen=True)
class Multinomial(ClassLoss):
    """Several classes: ``log(sum_a exp(eta_a)) - sum_a y_a eta_a``, with `y` one-hot or proportions of each class.

    The last axis of `y` and `eta` holds the classes. Adding a constant to all entries of `eta` does not change the
    loss; `link` and `null` return predictors with mean zero over the classes.

    Examples
    --------
    >>> Multinomial().residual(np.array([[1.0, 0.0]]), np.zeros((1, 2)))
    array([[ 0.5, -0.5]])
    """

    name: ClassVar[str] = "multinomial"
    canonical: ClassVar[bool] = True
    vector: ClassVar[bool] = True

    def check(self, y: ArrayLike, name: str = "y") -> FloatArray:
        """Proportions of the classes in each row, which add up to one."""
        remedy = "Code labels 0, 1, ... as np.eye(n_classes)[labels], or use covey.GroupSparseClassifier."
        if np.ndim(y) != 2 or np.shape(y)[1] < 2:
            rule = f"{name} must have one column per class, and at least two, for the multinomial loss"
            raise ValueError(f"{rule}, not shape {np.shape(y)}. {remedy}")
        y = finite_response(y, name, vector=True)
        refuse_rows(y < 0, y, f"{name} must not be negative for the multinomial loss", remedy)
        sums = y.sum(axis=1, keepdims=True)
        refuse_rows(np.abs(sums - 1) > SUM_TOLERANCE, y, f"{name} must add up to one in every row", remedy)
        return y / sums

    def value(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``log(sum_a exp(eta_a)) - sum_a y_a eta_a``."""
        y, eta = _classes_first(*doubles(y, eta))
        # the entries of y add up to one
        below = eta.max(axis=0) - eta
        return np.log(np.exp(-below).sum(axis=0)) + (y * below).sum(axis=0)

    def residual(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``y - p`` with ``p = softmax(eta)``."""
        y, eta = doubles(y, eta)
        return y - self.inverse_link(eta)

    def curvature(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``sum_a p_a (1 - p_a) / (n_classes - 1)``: the trace of the Hessian over its rank."""
        y, eta = _classes_first(*doubles(y, eta))
        p = _softmax(eta)
        return spread((p * (1 - p)).sum(axis=0), y[0]) / (len(eta) - 1)

    def curvature_product(self, y: FloatArray, eta: FloatArray, direction: FloatArray) -> FloatArray:
        """``p * direction - p (p . direction)``."""
        y, eta = doubles(y, eta)
        p, along = _classes_first(self.inverse_link(eta), *doubles(direction))
        return spread(_classes_last(p * (along - (p * along).sum(axis=0))), y)

    def link(self, mean: FloatArray) -> FloatArray:
        """``log(p)`` less its mean over the classes, finite at 0."""
        logs = np.log(np.maximum(mean, TINY))
        return logs - logs.mean(axis=-1, keepdims=True)

    def inverse_link(self, eta: FloatArray) -> FloatArray:
        """``softmax(eta)``."""
        return _classes_last(_softmax(*_classes_first(*doubles(eta))))

    def probabilities(self, eta: FloatArray) -> FloatArray:
        """``softmax(eta)``."""
        return self.inverse_link(eta)

    def log_probabilities(self, eta: FloatArray) -> FloatArray:
        """``eta_a - log(sum_b exp(eta_b))``."""
        return np.asarray(eta - np.logaddexp.reduce(eta, axis=-1, keepdims=True))

    def deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``2 sum_a y_a log(y_a / p_a)``."""
        y, eta = doubles(y, eta)
        (logs,) = _classes_first(_times_log(y))
        return np.maximum(2 * (self.value(y, eta) + logs.sum(axis=0)), 0)

    def free_outputs(self, n_outputs: int) -> int:
        """One less than the number of classes: adding a constant to all of them does not change the loss."""
        return n_outputs - 1

    def balance(self, y: FloatArray, weight: FloatArray) -> FloatArray:
        """The class of each row, or the most likely one."""
        return np.asarray(y).argmax(axis=1).astype(float)

    def _constant(self, y: FloatArray, weight: FloatArray, offset: FloatArray) -> FloatArray:
        missing = np.flatnonzero(~y.any(axis=0))
        if missing.size:
            names = ", ".join(map(str, missing))
            raise ValueError(f"No row is of class {names} (counted from 0): leave its column out, or give rows of it.")
        if not np.ptp(offset, axis=0).any():
            constant = self.link(weight @ y) - offset[0]
        else:
            constant = super()._constant(y, weight, offset)
        return constant - constant.mean()


def read_labels(y: ArrayLike, name: str = "y", classes: Array | None = None) -> Response:
    """Labels of classes as 0 and 1 for the binomial loss, or one column per class for the multinomial loss.

    Parameters
    ----------
    y : array-like, shape (n_rows,)
        Labels of any kind.
    name : str
        How messages refer to `y`.
    classes : ndarray, optional
        The sorted labels of an earlier response, to code `y` in the same way. By default, the labels in `y`.

    Examples
    --------
    >>> read_labels(["no", "yes", "no"]).y.tolist(), read_labels(["a", "c", "b"]).y.argmax(axis=1).tolist()
    ([0.0, 1.0, 0.0], [0, 2, 1])
    """
    values = column_or_1d(on_host(y))
    # numpy would turn a missing label among texts into the text "nan"
    given = np.array(y, dtype=object).reshape(len(values)) if isinstance(y, list | tuple) else values
    missing = np.flatnonzero(isna(given) if given.dtype.kind != "f" else ~np.isfinite(given))
    if missing.size:
        known = set(np.delete(given, missing).tolist())
        if len(known) == 1 and given.dtype.kind != "f":
            raise ValueError(one_value(name, known.pop(), f"{missing.size} rows of {len(given)}"))
        raise ValueError(
            f"{name} has missing labels (NaN, None or NA, or infinite), first in row {missing[0]} ({missing.size} in "
            "all): drop these rows, or give them a label."
        )
    with np.errstate(invalid="ignore"):  # labels such as 1e100 are cast to integers there
        check_classification_targets(values)
    labels = np.unique(values) if classes is None else classes
    codes = codes_among(values, labels, f"{name} has the label")
    if labels.size == 2:
        return Response(Binomial(), codes.astype(float), labels, columns=True)
    return Response(Multinomial(), np.eye(labels.size)[codes], labels, columns=True)


def _shown(labels: Array, position: int | np.intp) -> str:
    """A label for messages."""
    return repr(labels[position : position + 1].tolist()[0])


def _classes_first(*arrays: FloatArray) -> tuple[FloatArray, ...]:
    """Arrays with the last axis moved first, also in memory, which makes sums over a few classes fast."""
    width = max(array.ndim for array in arrays)
    padded = (array.reshape((1,) * (width - array.ndim) + array.shape) for array in arrays)
    return tuple(np.ascontiguousarray(array.transpose(width - 1, *range(width - 1))) for array in padded)


def _classes_last(array: FloatArray) -> FloatArray:
    """An array with its first axis last."""
    return array.transpose(*range(1, array.ndim), 0)


def _softmax(eta: FloatArray) -> FloatArray:
    """Probabilities of classes on the first axis."""
    small = np.exp(eta - eta.max(axis=0))
    return small / small.sum(axis=0)


def _times_log(y: FloatArray) -> FloatArray:
    """``y log y``, zero at zero."""
    xp = namespace(y)
    return y * xp.log(xp.where(y > 0, y, 1))
