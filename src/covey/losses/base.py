"""The base class of losses: a few functions of the response `y` and the linear predictor `eta`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from covey.losses.arrays import common_dtype, finite_numbers, numbers, within_range
from covey.losses.constant import scalar_constant, vector_constant
from covey.losses.on_rows import LossOnRows
from covey.losses.response import Response
from covey.validation import FloatArray

__all__ = ["Loss"]


class Loss(ABC):
    """The loss of a model: minus the log-likelihood of each row, as a function of the linear predictor ``eta``.

    A fit minimises ``sum_i weight_i value(y_i, eta_i)`` with ``eta = offset + intercept + X w``. A loss is convex in
    eta, and defines how the mean of the response depends on eta (`link`, `inverse_link`). To write one, subclass this
    class and implement `value`, `residual` and `curvature`; override other methods if their defaults are wrong. Make it
    a frozen dataclass, so that it can be compared, hashed and copied.

    There are two kinds. If `vector` is False, all functions act elementwise, and `y` and `eta` broadcast (for instance
    ``y`` of shape (n, 1) against the predictors of many models, (n, n_models)). If it is True, the last axis of `y` and
    `eta` holds the outputs of a row, and `value`, `deviance` and `curvature` drop it. Results have the common dtype of
    `y` and `eta`.

    Solvers use the object that `on` returns. A loss in which rows depend on each other, such as the partial likelihood
    of survival times, overrides `on` and sets `coupled`.

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
    coupled : bool
        Whether the loss of a row depends on the other rows.
    has_intercept : bool
        Whether adding a constant to eta changes the loss.
    limit : float or None
        The residual beyond which a row is an outlier, if outliers are expected.
    quadratic : bool
        Whether the second derivative is one for every row and output, so that a single Newton step reaches the minimum.
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
    coupled: ClassVar[bool] = False
    has_intercept: ClassVar[bool] = True
    limit: float | None = None

    def read(self, y: Any, name: str = "y") -> Response:
        """The response in the form that is fitted, with the loss that fits it."""
        if not (self.vector or self.coupled):
            y = numbers(y, name)
            if y.ndim == 2 and y.shape[1] > 1:
                raise ValueError(
                    f"{name} has {y.shape[1]} columns, and the {self.name} loss is for one response: fit them one by "
                    "one, or use loss='squared'."
                )
        return Response(self, self.check(y, name), columns=self.vector)

    def check(self, y: Any, name: str = "y") -> FloatArray:
        """The response as float64, (n,) or (n, n_outputs); a ValueError names the first invalid row."""
        return within_range(finite_numbers(y, name, vector=self.vector), name)

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
        direction = np.asarray(direction, dtype=curvature.dtype)
        return (curvature[..., None] if self.vector else curvature) * direction

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
        y, eta = common_dtype(y, eta)
        return np.maximum(2 * (self.value(y, eta) - self.value(y, self.link(y))), 0)

    def deviance_at_mean(self, y: FloatArray, mean: FloatArray) -> FloatArray:
        """Unit deviance of each row at a predicted mean."""
        return self.deviance(y, self.link(mean))

    def null(self, y: FloatArray, weight: FloatArray, offset: FloatArray | None = None) -> Any:
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
        null = self._null_vector if self.vector else self._null_scalar
        return null(y[rows], share / share.sum(), shift[rows])

    def check_estimable(self, response: Response, weight: FloatArray, offset: FloatArray | None = None) -> None:
        """Refuse a response that no model can be fitted to, such as counts that are all zero."""
        if not self.quadratic:
            self.null(response.y, weight, offset)

    def dispersion(self, mean_deviance: float) -> float:
        """The dispersion by which deviances are divided, given the mean unit deviance of a good model."""
        return 1.0 if self.known_dispersion else float(mean_deviance)

    def criterion(self, mean_deviance: Any, n: float) -> Any:
        """Minus twice the log-likelihood up to a constant, from the mean unit deviance of `n` observations.

        An unknown dispersion is profiled out: its best value is the mean deviance, hence the logarithm, and a constant
        factor in `mean_deviance` does not matter. For `MultiSquared` every response is an observation: n is the number
        of rows times the number of responses.
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

    def scaled_to(self, residuals: FloatArray, weight: FloatArray) -> Loss:
        """The loss with its scale estimated from residuals ``y - eta``; the loss itself if it has no scale."""
        return self

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

    def _null_scalar(self, y: FloatArray, weight: FloatArray, offset: FloatArray) -> float:
        """The null model of a scalar loss; weights add up to one and none is zero."""

        def slopes(c: float) -> tuple[float, float, float]:
            residual, curvature = self.residual(y, offset + c), self.curvature(y, offset + c)
            return float(weight @ residual), float(weight @ curvature), float(weight @ np.abs(residual))

        return scalar_constant(slopes, start=float(self.link(np.asarray(weight @ y))) - float(weight @ offset))

    def _null_vector(self, y: FloatArray, weight: FloatArray, offset: FloatArray) -> FloatArray:
        """The null model of a vector loss; weights add up to one and none is zero."""
        start = np.asarray(self.link(weight @ y)) - weight @ offset

        def hessian(c: FloatArray) -> FloatArray:
            products = [
                self.curvature_product(y, offset + c, np.broadcast_to(unit, y.shape)) for unit in np.eye(c.size)
            ]
            return np.stack([weight @ product for product in products])

        return vector_constant(
            lambda c: float(weight @ self.value(y, offset + c)),
            lambda c: weight @ self.residual(y, offset + c),
            hessian,
            start,
        )
