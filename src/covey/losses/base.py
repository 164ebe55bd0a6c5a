"""The base class of losses: a few functions of the response `y` and the linear predictor `eta`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covey.arrays import doubles
from covey.losses.constant import best_constant, best_constants
from covey.losses.responses import read_offset, robust_scale, weighted_median, within_range
from covey.validation import Array, FloatArray, finite_response, response_numbers

__all__ = ["CoupledLoss", "Loss", "LossOnRows", "Response"]

# A scale that is at least this share of the one before has settled.
SETTLED = 0.8


class Loss(ABC):
    """The loss of a model: minus the log-likelihood of each row, as a function of the linear predictor ``eta``.

    A fit minimises ``sum_i weight_i value(y_i, eta_i)`` with ``eta = offset + intercept + X w``. A loss is convex in
    eta, and defines how the mean of the response depends on eta (`link`, `inverse_link`). To write one, subclass this
    class and implement `value`, `residual` and `curvature`; override other methods if their defaults are wrong. Make it
    a frozen dataclass, so that it can be compared, hashed and copied.

    There are two kinds. If `vector` is False, all functions act elementwise, and `y` and `eta` broadcast (for instance
    ``y`` of shape (n, 1) against the predictors of many models, (n, n_models)). If it is True, the last axis of `y` and
    `eta` holds the outputs of a row, and `value`, `deviance` and `curvature` drop it. Results are
    float64.

    Solvers use the object that `on` returns. A loss in which rows depend on each other is a `CoupledLoss`.

    Attributes
    ----------
    name : str
        The name used in settings and tables.
    vector : bool
        Whether a row has several outputs.
    several : bool
        Whether these outputs are several responses, each with its units, rather than the classes of one.
    quadratic : bool
        Whether the second derivative is one for every row and output, so that a single Newton step reaches the minimum.
    identity_link : bool
        Whether the loss depends on ``y - eta`` alone, so that the same constant can be subtracted from both.
    log_link : bool
        Whether the mean is ``exp(eta)``, and the response not negative.
    labelled : bool
        Whether the response may stand for labels of classes.
    known_dispersion : bool
        Whether the likelihood has no scale parameter to estimate; `criterion` and `dispersion` depend on it.
    effect : str or None
        The name of ``exp(coefficient)``; None if it has no meaning.
    unpenalised : str
        The name of the unpenalised fit.
    parameter : str or None
        The field whose value, if it is None, `estimate` finds at a model, such as a scale.
    coupled : bool
        Whether the loss of a row depends on the other rows.
    canonical : bool
        Whether `value` is a function of eta minus ``y eta``, so that the response does not change its curvature.
    takes_tensors : bool
        Whether `value`, `residual`, `curvature` and `deviance` take torch tensors as well as arrays, so that they can
        be computed where X lives.
    survival : bool
        Whether the response is survival times, some of them censored.
    has_intercept : bool
        Whether adding a constant to eta changes the loss.
    limit : float or None
        The residual beyond which a row is an outlier, if outliers are expected.
    support : (float, float)
        The least and the largest response that there can be; prediction intervals end there.
    """

    name: ClassVar[str]
    vector: ClassVar[bool] = False
    several: ClassVar[bool] = False
    quadratic: ClassVar[bool] = False
    identity_link: ClassVar[bool] = False
    log_link: ClassVar[bool] = False
    labelled: ClassVar[bool] = False
    known_dispersion: ClassVar[bool] = False
    effect: ClassVar[str | None] = None
    unpenalised: ClassVar[str] = "maximum likelihood"
    parameter: ClassVar[str | None] = None
    coupled: ClassVar[bool] = False
    canonical: ClassVar[bool] = False
    takes_tensors: ClassVar[bool] = False
    survival: ClassVar[bool] = False
    has_intercept: ClassVar[bool] = True
    limit: float | None = None
    support: ClassVar[tuple[float, float]] = (-np.inf, np.inf)

    def read(self, y: ArrayLike, name: str = "y") -> Response:
        """The response in the form that is fitted, with the loss that fits it."""
        if not (self.vector or self.coupled):
            y = response_numbers(y, name)
            if y.ndim == 2 and y.shape[1] > 1:
                raise ValueError(
                    f"{name} has {y.shape[1]} columns, and the {self.name} loss is for one response: fit them one by "
                    "one, or use loss='squared'."
                )
        return Response(self, self.check(y, name), columns=self.vector)

    def check(self, y: ArrayLike, name: str = "y") -> FloatArray:
        """The response as float64, (n,) or (n, n_outputs); a ValueError names the first invalid row."""
        return within_range(finite_response(y, name, vector=self.vector), name)

    @abstractmethod
    def value(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """Minus the log-likelihood of each row at unit dispersion, up to terms that do not involve eta."""

    @abstractmethod
    def residual(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """Minus the derivative of `value` in eta."""

    @abstractmethod
    def curvature(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """The second derivative of `value` in eta, not negative.

        For a vector loss it is a number ``h`` per row: the Hessian is approximately ``h`` times a projection.
        """

    def curvature_product(self, y: FloatArray, eta: FloatArray, direction: FloatArray) -> FloatArray:
        """The exact Hessian of `value` in eta times a direction of the same shape as eta."""
        curvature = self.curvature(y, eta)
        return (curvature[..., None] if self.vector else curvature) * direction

    def apart(self) -> Sequence[Loss]:
        """The losses of the single outputs, if the loss of a row is their sum; otherwise none."""
        return ()

    def bounding_curvature(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """The curvature of a parabola that touches the loss at eta and lies nowhere below it, if one is known.

        Newton's method falls back on it when the second derivative is not informative, as with a loss that is linear in
        places. The default is the second derivative itself; the fit then relies on shorter steps.
        """
        return self.curvature(y, eta)

    def link(self, mean: FloatArray) -> FloatArray:
        """The linear predictor that gives a mean."""
        return mean

    def inverse_link(self, eta: FloatArray) -> FloatArray:
        """The mean of the response at a linear predictor."""
        return eta

    def deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """Unit deviance of each row: twice the excess of the value over the saturated model's; not negative."""
        y, eta = doubles(y, eta)
        return np.maximum(2 * (self.value(y, eta) - self.value(y, self.link(y))), 0)

    def deviance_at_mean(self, y: FloatArray, mean: FloatArray) -> FloatArray:
        """Unit deviance of each row at a predicted mean."""
        return self.deviance(y, self.link(mean))

    def distance(self, at: FloatArray, eta: FloatArray) -> FloatArray:
        """How far a model is from another one in a row: the deviance from what the other one predicts.

        If the two are close, twice the root of the dispersion times this is the standard error of the difference of
        their deviances.
        """
        return self.deviance(self.inverse_link(at), eta)

    def misfit(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """How far a response is from what is predicted: the absolute residual, or the root of the deviance.

        Prediction intervals consist of the responses whose misfit is no larger than that of most held-out rows.
        """
        return np.abs(np.subtract(y, eta)) if self.identity_link else np.sqrt(self.deviance(y, eta))

    def null(self, y: FloatArray, weight: FloatArray, offset: FloatArray | None = None) -> float | FloatArray:
        """The constant that, added to the offset, minimises the weighted loss: a number, or one per output.

        Raises
        ------
        ValueError
            If no finite constant does, as with counts that are all zero.
        """
        y, weight = np.asarray(y, dtype=np.float64), np.asarray(weight, dtype=np.float64)
        shift = np.zeros_like(y) if offset is None else np.asarray(offset, dtype=np.float64)
        if shift.shape != y.shape:
            raise ValueError(
                f"offset has shape {shift.shape}, but the response has {y.shape}: give one number per entry."
            )
        rows = weight > 0
        if not rows.any():
            raise ValueError("The weight is zero in every row.")
        share = weight[rows] / weight[rows].max()
        return self._constant(y[rows], share / share.sum(), shift[rows])

    def check_estimable(self, response: Response, weight: FloatArray, offset: FloatArray | None = None) -> None:
        """Refuse a response that no model can be fitted to, such as counts that are all zero, and a loss not convex."""
        if self.quadratic:
            return
        null = self.null(response.y, weight, offset)
        if self.vector or self.coupled or self.has_scale:
            return
        curvature = self.curvature(response.y, np.zeros_like(response.y) + null + (0.0 if offset is None else offset))
        if not np.all(curvature >= 0):
            row = int(np.argmin(curvature >= 0))
            raise ValueError(
                f"The curvature of the {self.name} loss is {curvature[row]:.5g} in row {row}, at a constant: "
                "value must be convex in eta, and curvature its second derivative."
            )

    def dispersion(self, mean_deviance: float) -> float:
        """The dispersion by which deviances are divided, given the mean unit deviance of a good model."""
        return 1.0 if self.known_dispersion else float(mean_deviance)

    def criterion(self, mean_deviance: float | FloatArray, n: float) -> float | FloatArray:
        """Minus twice the log-likelihood up to a constant, from the mean unit deviance of `n` observations.

        An unknown dispersion is profiled out of the extended quasi-likelihood (Nelder and Pregibon, 1987): its best
        value there is the mean deviance, hence the logarithm, and a constant factor in `mean_deviance` does not matter.
        This is the maximum of the likelihood for normal responses, and an approximation for others, such as gamma. For
        `MultiSquared` every response is an observation: n is the number of rows times the number of responses.
        """
        deviance = np.asarray(mean_deviance, dtype=np.float64)
        result = n * (deviance if self.known_dispersion else np.log(np.maximum(deviance, np.finfo(np.float64).tiny)))
        return result if deviance.ndim else float(result)

    def free_outputs(self, n_outputs: int) -> int:
        """The degrees of freedom per column of a model with this many outputs."""
        return n_outputs

    def observations(self, n_outputs: int) -> int:
        """The number of observations that a row with this many outputs counts as in `criterion`."""
        return 1

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs if the loss has them, as quantiles do."""
        return ()

    @property
    def in_words(self) -> str:
        """What its parameters say about the response; empty if they need no words."""
        return ""

    @property
    def has_scale(self) -> bool:
        """Whether the loss has a parameter that is to be estimated."""
        return self.parameter is not None and getattr(self, self.parameter) is None

    def estimate(self, y: FloatArray, eta: FloatArray, weight: FloatArray) -> float:
        """The value of `parameter` that fits a linear predictor; the rows are float64."""
        raise NotImplementedError(f"{type(self).__name__} must implement estimate(y, eta, weight).")

    def scaled_to(self, y: FloatArray, eta: FloatArray, weight: FloatArray) -> Self:
        """The loss with its parameter estimated at a linear predictor; the loss itself if that is known or missing."""
        if self.parameter is None or getattr(self, self.parameter) is not None:
            return self
        rows = (np.asarray(one, dtype=np.float64) for one in (y, eta, weight))
        found: Any = replace(self, **{self.parameter: self.estimate(*rows)})  # type: ignore[type-var]
        return found

    def known(self) -> float:
        """The parameter, which must be given or estimated by now."""
        value = getattr(self, str(self.parameter))
        if value is None:
            call = "give it one, or call scaled_to(y, eta, weight)"
            raise ValueError(f"{type(self).__name__}() has no {self.parameter} yet: {call}.")
        return float(value)

    def settled(self, before: Self) -> bool:
        """Whether the parameter is close to that by which the model was selected that it was estimated at.

        The default is for scales, which must be hardly smaller.
        """
        return self.parameter is None or self.known() >= SETTLED * before.known()

    def limited_to(self, residuals: FloatArray, weight: FloatArray) -> Loss:
        """The loss with its `limit`, from the residuals of a constant; the loss itself if it has none."""
        return self

    def informative(self, y: FloatArray) -> NDArray[np.bool_] | None:
        """The rows that count as observations, as a mask; None for all."""
        return None

    def classes(self, y: FloatArray) -> NDArray[np.intp] | None:
        """The class of each row, if the response consists of classes, which every fold should contain."""
        return None

    def balance(self, y: FloatArray, weight: FloatArray) -> FloatArray:
        """The value of each row by which folds are balanced: the response, or the sum of standardised responses."""
        y = np.asarray(y)
        if y.ndim == 1:
            return y
        share = np.asarray(weight, dtype=float) / np.sum(weight)
        centred = y - share @ y
        deviation = np.sqrt(share @ centred**2)
        return np.asarray((centred / np.where(deviation > 0, deviation, 1.0)).sum(axis=1))

    def on(self, y: FloatArray, weight: FloatArray) -> LossOnRows:
        """The loss on weighted rows, as a function of eta."""
        return LossOnRows(self, y, weight)

    def _constant(self, y: FloatArray, weight: FloatArray, offset: FloatArray) -> Any:
        """The null model; weights add up to one and none is zero. A parameter that is not known fits a first guess."""
        start: Any = np.asarray(self.link(weight @ y)) - weight @ offset
        width = 1.0
        if self.identity_link and not self.vector:
            start = weighted_median(y - offset, weight)
            width = robust_scale(np.abs(y - offset - start), weight)
        loss = self.scaled_to(y, offset + start, weight)
        if self.vector:
            return best_constants(loss, y, weight, offset, start)
        return best_constant(loss, y, weight, offset, float(start), width)


class CoupledLoss(Loss):
    """A loss of rows that depend on each other, such as a partial likelihood, and that a constant does not change.

    It is written as a `LossOnRows`, which `on` returns. `value`, `residual` and `curvature` treat the given rows as all
    the data, with weights of one.
    """

    coupled: ClassVar[bool] = True
    has_intercept: ClassVar[bool] = False

    @abstractmethod
    def on(self, y: FloatArray, weight: FloatArray) -> LossOnRows:
        """The loss on weighted rows, as a function of eta."""

    def null(self, y: FloatArray, weight: FloatArray, offset: FloatArray | None = None) -> float | FloatArray:
        """Zero: a constant does not change the loss."""
        return 0.0

    def value(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """What each row adds to the loss."""
        return self._alone(y).values(eta)

    def residual(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """Minus the gradient."""
        return self._alone(y).score(eta)

    def curvature(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """The diagonal of the Hessian, or of one with parameters of the rows known."""
        return self._alone(y).curvature(eta)

    def curvature_product(self, y: FloatArray, eta: FloatArray, direction: FloatArray) -> FloatArray:
        """The Hessian times a direction; it is not diagonal."""
        return self._alone(y).curvature_product(eta, direction)

    def _alone(self, y: FloatArray) -> LossOnRows:
        return self.on(y, np.ones(len(y)))


class LossOnRows:
    """The weighted sum of a loss over rows that do not depend on each other.

    The first axis of ``eta`` is rows, and a second one may hold models. If the loss has several outputs, they are the
    last axis of `eta`. Losses whose rows depend on each other override every method.

    Parameters
    ----------
    loss : Loss
    y, weight : ndarray
    """

    def __init__(self, loss: Loss, y: FloatArray, weight: FloatArray) -> None:
        self.loss, self.y, self.weight = loss, y, weight

    def values(self, eta: FloatArray) -> FloatArray:
        """What each row adds to the total, without its weight."""
        return self.loss.value(self.y, eta)

    def total(self, eta: FloatArray) -> float | FloatArray:
        """The weighted sum: a float, or one per model."""
        return self._sum(self.loss.value(self.y, eta))

    def deviance(self, eta: FloatArray) -> float | FloatArray:
        """Twice the excess of the total over the saturated model's."""
        return self._sum(self.loss.deviance(self.y, eta))

    def score(self, eta: FloatArray) -> FloatArray:
        """Minus the gradient of the total."""
        return self._weighted(self.loss.residual(self.y, eta))

    def curvature(self, eta: FloatArray, bounding: bool = False) -> FloatArray:
        """The diagonal of the Hessian of the total, or of a quadratic bound on it, for one model: one per row."""
        of_rows = self.loss.bounding_curvature if bounding else self.loss.curvature
        return self.weight * of_rows(self.y, eta)

    def curvature_product(self, eta: FloatArray, direction: FloatArray) -> FloatArray:
        """The Hessian of the total times a direction, for one model."""
        return self._weighted(self.loss.curvature_product(self.y, eta, direction))

    def gram(self, eta: FloatArray, A: FloatArray, bounding: bool = False) -> FloatArray:
        """``A' H A``, where H is the Hessian of the total, or of a quadratic bound on it, for one model."""
        B = A * np.sqrt(self.curvature(eta, bounding))[:, None]
        return np.asarray(B.T @ B)  # BLAS computes only half of a matrix times its transpose

    def _sum(self, values: FloatArray) -> float | FloatArray:
        total = self.weight @ values
        return float(total) if values.ndim == 1 else total

    def _weighted(self, values: FloatArray) -> FloatArray:
        return self.weight.reshape(-1, *[1] * (values.ndim - 1)) * values


@dataclass(frozen=True)
class Response:
    """A checked response and the loss that fits it.

    Attributes
    ----------
    loss : Loss
        Not always the loss that read the response: squared loss of several columns is `MultiSquared`.
    y : ndarray of float64, shape (n_rows,) or (n_rows, n_outputs)
        For survival times, rows of (start, stop, event, stratum).
    labels : ndarray or None
        The labels of classes or strata, in the order of their codes.
    columns : bool
        Whether a model of this response has one row of coefficients per output, even if there is one output.
    """

    loss: Loss
    y: FloatArray
    labels: Array | None = None
    columns: bool = False

    @property
    def n_outputs(self) -> int:
        """The number of linear predictors per row."""
        return int(self.y.shape[1]) if self.loss.vector else 1

    def read_offset(self, offset: ArrayLike | None) -> FloatArray | None:
        """An offset in the shape of the linear predictor, (n_rows,) or (n_rows, n_outputs); None for None."""
        if offset is None:
            return None
        shift = read_offset(offset, len(self.y), self.n_outputs, self.loss)
        return shift if self.loss.vector else shift[:, 0]
