"""PrimalDual: iterative regularisation, where the iteration is the regularisation parameter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from covey.paper.baselines.kernels import primal_dual_steps
from covey.paper.baselines.units import PenalisedRegressor, Units
from covey.path import Path
from covey.validation import positive, whole


@dataclass(eq=False, repr=False, kw_only=True)
class PrimalDual(PenalisedRegressor):
    r"""Iterate towards the interpolant of least group norm, and stop early.

    The iteration solves

    .. math::

        \min_w \sum_l \omega_l \|w_l\| \quad \text{subject to} \quad Xw = y

    by :math:`w_{k+1} = \mathrm{prox}_{\tau J}(w_k - \tau X^\top (2\theta_k - \theta_{k-1}))`,
    :math:`\theta_{k+1} = \theta_k + \sigma (X w_{k+1} - y)`, from zero. With noise the limit overfits, and
    an earlier iterate is chosen by validation. With L the spectral norm of X and r the `ratio`,
    :math:`\tau = \sqrt{0.99\, r}/L` and :math:`\sigma = \sqrt{0.99/r}/L`.

    Parameters
    ----------
    groups, group_weights, fit_intercept, standardize
        As in `GroupLasso`.
    ratio : "data" or float
        ``tau/sigma``. ``"data"`` is ``0.99 max|X'y|^2/L^2``, which makes the first step commensurate with the data.
    ratio_scale : float
        Multiplies the ratio; the paper's comparison uses 10.
    n_steps, record_every : int
        The number of iterations, and which of them `path` keeps.

    Attributes
    ----------
    coef_, intercept_, path_, n_iter_, groups_, n_features_in_, feature_names_in_
        The last iterate; choose an earlier one on `path_`.

    References
    ----------
    Molinari, Massias, Rosasco and Villa (2021), Iterative regularization for convex regularizers.

    Examples
    --------
    >>> from covey.paper.baselines import PrimalDual
    >>> from covey.datasets import make_group_sparse
    >>> data = make_group_sparse(sigma=0.0, random_state=0)
    >>> model = PrimalDual(groups=data.groups, n_steps=1000, fit_intercept=False).fit(data.X, data.y)
    >>> bool(abs(model.coef_ - data.w_star).max() < 1e-6)
    True
    """

    n_steps: int = 1000
    ratio: float | Literal["data"] = "data"
    ratio_scale: float = 1.0
    group_weights: object = "unit"
    record_every: int = 1

    def fit(self, X: object, y: object) -> PrimalDual:
        """Run to the last step."""
        self.path_ = self.path(X, y)
        self.coef_ = self.path_.coefs[[-1]].toarray()[0]
        self.intercept_ = float(self.path_.intercepts[-1])
        self.n_iter_ = int(self.path_.times[-1])
        self.groups_ = self.path_.groups
        return self

    def path(self, X: object, y: object) -> Path:
        """The iterates as a path; times are iterations, from 0."""
        units, weights = self._read(X, y)
        n_steps, every = whole(self.n_steps, "n_steps"), whole(self.record_every, "record_every")
        starts = units.groups.starts
        tau, sigma = self._steps(units)
        times = np.unique(np.append(np.arange(0, n_steps + 1, min(every, n_steps)), n_steps))
        W = np.zeros((times.size, units.X.shape[1]))
        w, theta, theta_old = W[0].copy(), np.zeros(units.y.size), np.zeros(units.y.size)
        for i, k in enumerate(np.diff(times), start=1):
            primal_dual_steps(units.X, units.y, starts, tau * weights, tau, sigma, w, theta, theta_old, k)
            W[i] = w
        return units.to_path(W, times, message=f"Ran {n_steps} steps.")

    def _steps(self, units: Units) -> tuple[float, float]:
        """The primal and the dual step; their product is 0.99 / L^2, as convergence requires."""
        L = float(np.linalg.norm(units.X, 2)) or 1.0
        largest = float(np.abs(units.X.T @ units.y).max())
        if not isinstance(self.ratio, str):
            ratio = positive(self.ratio, "ratio")
        elif self.ratio == "data":
            ratio = 0.99 * (largest / L) ** 2 if largest > 0 else 1.0
        else:
            raise ValueError(f"ratio must be 'data' or a number above 0, not {self.ratio!r}.")
        ratio *= positive(self.ratio_scale, "ratio_scale")
        return np.sqrt(0.99 * ratio) / L, np.sqrt(0.99 / ratio) / L
