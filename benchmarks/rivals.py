"""Methods that people use instead, each tuned by everyone's folds or validation rows: name -> problem -> `Fit`.

Every rival is a path of models over a grid: penalties or numbers of groups. With validation rows the path is fitted to
the training rows and the least validation error decides; with folds the grid comes from all training rows, every fold
fits the same grid, and the model is the one of the path over all rows where the folds' mean error is least.

The group lasso and its relatives are solved by adelie, on raw columns, on columns of unit variance and on groups made
orthonormal. Group MCP and SCAD follow grpreg (group descent on orthonormal groups, gamma 3 and 4, 100 penalties,
tolerance 1e-4, at most 10 000 sweeps over a path); that they are stationary, and that the local linear approximation,
solved by adelie, stays where they are, is tested in `tests/paper/baselines/test_concave.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lstsq

from methods import Fit, Method, Problem

N_PENALTIES = 100


@dataclass
class Models:
    """Models over a grid: one row of `coefs` per grid value."""

    grid: np.ndarray
    coefs: np.ndarray
    intercepts: np.ndarray

    def errors(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Squared errors, one column per model."""
        used = np.flatnonzero(np.any(self.coefs != 0, axis=0))
        return (y[:, None] - X[:, used] @ self.coefs[:, used].T - self.intercepts) ** 2


PathMethod = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None], Models]


def by(*paths: PathMethod) -> Method:
    """The best model over all grids of all `paths`."""
    return lambda problem: min((tuned(problem, path) for path in paths), key=lambda result: result[0])[1]


def tuned(problem: Problem, path: PathMethod) -> tuple[float, Fit]:
    """The judged error of the model that is chosen from a path, and the model."""
    models = path(problem.X, problem.y, problem.labels, None)
    if problem.validation is not None:
        losses = models.errors(*problem.validation).mean(axis=0)
    else:
        assert problem.fold_of is not None
        total = np.zeros(models.grid.size)
        for fold in np.unique(problem.fold_of):
            out = problem.fold_of == fold
            inner = path(problem.X[~out], problem.y[~out], problem.labels, models.grid)
            total += inner.errors(problem.X[out], problem.y[out]).sum(axis=0)
        losses = total / problem.y.size
    # a model that could not be fitted has no finite error, and is not chosen
    best = int(np.nanargmin(np.where(np.isfinite(losses), losses, np.inf)))
    return float(losses[best]), problem.linear(models.coefs[best], models.intercepts[best])


# ---------------------------------------------------------------------- the group lasso, by adelie


def starts_of(labels: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.r_[True, np.diff(labels) > 0])


def adelie_raw(
    X: np.ndarray, y: np.ndarray, labels: np.ndarray, grid: np.ndarray | None, weights: np.ndarray | None = None
) -> Models:
    """The group lasso on the columns as they are, weights the square roots of group sizes unless given."""
    import adelie as ad

    n, p = X.shape
    options: dict[str, Any] = {"lmda_path": grid} if grid is not None else {"lmda_path_size": N_PENALTIES}
    state = ad.grpnet(
        X=np.asfortranarray(X), glm=ad.glm.gaussian(y=y), groups=starts_of(labels), early_exit=False,
        min_ratio=1e-3 if n < p else 1e-4, progress_bar=False, n_threads=1, ddev_tol=0, adev_tol=1.0, penalty=weights,
        **options,
    )  # fmt: skip
    penalties = np.asarray(state.lmda_path) if grid is None else grid
    coefs, intercepts = state.betas.toarray(), np.asarray(state.intercepts)
    short = penalties.size - len(coefs)
    if short:  # the solver gave up before the end of the grid
        coefs = np.vstack([coefs, np.full((short, p), np.nan)])
        intercepts = np.r_[intercepts, np.full(short, np.nan)]
    return Models(penalties, coefs, intercepts)


