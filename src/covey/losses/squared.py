"""Squared loss, for one response and for several at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from covey.arrays import doubles, namespace
from covey.losses.base import Loss, Response
from covey.validation import FloatArray, finite_response, response_numbers

__all__ = ["MultiSquared", "Squared"]


class _Quadratic(Loss):
    """Half of the squared distance between the response and the predictor."""

    unpenalised: ClassVar[str] = "least squares"
    quadratic: ClassVar[bool] = True
    identity_link: ClassVar[bool] = True

    def read(self, y: ArrayLike, name: str = "y") -> Response:
        """One response or several, whichever of the two losses was named: the columns of y decide."""
        y = response_numbers(y, name)
        if y.ndim == 2 and y.shape[1] > 1:
            return Response(MultiSquared(), MultiSquared().check(y, name), columns=True)
        # the search brings one response to unit scale before it squares it, so that larger numbers are valid, too
        return Response(Squared(), finite_response(y, name), columns=y.ndim == 2)

    def value(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """Half of the squared distance."""
        return self.deviance(y, eta) / 2

    def residual(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``y - eta``."""
        y, eta = doubles(y, eta)
        return y - eta

    def curvature(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """One per row."""
        residual = self.residual(y, eta)
        return namespace(residual).ones_like(residual[..., 0] if self.vector else residual)

    def deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """The squared distance, summed over responses."""
        y, eta = doubles(y, eta)
        squares = (y - eta) ** 2
        return squares.sum(axis=-1) if self.vector else squares

    def _constant(self, y: FloatArray, weight: FloatArray, offset: FloatArray) -> Any:
        constant = weight @ (y - offset)
        return constant if self.vector else float(constant)


@dataclass(frozen=True)
class Squared(_Quadratic):
    """Squared loss, ``(y - eta)^2 / 2``: a Gaussian response.

    Examples
    --------
    >>> import numpy as np
    >>> Squared().value(np.array([1.0, 2.0]), np.array([0.0, 2.0]))
    array([0.5, 0. ])
    """

    name: ClassVar[str] = "squared"
    takes_tensors: ClassVar[bool] = True


@dataclass(frozen=True)
class MultiSquared(_Quadratic):
    """Squared loss of several responses, the last axis of `y` and `eta`: ``sum_a (y_a - eta_a)^2 / 2``.

    Examples
    --------
    >>> import numpy as np
    >>> MultiSquared().value(np.array([[1.0, 2.0]]), np.array([[0.0, 0.0]]))
    array([2.5])
    """

    name: ClassVar[str] = "multi-squared"
    vector: ClassVar[bool] = True
    several: ClassVar[bool] = True

    def observations(self, n_outputs: int) -> int:
        """Every response is one observation."""
        return n_outputs
