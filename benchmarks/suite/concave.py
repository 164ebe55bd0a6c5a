"""GroupMCP and GroupSCAD: folded-concave group penalties, which leave strong groups unshrunk."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from covey.compiling import njit
from covey.groups import Groups
from covey.paper.baselines.group_lasso import penalty_grid
from covey.paper.baselines.units import read_group_weights, read_table
from covey.path import Path
from covey.validation import FloatArray, boolean, column_names, positive, real, whole

__all__ = ["GroupMCP", "GroupSCAD"]

RANK_TOLERANCE = 1e-7  # of a group's largest singular value; grpreg drops directions below 1e-10 of its eigenvalues


class GroupMCP(RegressorMixin, BaseEstimator):
    r"""Least squares with the minimax concave penalty on the norm of each group.

    The objective is

    .. math::

        \min_{w, b} \frac{1}{2n} \|y - Xw - b\|^2 + \sum_l \rho\bigl(\|X_l w_l\| / \sqrt n;\, \lambda \omega_l\bigr),
        \qquad \rho(t; \lambda) = \begin{cases} \lambda t - t^2 / (2 \gamma) & t \le \gamma \lambda \\
        \gamma \lambda^2 / 2 & t > \gamma \lambda, \end{cases}

    with :math:`X_l` centred if there is an intercept. Groups are orthonormalised first, as in grpreg, so that a group's
    update has a closed form. The objective is not convex; each penalty is solved by group descent from the solution at
    the previous penalty, which finds a local minimum in each group.

    Parameters
    ----------
    groups : int, labels, lists, dict or Groups, optional
        Which columns belong together; by default each column is its own group, which is the MCP of Zhang (2010).
    penalty : float
        The :math:`\lambda` of `fit`, which is reached along 20 larger penalties.
    gamma : float
        Above 1: the larger, the closer to the group lasso, which is the limit at infinity.
    group_weights : {"sqrt", "unit"} or array of shape (n_groups,)
        The :math:`\omega`: square roots of the groups' ranks, ones, or given.
    fit_intercept : bool
        Whether to fit the intercept b.
    tol : float
        Descent stops when no group's fitted values change by more than this, in root mean square, relative to the
        standard deviation of y.
    max_iter : int
        The most sweeps over the groups at one penalty.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features,), float
    n_iter_ : int
        Sweeps along the whole path.
    groups_ : Groups

    References
    ----------
    Breheny and Huang, "Group descent algorithms for nonconvex penalized linear and logistic regression models with
    grouped predictors", Statistics and Computing 25 (2015).

    Examples
    --------
    >>> from suite.concave import GroupMCP
    >>> from covey.datasets import make_group_sparse
    >>> data = make_group_sparse(100, 60, 3, active=2, random_state=0)
    >>> path = GroupMCP(groups=data.groups).path(data.X, data.y)
    >>> sorted(l for l, _ in path.entered[:2]) == data.S.tolist()
    True
    """

    _clipped: ClassVar[bool] = False  # whether to use SCAD's threshold
    _least_gamma: ClassVar[float] = 1.0

    def __init__(
        self,
        groups: Any = None,
        *,
        penalty: float = 0.1,
        gamma: float = 3.0,
        group_weights: Any = "sqrt",
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 10_000,
    ) -> None:
        self.groups = groups
        self.penalty = penalty
        self.gamma = gamma
        self.group_weights = group_weights
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any) -> GroupMCP:
        """Solve at `penalty`."""
        penalty = positive(self.penalty, "penalty")
        problem = self._pose(X, y)
        top = problem.penalty_max()
        grid = np.geomspace(top, penalty, 20) if top > penalty else np.array([penalty])
        solutions, sweeps = self._solve(problem, grid)
        path = problem.to_path(solutions[-1:], np.array([penalty]))
        self.coef_ = path.coefs.toarray()[0]
        self.intercept_ = float(path.intercepts[0])
        self.n_iter_ = max(sweeps, 1)
        self.groups_ = problem.groups
        return self

    def predict(self, X: Any) -> FloatArray:
        """``X w + b``."""
        check_is_fitted(self)
        return validate_data(self, X, reset=False) @ self.coef_ + self.intercept_

    def path(
        self, X: Any, y: Any, penalties: Any = None, *, n_penalties: int = 100, least: float | Literal["auto"] = "auto"
    ) -> Path:
        """Solve along decreasing penalties, each with a warm start from the previous solution.

        Parameters
        ----------
        penalties : array, optional
            In any order; by default `n_penalties` on a logarithmic grid down from the smallest penalty at which all
            groups are zero.
        least : float
            The last penalty of the default grid over the first: by default 1e-2 if there are fewer rows than columns
            and 1e-3 otherwise.

        Returns
        -------
        Path
            Times are positions 0, 1, ... in the decreasing `penalties`.
        """
        problem = self._pose(X, y)
        grid = penalty_grid(problem.penalty_max(), problem.shape, penalties, n_penalties, least)
        return problem.to_path(self._solve(problem, grid)[0], grid)

    # ------------------------------------------------------------------ pose, solve

    def _pose(self, X: Any, y: Any) -> OrthonormalProblem:
        names = column_names(X)
        X, y = read_table(self, X, y)
        if not real(self.gamma, "gamma") > self._least_gamma:
            raise ValueError(f"gamma must be above {self._least_gamma:g}, not {self.gamma!r}.")
        groups = Groups.coerce(self.groups, X.shape[1], names)
        return OrthonormalProblem.of(
            X, np.asarray(y, dtype=float), groups, self.group_weights, boolean(self.fit_intercept, "fit_intercept")
        )

    def _solve(self, problem: OrthonormalProblem, grid: FloatArray) -> tuple[FloatArray, int]:
        tol, most = positive(self.tol, "tol"), min(whole(self.max_iter, "max_iter"), 2**62)
        goal = tol * float(np.sqrt(np.mean(problem.y**2)))
        w, r = np.zeros(problem.Z.shape[0]), problem.y.copy()
        out, sweeps, late = np.empty((grid.size, w.size)), 0, 0
        for i, penalty in enumerate(grid):
            limits = penalty * problem.weights
            used = group_descent(problem.Z, r, w, problem.edges, limits, float(self.gamma), self._clipped, goal, most)
            sweeps += used
            late += used >= most
            out[i] = w
        if late:
            warnings.warn(
                f"Group descent reached max_iter ({most} sweeps) at {late} of {grid.size} penalties. Raise max_iter or "
                f"tol (now {tol:g}), or leave out the smallest penalties.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return out, sweeps


class GroupSCAD(GroupMCP):
    r"""Least squares with the smoothly clipped absolute deviation penalty on the norm of each group.

    The same objective as in `GroupMCP`, with

    .. math::

        \rho(t; \lambda) = \begin{cases} \lambda t & t \le \lambda \\
        (2 \gamma \lambda t - t^2 - \lambda^2) / (2 (\gamma - 1)) & \lambda < t \le \gamma \lambda \\
        (\gamma + 1) \lambda^2 / 2 & t > \gamma \lambda, \end{cases}

    which is the group lasso for weak groups and a constant, without shrinkage, for strong ones.

    Parameters
    ----------
    groups, penalty, group_weights, fit_intercept, tol, max_iter
        As in `GroupMCP`.
    gamma : float
        Above 2: the larger, the closer to the group lasso, which is the limit at infinity.

    Attributes
    ----------
    coef_, intercept_, n_iter_, groups_
        As in `GroupMCP`.

    Examples
    --------
    >>> from suite.concave import GroupSCAD
    >>> from covey.datasets import make_group_sparse
    >>> data = make_group_sparse(100, 60, 3, active=2, random_state=0)
    >>> path = GroupSCAD(groups=data.groups).path(data.X, data.y)
    >>> sorted(l for l, _ in path.entered[:2]) == data.S.tolist()
    True
    """

    _clipped = True
    _least_gamma = 2.0

    def __init__(
        self,
        groups: Any = None,
        *,
        penalty: float = 0.1,
        gamma: float = 4.0,
        group_weights: Any = "sqrt",
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 10_000,
    ) -> None:
        super().__init__(
            groups, penalty=penalty, gamma=gamma, group_weights=group_weights, fit_intercept=fit_intercept, tol=tol,
            max_iter=max_iter,
        )  # fmt: skip


@dataclass(frozen=True)
class OrthonormalProblem:
    """The problem in orthonormal columns, which are the rows of ``Z`` (``Z_l Z_l' = n I``), and the maps back."""

    Z: FloatArray
    y: FloatArray
    edges: np.ndarray
    weights: FloatArray
    groups: Groups
    maps: list[FloatArray]
    mean: FloatArray
    y_mean: float

    @property
    def shape(self) -> tuple[int, int]:
        return self.y.size, self.Z.shape[0]

    @classmethod
    def of(
        cls, X: FloatArray, y: FloatArray, groups: Groups, group_weights: Any, intercept: bool
    ) -> OrthonormalProblem:
        """Centre, and orthonormalise each group by its singular value decomposition."""
        columns = groups.to_contiguous(X)
        mean = columns.mean(axis=0) if intercept else np.zeros(columns.shape[1])
        # a constant column leaves round-off error, which must not be scaled up to unit size
        noise = np.sqrt(np.finfo(float).eps) * np.abs(mean) * np.sqrt(y.size)
        parts, maps = [], []
        for a, b in zip(groups.starts[:-1], groups.starts[1:], strict=True):
            block = columns[:, a:b] - mean[a:b]
            _, s, Vt = np.linalg.svd(block, full_matrices=False)
            on = s > max(RANK_TOLERANCE * s[0], noise[a:b].max())
            maps.append(Vt[on].T / s[on] * np.sqrt(y.size))
            parts.append((block @ maps[-1]).T)
        ranks = np.array([part.shape[0] for part in parts])
        by_rank = isinstance(group_weights, str) and group_weights == "sqrt"
        weights = np.sqrt(np.maximum(ranks, 1)) if by_rank else read_group_weights(group_weights, groups)
        y_mean = float(y.mean()) if intercept else 0.0
        edges = np.concatenate([[0], np.cumsum(ranks)])
        return cls(np.ascontiguousarray(np.vstack(parts)), y - y_mean, edges, weights, groups, maps, mean, y_mean)

    def penalty_max(self) -> float:
        """The smallest penalty at which all groups are zero."""
        c = self.Z @ self.y / self.y.size
        norms = np.array([np.linalg.norm(c[a:b]) for a, b in zip(self.edges[:-1], self.edges[1:], strict=True)])
        return float(np.max(norms / self.weights))

    def to_path(self, W: FloatArray, penalties: FloatArray) -> Path:
        """The rows of ``W`` as a `Path` in the user's columns and units."""
        blocks = [
            W[:, a:b] @ map_back.T for a, b, map_back in zip(self.edges[:-1], self.edges[1:], self.maps, strict=True)
        ]
        contiguous = np.hstack(blocks)
        coefs, times = self.groups.from_contiguous(contiguous), np.arange(len(W))
        norms = self.groups.norms(coefs)
        first = ((int(l), float(np.argmax(norms[:, l] > 0))) for l in np.flatnonzero((norms > 0).any(axis=0)))
        entered = sorted(first, key=lambda event: event[1])
        intercepts = self.y_mean - contiguous @ self.mean
        return Path(times, sp.csr_array(coefs), intercepts, self.groups, entered, penalties=penalties)


@njit(cache=True)
def firm(norm, limit, gamma, clipped):
    """The factor that shrinks a group of this norm: the minimax concave penalty's, or with `clipped` SCAD's."""
    if norm <= limit:
        return 0.0
    if norm > gamma * limit:
        return 1.0
    if not clipped:
        return (1.0 - limit / norm) / (1.0 - 1.0 / gamma)
    if norm <= 2.0 * limit or np.isinf(gamma):
        return 1.0 - limit / norm
    return (gamma - 1.0 - gamma * limit / norm) / (gamma - 2.0)


@njit(cache=True)
def group_descent(Z, r, w, edges, limits, gamma, clipped, goal, most):
    """Group descent with the minimax concave penalty or SCAD, in place; returns the sweeps used.

    ``Z`` holds a column of the design per row, orthonormal in each group; ``r = y - Z'w``. A group's update is the
    firm threshold of ``z = Z_l r/n + w_l``. Sweeps run over the non-zero groups until nothing changes by more than
    ``goal``, then over all groups; the descent ends when a sweep over all groups changes nothing.
    """
    n = r.size
    z = np.empty(w.size)
    everything = True
    for sweep in range(most):
        moved = 0.0
        for l in range(edges.size - 1):
            a, b = edges[l], edges[l + 1]
            zero = True
            for j in range(a, b):
                zero = zero and w[j] == 0.0
            if zero and not everything:
                continue
            square = 0.0
            for j in range(a, b):
                z[j] = np.dot(Z[j], r) / n + w[j]
                square += z[j] * z[j]
            factor = firm(np.sqrt(square), limits[l], gamma, clipped)
            change = 0.0
            for j in range(a, b):
                step = factor * z[j] - w[j]
                if step != 0.0:
                    w[j] += step
                    change += step * step
                    for i in range(n):
                        r[i] -= step * Z[j, i]
            moved = max(moved, np.sqrt(change))
        if moved <= goal:
            if everything:
                return sweep + 1
            everything = True
        else:
            everything = False
    return most