def on_unit_columns(path: PathMethod) -> PathMethod:
    """The same on columns of unit variance."""

    def solve(X, y, labels, grid):
        mean, scale = X.mean(axis=0), X.std(axis=0)
        scale = np.where(scale > 1e-10 * (1 + np.abs(mean)), scale, np.inf)
        models = path((X - mean) / scale, y, labels, grid)
        coefs = models.coefs / scale
        return Models(models.grid, coefs, models.intercepts - coefs @ mean)

    return solve


def on_orthonormal_groups(path: PathMethod) -> PathMethod:
    """The same on groups made orthonormal; a group's size is then its rank."""

    def solve(X, y, labels, grid):
        mean, maps, parts, kept = X.mean(axis=0), [], [], []
        for l, columns in enumerate(np.split(np.arange(X.shape[1]), starts_of(labels)[1:])):
            block = X[:, columns] - mean[columns]
            _, s, Vt = np.linalg.svd(block, full_matrices=False)
            on = s > max(1e-7 * s[0], 1e-10 * (1 + np.abs(mean[columns]).max()))
            maps.append(Vt[on].T / s[on] * np.sqrt(len(y)))
            parts.append(block @ maps[-1])
            kept.append(np.full(int(on.sum()), l))
        models = path(np.hstack(parts), y, np.concatenate(kept), grid)
        ends = np.cumsum([0, *(len(k) for k in kept)])
        coefs = np.hstack([models.coefs[:, a:b] @ m.T for a, b, m in zip(ends[:-1], ends[1:], maps, strict=True)])
        return Models(models.grid, coefs, models.intercepts - coefs @ mean)

    return solve


adelie_orthonormal = on_orthonormal_groups(adelie_raw)
adelie_standardised = on_unit_columns(adelie_raw)


def relaxed(path: PathMethod) -> PathMethod:
    """Least squares on the supports of a path, as long as there are more rows than columns."""

    def solve(X, y, labels, grid):
        models = path(X, y, labels, grid)
        coefs, intercepts = np.full_like(models.coefs, np.nan), np.full_like(models.intercepts, np.nan)
        mean, level, last = X.mean(axis=0), y.mean(), None
        for i, w in enumerate(models.coefs):
            on = np.isin(labels, labels[w != 0]) if np.isfinite(w).all() else None
            if on is None or on.sum() >= len(y) - 1:
                break
            if last is not None and np.array_equal(on, last):
                coefs[i], intercepts[i] = coefs[i - 1], intercepts[i - 1]
                continue
            coefs[i] = 0.0
            coefs[i, on] = lstsq(X[:, on] - mean[on], y - level, cond=1e-9, lapack_driver="gelsy")[0]
            intercepts[i], last = level - mean @ coefs[i], on
        return Models(models.grid, coefs, intercepts)

    return solve


def _adaptive(X: np.ndarray, y: np.ndarray, labels: np.ndarray, grid: np.ndarray | None) -> Models:
    """Weights divided by the groups' norms in a ridge regression of the penalty that is best by GCV."""
    first = _ridge(X, y, labels, None)
    n, s = len(y), np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    freedom = 1 + (s * s / (s * s + n * first.grid[:, None])).sum(axis=1)
    scores = first.errors(X, y).mean(axis=0) / np.maximum(1 - freedom / n, 1e-3) ** 2
    starts, best = starts_of(labels), first.coefs[np.argmin(scores)]
    norms = np.sqrt(np.add.reduceat(best * best, starts))
    sizes = np.diff(np.r_[starts, labels.size])
    # bounded, so that a group without any variance in these rows does not make a weight infinite
    return adelie_raw(X, y, labels, grid, sizes / np.maximum(norms, 1e-4 * (norms.max() or 1.0)))


adaptive = on_unit_columns(_adaptive)


# ---------------------------------------------------------------------- folded concave penalties, best subsets


