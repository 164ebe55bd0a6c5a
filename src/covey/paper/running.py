"""A run of the paper's algorithms on a regression problem, and its models on the user's scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from covey.groups import Groups
from covey.paper.dynamics import Trajectory, gradient_flow, normalized_descent
from covey.paper.dynamics.loop import Stop
from covey.preprocess import prepare
from covey.preprocess.factoring import Standardize
from covey.validation import FloatArray

# A group is awake once its norm reaches this share of the first estimate of the strongest group, `max norm(X_l'y/n)`.
AWAKE = 0.01

# The most models that a run records, evenly spaced.
RECORDS = 2000


@dataclass(frozen=True)
class Coordinates:
    """The problem that the network is trained on: rows ``Z`` and response ``y``, weighted and in working coordinates.

    `groups` are those of the columns of Z, one for each group of X that has any variation; `which` has their positions
    among the `n_groups` groups of X. Coefficients of the columns of X are `loadings` (p, r) times those of the columns
    of Z. `mean` and `level` are the means of the columns of X and of the response, zeros without an intercept; all
    working columns were divided by `shrink`, and the response by `unit`.
    """

    Z: FloatArray
    y: FloatArray
    groups: Groups
    which: NDArray[np.intp]
    n_groups: int
    loadings: sp.csr_array
    mean: FloatArray
    level: float
    shrink: float = 1.0
    unit: float = 1.0

    @classmethod
    def of(
        cls, X: FloatArray, y: FloatArray, groups: Groups, weight: FloatArray, standardize: Standardize,
        fit_intercept: bool,
    ) -> Coordinates:  # fmt: skip
        """Pose a problem; ``standardize=False`` leaves the columns and the response as they are, as in the paper."""
        n, p = X.shape
        q = weight / weight.sum()
        root = np.sqrt(n * q)
        if standardize is False:
            mean, level = (q @ X, float(q @ y)) if fit_intercept else (np.zeros(p), 0.0)
            Z, response, L = (X - mean) * root[:, None], (y - level) * root, groups.n_groups
            return cls(Z, response, groups, np.arange(L), L, sp.csr_array(sp.identity(p)), mean, level)
        problem, _ = prepare(X, y, groups, standardize=standardize, fit_intercept=fit_intercept, sample_weight=weight)
        which = np.flatnonzero(problem.ranks)
        if which.size == 0:
            raise ValueError("X has no column that varies: there is nothing to fit.")
        Z = problem.working_columns(which) * root[:, None]
        # the large step on the directions is stable if no eigenvalue of the Gram matrix is above 1
        shrink, unit = max(1.0, float(np.linalg.norm(Z, 2)) / np.sqrt(n)), problem.y_scale
        mean, loadings = np.zeros(p), sp.lil_array((p, Z.shape[1]))
        mean[problem.layout.members] = problem.mean
        columns, dense, _ = problem.combination(which.tolist())
        loadings[columns] = dense * unit / shrink
        return cls(
            Z / shrink, problem.response * root, Groups.from_sizes(problem.ranks[which]), which, groups.n_groups,
            sp.csr_array(loadings), mean, problem.y_mean, shrink, unit,
        )  # fmt: skip

    @property
    def n(self) -> int:
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
        coefs: FloatArray = (self.loadings @ W.T).T
        return coefs, self.level - coefs @ self.mean


@dataclass(frozen=True)
class Run:
    """Recorded models, sleeping groups set to zero; `W` and `norms`, by group of X, are in working coordinates."""

    times: FloatArray
    coefs: FloatArray
    intercepts: FloatArray
    W: FloatArray
    norms: FloatArray
    trajectory: Trajectory

    @classmethod
    def of(cls, trajectory: Trajectory, coordinates: Coordinates) -> Run:
        """Set sleeping groups to zero, and convert all models to the user's scale."""
        norms = trajectory.group_norms
        asleep = norms < coordinates.threshold
        W = np.where(asleep[:, coordinates.groups.labels], 0.0, trajectory.w)
        wide = np.zeros((len(norms), coordinates.n_groups))
        wide[:, coordinates.which] = np.where(asleep, 0.0, norms)
        return cls(trajectory.t.astype(float), *coordinates.to_user(W), W, wide, trajectory)


@dataclass(frozen=True)
class Descent:
    """The settings of a run, as in `NetworkRegressor`; for the flow, `step_size` is the last time."""

    algorithm: int | str
    init_scale: float
    step_size: float
    direction_step: object
    switch_tol: float
    depth: int
    max_iter: int

    def run(self, coordinates: Coordinates, *, until: float | None = None, stop: Stop | None = None) -> Run:
        """Train the network; ``stop(time, w)`` is called at every record, with w in working coordinates."""
        Z, y, groups = coordinates.Z, coordinates.y, coordinates.groups
        if self.algorithm == "flow":
            end = self.step_size if until is None else max(until, self.step_size / RECORDS)
            times = np.linspace(0.0, end, RECORDS // 4 + 1)
            path = gradient_flow(Z, y, groups, init_scale=self.init_scale, depth=self.depth, times=times)
            return Run.of(path, coordinates)
        options: dict[str, Any] = {}
        if self.algorithm == 2:
            eta: Any = self.direction_step
            if isinstance(eta, str) and eta == "auto":
                # the limit of lemma direction-bound for the largest group
                largest = coordinates.shrink**2 * float(coordinates.correlations.max())
                eta = 4 / (9 * largest**2) if largest > 0 else 1.0
            options = {"direction_step": eta, "switch": float(self.switch_tol)}
        path = normalized_descent(
            Z, y, groups, init_scale=self.init_scale, step_size=self.step_size, depth=self.depth,
            n_steps=self.max_iter if until is None else int(until),
            record_every=max(1, -(-self.max_iter // RECORDS)), stop=stop, **options,
        )  # fmt: skip
        return Run.of(path, coordinates)
