"""Centre, scale and order columns by group, and convert results back to a `Path` on the user's scale."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from covey.groups import Groups
from covey.path import Path
from covey.validation import FloatArray, as_numbers, boolean, check_scale, column_names, refuse_odd


@dataclass(frozen=True)
class Units:
    """X centred and divided by ``scale``, y centred, and what undoes both; centring solves for the intercept."""

    X: FloatArray
    y: FloatArray
    groups: Groups
    mean: FloatArray
    scale: FloatArray
    y_mean: float

    @classmethod
    def of(cls, X: FloatArray, y: FloatArray, groups: Groups, *, fit_intercept: bool, standardize: bool) -> Units:
        check_scale(X, "X")
        check_scale(y, "y")
        Z = groups.to_contiguous(X)
        mean = Z.mean(axis=0) if fit_intercept else np.zeros(Z.shape[1])
        y_mean = float(y.mean()) if fit_intercept else 0.0
        Z = Z - mean
        scale = np.ones(Z.shape[1])
        if standardize:
            rms = np.sqrt(np.mean(Z * Z, axis=0))
            # a constant column leaves round-off error, which must not be scaled up to unit size
            rounding = np.sqrt(np.finfo(float).eps) * np.abs(mean)
            scale = np.where(rms > rounding, rms, 1.0)
            Z = np.where(rms > rounding, Z / scale, 0.0)
        return cls(np.ascontiguousarray(Z), y - y_mean, groups, mean, scale, y_mean)

    def to_path(self, W: FloatArray, times: NDArray[Any], **details: Any) -> Path:
        """The rows of ``W`` (contiguous layout, scaled units) as a `Path` in the user's columns and units."""
        W = W / self.scale
        intercepts = self.y_mean - W @ self.mean
        coefs = self.groups.from_contiguous(W)
        norms = self.groups.norms(coefs)
        awake = np.flatnonzero((norms > 0).any(axis=0))
        first = ((int(l), times[np.argmax(norms[:, l] > 0)].item()) for l in awake)
        entered = sorted(first, key=lambda event: event[1])
        return Path(times, sp.csr_array(coefs), intercepts, self.groups, entered, **details)


@dataclass(eq=False, repr=False)
class PenalisedRegressor(RegressorMixin, BaseEstimator):
    """What the estimators of this room share: some parameters, reading a problem, and predictions."""

    groups: object = None
    _: KW_ONLY
    group_weights: object = "sqrt"
    fit_intercept: bool = True
    standardize: bool = False
    coef_: FloatArray = field(init=False)
    intercept_: float = field(init=False)

    def predict(self, X: object) -> FloatArray:
        check_is_fitted(self)
        return validate_data(self, X, reset=False) @ self.coef_ + self.intercept_

    def _read(self, X: object, y: object) -> tuple[Units, FloatArray]:
        names = column_names(X)
        Z, response = read_table(self, X, y)
        groups = Groups.coerce(self.groups, Z.shape[1], names)
        weights = read_group_weights(self.group_weights, groups)
        intercept, scaled = boolean(self.fit_intercept, "fit_intercept"), boolean(self.standardize, "standardize")
        return Units.of(Z, response, groups, fit_intercept=intercept, standardize=scaled), weights


def read_table(estimator: BaseEstimator, X: object, y: object) -> tuple[FloatArray, FloatArray]:
    """X and y by scikit-learn's rules, as float64; sets ``n_features_in_`` and ``feature_names_in_``."""
    refuse_odd(X, "X")
    refuse_odd(y, "y")
    try:
        checked: tuple[FloatArray, FloatArray] = validate_data(estimator, X, y, dtype=np.float64, y_numeric=True)
    except (TypeError, ValueError) as error:
        text = str(error)
        if isinstance(error, TypeError):
            raise TypeError(f"X and y must hold numbers: {text}") from None
        if any(words in text for words in ("could not convert", "inhomogeneous", "array element", "float() argument")):
            raise ValueError("X must be a table of numbers, and y must hold one number per row.") from None
        raise
    return checked


def read_group_weights(group_weights: object, groups: Groups) -> FloatArray:
    """``"sqrt"`` (of the sizes), ``"unit"``, or one positive number per group."""
    if isinstance(group_weights, str):
        if group_weights not in ("sqrt", "unit"):
            raise ValueError(f"group_weights must be 'sqrt', 'unit' or an array, not {group_weights!r}.")
        return np.sqrt(groups.sizes) if group_weights == "sqrt" else np.ones(groups.n_groups)
    weights = as_numbers(group_weights, "group_weights", finite=False)
    if weights.shape != (groups.n_groups,) or not np.isfinite(weights).all() or (weights <= 0).any():
        raise ValueError(
            f"group_weights must hold {groups.n_groups} numbers above 0, one per group, not {group_weights!r}."
        )
    return weights
