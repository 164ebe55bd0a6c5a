"""Observations: the observations and their loss, as a function of the linear predictor of all rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.arrays import host, like
from covey.losses import Loss
from covey.losses.base import LossOnRows
from covey.validation import ArrayOrTensor, FloatArray

__all__ = ["Observations", "weighted_gram"]


@dataclass(frozen=True)
class Observations:
    """The data that a linear predictor is fitted to. Predictors have shape (n_rows, n_outputs) for every loss.

    If adding a constant to all outputs does not change the loss (as with classes), predictors are contrasts of the
    outputs, and there is one contrast fewer than outputs.

    Attributes
    ----------
    loss : Loss
    y : ndarray, shape (n_rows,), or (n_rows, ...) if the loss takes several numbers per row
    weight : ndarray, shape (n_rows,)
        Zero for rows that are not used.
    offset : ndarray, shape (n_rows, 1), or one column per output of the loss
        Added to every predictor.
    one : ndarray, shape (n_rows,)
        The column of the intercept: ones, unless rows were compressed (see `covey.search.table`).
    """

    loss: Loss
    y: FloatArray
    weight: FloatArray
    offset: FloatArray
    one: FloatArray

    @cached_property
    def contrasts(self) -> FloatArray:
        """The matrix that maps predictors to those of the loss; shape (n_outputs, n_outputs of the loss).

        Its rows are orthonormal and span the directions in which the loss changes.
        """
        n_outputs, free = self.offset.shape[1], self.n_outputs
        if free == n_outputs:
            return np.eye(n_outputs)
        # differences of each output from the mean of those before it
        rows = np.tril(np.ones((n_outputs, n_outputs)), -1)[1:]
        rows[np.arange(free), np.arange(1, n_outputs)] = -np.arange(1, n_outputs)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    @property
    def n_outputs(self) -> int:
        """The number of columns of a predictor."""
        return self.loss.free_outputs(self.offset.shape[1])

    @property
    def isotropic(self) -> bool:
        """Whether outputs do not interact and `gram` is the second derivative for each of them."""
        return not self.loss.vector or type(self.loss).curvature_product is Loss.curvature_product

    @cached_property
    def used(self) -> NDArray[np.bool_]:
        """The rows of positive weight."""
        return self.weight > 0

    @cached_property
    def training(self) -> Observations:
        """The rows of positive weight alone."""
        return self if self.used.all() else self.rows(self.used)

    @cached_property
    def total_weight(self) -> float:
        """The sum of the weights of the rows."""
        return float(self.weight @ (self.one * self.one))

    @cached_property
    def n_informative(self) -> int:
        """The number of rows, or of events."""
        informative = self.loss.informative(self.y)
        return len(self.y) if informative is None else int(informative.sum())

    def weighted(self, weight: FloatArray) -> Observations:
        """The same observations with other weights."""
        return replace(self, weight=weight)

    def near(self, A: ArrayOrTensor) -> Observations:
        """The same observations where A lives, if the loss can be computed there."""
        if isinstance(A, np.ndarray) or not self.loss.takes_tensors:
            return self
        if "_near" not in vars(self):
            here = replace(self, **{name: like(getattr(self, name), A) for name in ("y", "weight", "offset", "one")})
            vars(here).update(unit=self.unit, total_weight=self.total_weight)
            if not self.loss.known_dispersion:
                vars(here).update(least=self.least)
            vars(self)["_near"] = here
        return vars(self)["_near"]

    def predictor(self, A: ArrayOrTensor, coef: FloatArray) -> ArrayOrTensor:
        """``A coef``, where these observations are."""
        eta = A @ like(coef, A)
        return host(eta) if isinstance(self.weight, np.ndarray) else eta

    def rows(self, which: NDArray[Any]) -> Observations:
        """Some of the rows."""
        return Observations(self.loss, self.y[which], self.weight[which], self.offset[which], self.one[which])

    @cached_property
    def apart(self) -> list[Observations]:
        """The same observations for each output, if the outputs do not interact; otherwise none."""
        if not self.loss.vector:
            return [self]
        return [
            Observations(loss, self.y[:, j], self.weight, self.offset[:, [j]], self.one)
            for j, loss in enumerate(self.loss.apart())
        ]

    @cached_property
    def on_rows(self) -> LossOnRows:
        """The loss on these rows, as a function of its predictors."""
        return self.loss.on(self.y, self.weight)

    @cached_property
    def for_models(self) -> LossOnRows:
        """The loss of one output on these rows, for predictors of several models, shape (n_rows, n_models)."""
        return self.on_rows if self.loss.coupled else self.loss.on(self.y[:, None], self.weight)

    def shifted(self, eta: FloatArray) -> FloatArray:
        """Predictors of several models of one output, with the offset."""
        return eta + self.offset if self.has_offset else eta

    @cached_property
    def has_offset(self) -> bool:
        """Whether the offset is not zero everywhere."""
        return bool(self.offset.any())

    def total(self, eta: FloatArray) -> float:
        """The weighted sum of the loss."""
        if self.loss.coupled:
            return float(self.on_rows.total(self._to_loss(eta)))
        return float(self.weight @ self.loss.value(self.y, self._to_loss(eta)))

    def score(self, eta: FloatArray) -> FloatArray:
        """Minus the derivative of the total in the predictor; shape (n_rows, n_outputs)."""
        if self.loss.coupled:
            return self.on_rows.score(self._to_loss(eta))[:, None]
        return self.weight[:, None] * self._from_loss(self.loss.residual(self.y, self._to_loss(eta)))

    def score_by_row(self, eta: FloatArray, A: FloatArray) -> FloatArray:
        """What each row adds to minus the derivative in the coefficients of columns A, for a loss of one output."""
        if self.loss.survival:
            return np.asarray(self.on_rows.score_by_row(self._to_loss(eta), A))  # type: ignore[attr-defined]
        return A * self.score(eta)

    @property
    def bounded(self) -> bool:
        """Whether the loss supplies a quadratic bound for places where it rises above its quadratic model."""
        return type(self.loss).bounding_curvature is not Loss.bounding_curvature

    def curvature(self, eta: FloatArray, bounding: bool = False) -> FloatArray:
        """The second derivative of the total per row, or of a quadratic bound if `bounding`; shape (n_rows,)."""
        if self.loss.quadratic:
            return self.weight
        if self.loss.coupled:
            return self.on_rows.curvature(self._to_loss(eta), bounding)
        of_loss = self.loss.bounding_curvature if bounding else self.loss.curvature
        return self.weight * of_loss(self.y, self._to_loss(eta))

    def gram(self, eta: FloatArray, A: ArrayOrTensor, bounding: bool = False) -> FloatArray:
        """``A' H A``, with H the second derivative of the total; with several outputs, H is `curvature`.

        It is computed where A lives.
        """
        if self.loss.coupled:
            return self.on_rows.gram(self._to_loss(eta), host(A), bounding)
        return weighted_gram(A, self.curvature(eta, bounding))

    def grams(self, eta: ArrayOrTensor, A: ArrayOrTensor) -> list[FloatArray]:
        """The same for several models of one output, whose predictors are the columns of `eta`."""
        if self.loss.coupled:
            return [self.on_rows.gram(one + self.offset[:, 0], host(A)) for one in eta.T]
        weights = self.weight[:, None] * self.loss.curvature(self.y[:, None], self.shifted(eta))
        return [weighted_gram(A, one) for one in weights.T]

    def relative_curvatures(self, eta: ArrayOrTensor, one: int) -> FloatArray:
        """The curvature of several models of one output, summed over the rows, in units of that of one of them."""
        if self.loss.coupled:  # that of survival times sums to the number of events at every model
            return np.ones(eta.shape[1])
        sums = host(self.weight @ self.loss.curvature(self.y[:, None], self.shifted(eta)))
        return sums / sums[one] if sums.min() > 0 else np.ones_like(sums)

    def curvature_product(self, eta: FloatArray, direction: FloatArray) -> FloatArray:
        """The second derivative of the total times a direction; shape (n_rows, n_outputs)."""
        along = direction @ self.contrasts if self.loss.vector else direction[:, 0]
        return self._from_loss(self.on_rows.curvature_product(self._to_loss(eta), along))

    def deviance(self, eta: FloatArray) -> float:
        """The weighted sum of the unit deviances."""
        return float(self.on_rows.deviance(self._to_loss(eta)))

    @cached_property
    def null(self) -> FloatArray:
        """The best constant predictor; shape (n_outputs,)."""
        if self.loss.quadratic:
            return np.atleast_1d((self.weight * self.one) @ self.y / self.total_weight)
        if not self.loss.has_intercept:  # a constant changes nothing; splits have been checked for something to learn
            return np.zeros(self.n_outputs)
        offset = self.offset if self.loss.vector else self.offset[:, 0]
        constant = self.loss.null(
            self.y[self.used], self.weight[self.used], offset[self.used] if offset.any() else None
        )
        return np.asarray(self.contrasts @ np.atleast_1d(np.asarray(constant, dtype=float)))

    def at_null(self, intercept: bool = True) -> FloatArray:
        """The predictor of the model without columns; shape (n_rows, n_outputs)."""
        return np.outer(self.one, self.null if intercept else np.zeros(self.n_outputs))

    @cached_property
    def unit(self) -> float:
        """The root of the weighted sum of the squared residuals of the best constant predictor."""
        score = self.score(self.at_null())[self.used]
        return float(np.sqrt((score * score / self.weight[self.used, None]).sum()))

    def null_curvature(self, intercept: bool) -> float:
        """The summed curvature of the null model: the unit of penalties, the same for weights and for repeated rows."""
        return float(self.curvature(self.at_null(intercept), self.loss.coupled) @ (self.one * self.one))

    @cached_property
    def least(self) -> float:
        """The total of the saturated model, found at another one: that of zeros is at an infinite predictor."""
        eta = self.at_null()
        return self.total(eta) - self.deviance(eta) / 2

    def scale(self, total: float) -> float:
        """The total weight times the dispersion at a model with this total."""
        weight, loss = self.total_weight, self.loss
        return weight * loss.dispersion(0.0 if loss.known_dispersion else max(2 * (total - self.least), 0.0) / weight)

    def _to_loss(self, eta: FloatArray) -> FloatArray:
        return eta @ self.contrasts + self.offset if self.loss.vector else eta[:, 0] + self.offset[:, 0]

    def _from_loss(self, values: FloatArray) -> FloatArray:
        return values @ self.contrasts.T if self.loss.vector else values[:, None]


def weighted_gram(A: ArrayOrTensor, weight: FloatArray) -> FloatArray:
    """``A' diag(weight) A``, computed where A lives."""
    B = A * like(weight**0.5, A)[:, None]
    return host(B.T @ B)  # BLAS computes only half of a matrix times its transpose