def concave(name: str, gamma: float) -> PathMethod:
    """Group MCP or SCAD with grpreg's settings."""

    def solve(X, y, labels, grid):
        import concave as penalties

        model = getattr(penalties, name)(groups=labels, gamma=gamma, tol=1e-4, max_iter=10_000 // N_PENALTIES)
        path = model.path(X, y, grid, n_penalties=N_PENALTIES)
        return Models(path.penalties, path.coefs.toarray(), path.intercepts)

    return solve


group_mcp, group_scad = concave("GroupMCP", 3.0), concave("GroupSCAD", 4.0)
SUPPORT_SIZES = (*range(16), 20, 25, 30, 35, 40, 45, 50, 60, 80, 100, 150, 200, 300)


def abess(X: np.ndarray, y: np.ndarray, labels: np.ndarray, grid: np.ndarray | None) -> Models:
    """Best subset of groups for every number of groups; it refuses constant columns, so they are left out."""
    from abess import LinearRegression

    n, p = X.shape
    on = np.ptp(X, axis=0) > 0
    _, inside = np.unique(labels[on], return_inverse=True)
    count = int(inside.max()) + 1
    width = p / count
    if grid is None:
        grid = np.array([k for k in SUPPORT_SIZES if k <= count and (k <= 10 or k * width <= 1.5 * n)])
    coefs, intercepts = np.full((grid.size, p), np.nan), np.full(grid.size, np.nan)
    for i, size in enumerate(grid):
        if size == 0:
            coefs[i], intercepts[i] = 0.0, y.mean()
            continue
        if size > count:  # a fold whose rows leave a group constant
            continue
        model = LinearRegression(support_size=[int(size)], thread=1, group=inside).fit(X[:, on], y)
        if np.isfinite(model.coef_).all():
            coefs[i], intercepts[i] = 0.0, float(model.intercept_)
            coefs[i, on] = model.coef_
    return Models(grid, coefs, intercepts)


# ---------------------------------------------------------------------- without groups


def lasso(X: np.ndarray, y: np.ndarray, labels: np.ndarray, grid: np.ndarray | None) -> Models:
    """The lasso without groups."""
    return adelie_standardised(X, y, np.arange(X.shape[1]), grid)


def _ridge(X: np.ndarray, y: np.ndarray, labels: np.ndarray, grid: np.ndarray | None) -> Models:
    mean, level = X.mean(axis=0), y.mean()
    U, s, Vt = np.linalg.svd(X - mean, full_matrices=False)
    if grid is None:
        grid = np.geomspace(1e3, 1e-6, N_PENALTIES) * max(s[0] ** 2 / len(y), 1e-300)
    b = U.T @ (y - level)
    coefs = (b * s / (s * s + len(y) * grid[:, None])) @ Vt
    return Models(grid, coefs, level - coefs @ mean)


ridge = on_unit_columns(_ridge)


def least_squares(problem: Problem) -> Fit:
    """On all columns; of several solutions the one of least norm on columns of unit variance."""
    mean, scale = problem.X.mean(axis=0), problem.X.std(axis=0)
    scale = np.where(scale > 1e-10 * (1 + np.abs(mean)), scale, np.inf)
    coef, _, rank, _ = np.linalg.lstsq((problem.X - mean) / scale, problem.y - problem.y.mean(), rcond=1e-9)
    if rank >= len(problem.y) - 1:
        raise NotImplementedError("as many independent columns as rows: least squares fits every response exactly")
    return problem.linear(coef / scale, problem.y.mean() - mean @ (coef / scale))


def mean(problem: Problem) -> Fit:
    return problem.linear(np.zeros(problem.labels.size), problem.y.mean())


PEERS: dict[str, Method] = {
    "adelie raw": by(adelie_raw),
    "adelie orthonormal": by(adelie_orthonormal),
    "adelie standardised": by(adelie_standardised),
    "relaxed": by(relaxed(adelie_standardised)),
    "adaptive": by(adaptive),
    "group MCP": by(group_mcp),
    "group SCAD": by(group_scad),
    "abess": by(abess),
    "lasso": by(lasso),
    "ridge": by(ridge),
    "least squares": least_squares,
    "mean": mean,
}
