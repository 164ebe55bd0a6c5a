"""Quantiles of the response: the pinball loss, smoothed around zero, for one level and for several at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from covey.losses.base import Loss
from covey.losses.responses import robust_scale, weighted_median
from covey.validation import FloatArray, finite_response, positive, real

__all__ = ["MultiQuantile", "Quantile"]

# The width of the smoothing, in scales of the residuals. It moves the quantile of Gaussian noise at level 0.9 by 2% of
# the scale, less than its standard error in a few hundred rows, and leaves enough rows near zero for Newton's method.
WIDTH = 0.1

# Residuals of more than so many widths are beyond the smoothing: the exponential of minus this is zero.
FAR = 1e3

# The least second derivative, in units of one over the residual: where it underflows, Newton's steps stay finite.
LEAST_CURVATURE = 1e-14


class _Pinball(Loss):
    """The pinball loss of ``r = y - eta``, ``max(level r, (level - 1) r)``, smoothed over a width h.

    The value is ``level r + h log(1 + exp(-r / h))``: at most ``h log 2`` above the pinball loss, convex, and smooth.
    Models are fitted by it and compared by the deviance, which is twice the pinball loss itself. With several levels,
    the last axis has one entry per level, and the loss is their sum.
    """

    scale: float | None
    parameter: ClassVar[str] = "scale"
    unpenalised: ClassVar[str] = "least pinball loss"
    identity_link: ClassVar[bool] = True

    @property
    @abstractmethod
    def _levels(self) -> FloatArray:
        """The level, or all of them."""

    @property
    def in_words(self) -> str:
        """Which quantiles are predicted."""
        shares = ", ".join(f"{level:.3g}" for level in np.atleast_1d(self._levels))
        return f"predictions are quantiles: {shares} of the rows lie below"

    def value(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``level r + h log(1 + exp(-r / h))``, summed over the levels."""
        r, h, small = self._near(y, eta)
        value = self._levels * r + (np.maximum(-r, 0) + h * np.log1p(small))
        return value.sum(axis=-1) if self.vector else value

    def residual(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``level - 1 / (1 + exp(r / h))``."""
        r, _, small = self._near(y, eta)
        return self._levels - np.where(r > 0, small, 1) / (1 + small)

    def curvature(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """A bell of width h around zero; the mean over the levels."""
        curvature = self._bell(y, eta)
        return curvature.mean(axis=-1) if self.vector else curvature

    def curvature_product(self, y: FloatArray, eta: FloatArray, direction: FloatArray) -> FloatArray:
        """Level by level: they do not interact."""
        return self._bell(y, eta) * direction

    def bounding_curvature(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """``tanh(r / 2h) / 2r``, the largest of all levels.

        It is close to the weights ``1 / 2|r|`` of iteratively reweighted least squares.
        """
        r, h, _ = self._near(y, eta)
        half = np.maximum(np.abs(r) / 2, 1e-4 * h)
        bound = np.tanh(np.minimum(half, FAR * h) / h) / half / 4
        return bound.max(axis=-1) if self.vector else bound

    def deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """Twice the pinball loss, without smoothing, summed over the levels."""
        r, level = np.subtract(y, eta), self._levels
        pinball = 2 * np.maximum(level * r, (level - 1) * r)
        return pinball.sum(axis=-1) if self.vector else pinball

    def dispersion(self, mean_deviance: float) -> float:
        """The mean pinball loss of Gaussian noise of this scale, summed over the levels."""
        if self.scale is None:
            return float(mean_deviance) / 2
        # around its quantile, the mean loss of standard Gaussian noise is the density there
        return self.scale * float(np.sum(np.exp(-np.square(ndtri(self._levels)) / 2)) / np.sqrt(2 * np.pi))

    def distance(self, at: FloatArray, eta: FloatArray) -> FloatArray:
        """The variance of the difference of two models' pinball losses, over the dispersion."""
        level, apart = self._levels, np.subtract(at, eta)
        if not self.vector:
            return level * (1 - level) / self.dispersion(1.0) * np.square(apart)
        covariance = np.minimum.outer(level, level) - np.outer(level, level)
        return ((apart @ covariance) * apart).sum(axis=-1) / self.dispersion(1.0)

    def criterion(self, mean_deviance: float | FloatArray, n: float) -> float | FloatArray:
        """Minus twice the log-likelihood of asymmetric Laplace noise, whose scale is profiled out."""
        return 2 * super().criterion(mean_deviance, n)

    def estimate(self, y: FloatArray, eta: FloatArray, weight: FloatArray) -> float:
        """The scale of the residuals around their median; the mean of all levels'."""
        columns = (y - eta).reshape(len(y), -1).T
        return float(np.mean([robust_scale(np.abs(one - weighted_median(one, weight)), weight) for one in columns]))

    def _near(self, y: FloatArray, eta: FloatArray) -> tuple[FloatArray, float, FloatArray]:
        """The residual r, the width h of the smoothing, and ``exp(-|r| / h)``."""
        r, h = np.subtract(y, eta, dtype=float), WIDTH * self.known()
        return r, h, np.exp(-np.minimum(np.abs(r), FAR * h) / h)

    def _bell(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """The second derivative in the predictor of each level."""
        r, h, small = self._near(y, eta)
        return np.maximum(small / np.square(1 + small) / h, LEAST_CURVATURE / np.maximum(np.abs(r), h))


@dataclass(frozen=True)
class Quantile(_Pinball):
    """One quantile of the response given the columns: the smoothed pinball loss of ``y - eta``.

    Parameters
    ----------
    level : float
        The share of responses that lie below the quantile, between 0 and 1: 0.5 for the median.
    scale : float, optional
        A robust scale of the residuals; the pinball loss is smoothed over 0.1 of it. None means 1.4826 times their
        median absolute deviation, which `scaled_to` sets; before that, only the null model is available.

    Examples
    --------
    >>> Quantile(0.9).deviance(np.array([10.0, -10.0]), np.zeros(2))
    array([18.,  2.])
    """

    level: float = 0.5
    scale: float | None = None
    name: ClassVar[str] = "quantile"

    def __post_init__(self) -> None:
        _check_level(self.level, "level")
        if self.scale is not None:
            positive(self.scale, "scale")

    @property
    def _levels(self) -> FloatArray:
        return np.asarray(self.level)


@dataclass(frozen=True)
class MultiQuantile(_Pinball):
    """Several quantiles of one response, with the same groups: the sum of their smoothed pinball losses.

    The last axis of `y` and `eta` has one entry per level; the response is the same in all of them. Predicted quantiles
    never cross: `inverse_link` sorts those of each row, which can only bring them closer to the true ones
    (Chernozhukov, Fernández-Val and Galichon, "Quantile and probability curves without crossing", 2010).

    Parameters
    ----------
    levels : sequence of float
        Between 0 and 1, in ascending order.
    scale : float, optional
        As in `Quantile`; the same for all levels.

    Examples
    --------
    >>> MultiQuantile([0.1, 0.9]).inverse_link(np.array([[2.0, 1.0]]))
    array([[1., 2.]])
    """

    levels: Sequence[float] = (0.1, 0.5, 0.9)
    scale: float | None = None
    name: ClassVar[str] = "multi-quantile"
    vector: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if np.ndim(self.levels) != 1 or len(self.levels) < 2:
            raise ValueError(
                f"levels must be a list of at least two numbers between 0 and 1, such as [0.1, 0.5, 0.9], not "
                f"{self.levels!r}: use Quantile(level) for one."
            )
        levels = tuple(_check_level(one, "levels") for one in np.asarray(self.levels, dtype=object))
        if any(b <= a for a, b in pairwise(levels)):
            raise ValueError(f"levels must be in ascending order without repetitions, not {list(levels)}.")
        object.__setattr__(self, "levels", levels)  # a tuple, so that the loss can be hashed
        if self.scale is not None:
            positive(self.scale, "scale")

    @property
    def _levels(self) -> FloatArray:
        return np.array(self.levels)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the quantiles."""
        return tuple(f"quantile {level:g}" for level in self.levels)

    def check(self, y: ArrayLike, name: str = "y") -> FloatArray:
        """One number per row, repeated for every level."""
        m, given = len(self.levels), np.asarray(y)
        if given.ndim == 2 and given.shape[1] == m:
            values = super().check(y, name)
            if (values == values[:, :1]).all():
                return values
        if given.ndim == 2 and given.shape[1] > 1:
            raise ValueError(
                f"{name} has {given.shape[1]} columns, and the quantiles are those of one response: fit responses one "
                "by one."
            )
        return np.repeat(Quantile().check(finite_response(y, name), name)[:, None], m, axis=1)

    def apart(self) -> list[Quantile]:
        """One quantile per level."""
        return [Quantile(level, self.scale) for level in self.levels]

    def inverse_link(self, eta: FloatArray) -> FloatArray:
        """The predictors of each row in ascending order."""
        return np.sort(eta, axis=-1)

    def observations(self, n_outputs: int) -> int:
        """Every level is one observation."""
        return n_outputs

    def balance(self, y: FloatArray, weight: FloatArray) -> FloatArray:
        """The response."""
        return np.asarray(y)[:, 0]

    def _constant(self, y: FloatArray, weight: FloatArray, offset: FloatArray) -> FloatArray:
        columns = zip(self.apart(), y.T, offset.T, strict=True)
        return np.array([one._constant(response, weight, shift) for one, response, shift in columns])


def _check_level(level: object, name: str) -> float:
    if not 0 < real(level, name) < 1:
        raise ValueError(f"{name} must lie between 0 and 1, such as 0.9, not {level!r}: it is the share of rows below.")
    return float(level)  # type: ignore[arg-type]
