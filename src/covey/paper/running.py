"""A run of the paper's algorithms on a regression problem, and its models on the user's scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.groups import Groups
from covey.paper.dynamics import Trajectory, gradient_flow, normalized_descent
from covey.preprocess import WorkingProblem, prepare
from covey.validation import FloatArray

__all__ = ["Coordinates", "Descent", "Run"]

# A group is awake once its norm reaches this share of the first estimate of the strongest group, `max norm(X_l'y/n)`.
AWAKE = 0.01

# With the automatic step, the magnitude of the strongest group grows by this share in the first iteration. Steps on the
# magnitudes of awake groups are then stable too, as long as they are not strongly correlated.
GROWTH = 0.04

# The most models that a run records, evenly spaced.
RECORDS = 2000


@dataclass(frozen=True)
class Coordinates:
    """The problem that the network is trained on: rows ``Z`` and response ``y``, weighted and in working coordinates.

    Attributes
    ----------
    Z, y : ndarray, shapes (n, r) and (n,)
    groups : Groups
        The groups of the columns of Z, one for each group of X that has any variation.
    which : ndarray of int
        Their positions among the groups of X.
    n_groups, n_columns : int
        Of X.
    problem : WorkingProblem or None
        The map from working coordinates to the columns of X; None if Z has the columns of X themselves.
    shrink : float
        The number by which all working columns were divided.
    mean, level : ndarray of shape (p,) and float
        Means of the columns of X and of the response; zeros without an intercept.
    unit : float
        The scale of the response.
    """

    Z: FloatArray
    y: FloatArray
    groups: Groups
    which: NDArray[np.intp]
    n_groups: int
    n_columns: int
    problem: WorkingProblem | None
    shrink: float
    mean: FloatArray
    level: float
    unit: float

    @classmethod
    def of(
        cls, X: FloatArray, y: FloatArray, groups: Groups, weight: FloatArray, standardize: Any, fit_intercept: bool
    ) -> Coordinates:
        """Pose a problem; ``standardize=False`` leaves the columns and the response as they are, as in the paper."""
        n, p = X.shape
        q = weight / weight.sum()
        root = np.sqrt(n * q)
        if standardize is False:
            mean, level = (q @ X, float(q @ y)) if fit_intercept else (np.zeros(p), 0.0)
            Z, response = (X - mean) * root[:, None], (y - level) * root
            return cls(Z, response, groups, np.arange(groups.n_groups), groups.n_groups, p, None, 1.0, mean, level, 1.0)
        problem, _ = prepare(X, y, groups, standardize=standardize, fit_intercept=fit_intercept, sample_weight=weight)
        which = np.flatnonzero(problem.ranks)
        if which.size == 0:
            raise ValueError("X has no column that varies: there is nothing to fit.")
        Z = problem.working_columns(which) * root[:, None]
        # the large step on the directions is stable if no eigenvalue of the Gram matrix is above 1
        shrink = max(1.0, float(np.linalg.norm(Z, 2)) / np.sqrt(n))
        mean = np.zeros(p)
        mean[problem.layout.members] = problem.mean
        return cls(
            Z / shrink, problem.response * root, Groups.from_sizes(problem.ranks[which]), which, groups.n_groups, p,
            problem, shrink, mean, problem.y_mean, problem.y_scale,
        )  # fmt: skip

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.Z.shape[0]

    @property
    def correlations(self) -> FloatArray:
        """``norm(Z_l'y/n)`` of every group: the first estimates of their norms."""
        return self.groups.norms(self.Z.T @ self.y / self.n)

    @property
    def threshold(self) -> float:
        """The norm from which a group is awake."""
        return AWAKE * float(self.correlations.max())

    def to_user(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Coefficients of the columns of X and intercepts of models in working coordinates, one per row."""
        coefs: FloatArray = W * self.unit if self.problem is None else np.zeros((len(W), self.n_columns))
        if self.problem is not None:
            problem, layout, starts = self.problem, self.problem.layout, self.groups.starts
            for i, l in enumerate(self.which.tolist()):
                columns = layout.members[layout.starts[l] : layout.starts[l + 1]]
                coefs[:, columns] = problem.to_user(l, W[:, starts[i] : starts[i + 1]] / self.shrink)
        return coefs, self.level - coefs @ self.mean


@dataclass(frozen=True)
class Run:
    """The recorded models of one run; sleeping groups are zero.

    Attributes
    ----------
    times : ndarray, shape (n_records,)
        Iterations, or times of the flow.
    coefs, intercepts : ndarray, shapes (n_records, p) and (n_records,)
        On the user's scale.
    norms : ndarray, shape (n_records, n_groups)
        Norms of the groups in working coordinates; zero for sleeping groups.
    trajectory : Trajectory
        Magnitudes, directions and coefficients in working coordinates.
    coordinates : Coordinates
    """

    times: FloatArray
    coefs: FloatArray
    intercepts: FloatArray
    norms: FloatArray
    trajectory: Trajectory
    coordinates: Coordinates

    @classmethod
    def of(cls, trajectory: Trajectory, coordinates: Coordinates) -> Run:
        """Set sleeping groups to zero, and convert all models to the user's scale."""
        norms = trajectory.group_norms
        asleep = norms < coordinates.threshold
        coefs, intercepts = coordinates.to_user(np.where(asleep[:, coordinates.groups.labels], 0.0, trajectory.w))
        wide = np.zeros((len(norms), coordinates.n_groups))
        wide[:, coordinates.which] = np.where(asleep, 0.0, norms)
        return cls(trajectory.t.astype(float), coefs, intercepts, wide, trajectory, coordinates)

    def errors(self, X: FloatArray, y: FloatArray, weight: FloatArray) -> FloatArray:
        """The weighted mean squared error of every model on some rows."""
        q = weight / weight.sum()
        return np.array([q @ (y - X @ w - b) ** 2 for w, b in zip(self.coefs, self.intercepts, strict=True)])

    def index(self, time: float) -> int:
        """The position of the last recorded time not after `time`."""
        return int(np.searchsorted(self.times, time, side="right") - 1)


@dataclass(frozen=True)
class Descent:
    """The settings of a run, checked by the dynamics that they are passed to.

    Attributes
    ----------
    algorithm : 1, 2 or "flow"
    step_size : float
        gamma; for the flow, the last time.
    init_scale, direction_step, switch_tol, depth, max_iter
        As in `NetworkRegressor`.
    """

    algorithm: int | str
    init_scale: float
    step_size: float
    direction_step: Any
    switch_tol: float
    depth: int
    max_iter: int

    @staticmethod
    def automatic_step(coordinates: Coordinates, depth: int) -> float:
        """The step with which the strongest group grows by `GROWTH` in an iteration."""
        first = float(coordinates.correlations.max())
        return GROWTH / (depth * first) if first > 0 else 1.0

    def run(
        self,
        coordinates: Coordinates,
        *,
        until: float | None = None,
        stop: Callable[[float, FloatArray], bool] | None = None,
    ) -> Run:
        """Train the network; ``stop(time, w)`` is called at every record, with w in working coordinates."""
        Z, y, groups = coordinates.Z, coordinates.y, coordinates.groups
        if self.algorithm == "flow":
            end = self.step_size if until is None else max(until, self.step_size / RECORDS)
            times = np.linspace(0.0, end, RECORDS // 4 + 1)
            path = gradient_flow(Z, y, groups, init_scale=self.init_scale, depth=self.depth, times=times)
            return Run.of(path, coordinates)
        options: dict[str, Any] = {}
        if self.algorithm == 2:
            options = {"direction_step": self._direction_step(coordinates), "switch": float(self.switch_tol)}
        n_steps = self.max_iter if until is None else int(until)
        path = normalized_descent(
            Z, y, groups, init_scale=self.init_scale, step_size=self.step_size, depth=self.depth, n_steps=n_steps,
            record_every=max(1, -(-self.max_iter // RECORDS)), stop=stop, **options,
        )  # fmt: skip
        return Run.of(path, coordinates)

    def _direction_step(self, coordinates: Coordinates) -> Any:
        """The limit of lemma direction-bound, ``4/(9 norm(w_l)^2)`` for the largest group, if it is automatic."""
        if not isinstance(self.direction_step, str) or self.direction_step != "auto":
            return self.direction_step
        largest = coordinates.shrink**2 * float(coordinates.correlations.max())
        return 4 / (9 * largest**2) if largest > 0 else 1.0
