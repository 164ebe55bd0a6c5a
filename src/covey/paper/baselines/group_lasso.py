"""GroupLasso: the explicit group penalty, the paper's "PGD"."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from covey.paper.baselines.proximal import PenalisedProblem, solve
from covey.paper.baselines.units import PenalisedRegressor, Units
from covey.path import Path
from covey.validation import FloatArray, positive, whole


@dataclass(eq=False, repr=False, kw_only=True)
class GroupLasso(PenalisedRegressor):
    r"""Least squares with a penalty on the norm of each group.

    The objective is

    .. math::

        \min_{w, b} \frac{1}{2n} \|y - Xw - b\|^2 + \lambda \sum_l \omega_l \|w_l\|,

    solved by accelerated proximal gradient with adaptive restart until the duality gap is below `tol`.

    Parameters
    ----------
    groups : int, labels, lists, dict or Groups, optional
        Which columns belong together; by default each column is a group, which is the lasso.
    penalty : float
        The :math:`\lambda` of `fit`.
    group_weights : {"sqrt", "unit"} or array of shape (n_groups,)
        The :math:`\omega`: square roots of the group sizes, ones, or given.
    fit_intercept, standardize : bool
        Whether to fit the intercept b, and to divide each column by its standard deviation first; coefficients are
        returned on the user's scale.
    tol, max_iter : float and int
        The duality gap to reach, relative to ``norm(y)^2/(2n)`` (y centred if there is an intercept), and the most
        steps at one penalty.

    Attributes
    ----------
    coef_, intercept_, dual_gap_, n_iter_, groups_, n_features_in_, feature_names_in_
        The objective at the solution is at most `dual_gap_` above the minimum.

    References
    ----------
    Yuan and Lin (2006), Model selection and estimation in regression with grouped variables. Beck and Teboulle
    (2009), A fast iterative shrinkage-thresholding algorithm. O'Donoghue and Candes (2015), Adaptive restart for
    accelerated gradient schemes.

    Examples
    --------
    >>> from covey.paper.baselines import GroupLasso
    >>> from covey.datasets import make_group_sparse
    >>> data = make_group_sparse(random_state=0)
    >>> model = GroupLasso(groups=data.groups, penalty=1.0).fit(data.X, data.y)
    >>> [int(l) for l in data.groups.norms(model.coef_).nonzero()[0]]
    [0, 1, 2]
    >>> path = GroupLasso(groups=data.groups).path(data.X, data.y, n_penalties=20)
    >>> len(path), [l for l, position in path.entered[:3]]
    (20, [0, 1, 2])
    """

    penalty: float = 0.1
    tol: float = 1e-8
    max_iter: int = 20_000

    def fit(self, X: object, y: object) -> GroupLasso:
        """Solve at `penalty`."""
        units, problem = self._pose(X, y)
        W, gaps, steps = self._solve(problem, np.array([positive(self.penalty, "penalty")]))
        path = units.to_path(W, np.zeros(1, dtype=int))
        self.coef_, self.intercept_, self.groups_ = path.coefs.toarray()[0], float(path.intercepts[0]), units.groups
        self.dual_gap_, self.n_iter_ = float(gaps[0]), max(int(steps[0]), 1)
        return self

    def path(
        self, X: object, y: object, penalties: object = None, *, n_penalties: int = 100,
        least: float | Literal["auto"] = "auto",
    ) -> Path:  # fmt: skip
        """Solve along decreasing penalties, each with a warm start from the previous solution.

        The `penalties` may come in any order; by default there are `n_penalties` on a logarithmic grid from the
        smallest at which all groups are zero down to `least` of it: 1e-2 if there are fewer rows than columns, 1e-3
        otherwise. The times of the path are positions 0, 1, ... in the decreasing `penalties`; its message gives the
        largest duality gap.
        """
        units, problem = self._pose(X, y)
        grid = penalty_grid(problem.penalty_max(), problem.X.shape, penalties, n_penalties, least)
        W, gaps, _ = self._solve(problem, grid)
        message = f"Largest duality gap {gaps.max():.1e}, goal {self._goal(problem):.1e}."
        return units.to_path(W, np.arange(grid.size), penalties=grid, message=message)

    def _pose(self, X: object, y: object) -> tuple[Units, PenalisedProblem]:
        units, weights = self._read(X, y)
        return units, PenalisedProblem(units.X, units.y, units.groups.starts, weights)

    def _goal(self, problem: PenalisedProblem) -> float:
        return positive(self.tol, "tol") * float(problem.y @ problem.y) / (2 * problem.y.size)

    def _solve(self, problem: PenalisedProblem, grid: FloatArray) -> tuple[FloatArray, FloatArray, NDArray[np.intp]]:
        goal, most = self._goal(problem), whole(self.max_iter, "max_iter")
        W, gaps, steps = solve(problem, grid, max(goal, np.finfo(float).tiny), most)
        late = (gaps > goal) & (steps >= most)
        if late.any():
            worst = int(np.argmax(np.where(late, gaps, 0.0)))
            warnings.warn(
                f"The group lasso did not reach its duality gap at {late.sum()} of {grid.size} penalties: at penalty "
                f"{grid[worst]:.3g} the gap is {gaps[worst]:.2e} instead of {goal:.2e}. Raise "
                f"max_iter (now {self.max_iter}) or tol (now {self.tol:g}), or leave out the smallest penalties.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return W, gaps, steps


def penalty_grid(
    top: float, shape: tuple[int, ...], penalties: object = None, n_penalties: int = 100, least: object = "auto"
) -> FloatArray:
    """Decreasing penalties: those given, or a logarithmic grid down from `top` (see `GroupLasso.path`)."""
    if penalties is not None:
        grid = np.atleast_1d(np.asarray(penalties, dtype=float))
        if grid.ndim != 1 or grid.size == 0 or not np.isfinite(grid).all() or (grid <= 0).any():
            raise ValueError(f"penalties must be a vector of positive numbers, not {penalties!r}.")
        return np.sort(grid)[::-1].copy()
    n, p = shape
    ratio = (1e-2 if n < p else 1e-3) if least == "auto" else positive(least, "least")
    if ratio >= 1:
        raise ValueError(f"least must lie between 0 and 1, not {least!r}.")
    # a zero response has no largest penalty, and any grid works
    return (top or 1.0) * np.geomspace(1.0, ratio, whole(n_penalties, "n_penalties"))
