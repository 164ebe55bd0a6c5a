"""Paths of models by the peers, and the choice among the models of a path by everyone's folds.

The group lasso (adelie, skglm) is a path of 100 penalties with the square roots of group sizes as weights, abess a path
of numbers of groups. The grid comes from all training rows, every fold fits the same grid, and the model is that of the
path over all rows where the held-out deviance of the folds is least. All run on one thread with their own tolerances.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from glm_problems import Fit, GlmProblem, independent

N_PENALTIES = 100


@dataclass
class Models:
    """Models over a grid: `coefs` is models x columns x outputs, `intercepts` models x outputs."""

    grid: np.ndarray
    coefs: np.ndarray
    intercepts: np.ndarray

    def predictors(self, X: np.ndarray) -> np.ndarray:
        """Models x rows x outputs."""
        used = np.flatnonzero(np.any(self.coefs != 0, axis=(0, 2)))
        return np.moveaxis(np.tensordot(X[:, used], self.coefs[:, used], axes=(1, 1)), 1, 0) + self.intercepts[:, None]

    def only(self, i: int) -> Models:
        return Models(self.grid[i : i + 1], self.coefs[i : i + 1], self.intercepts[i : i + 1])


# rows, responses, and a grid or the ratio of the least penalty to the largest
PathMethod = Callable[[GlmProblem, np.ndarray, np.ndarray, "np.ndarray | float"], Models]


def by_folds(problem: GlmProblem, path: PathMethod, ratio: float = 1e-2, least: float = 1e-4) -> Fit:
    """The model of the path that the folds choose; while that is at the end of the grid, the grid gets longer."""
    models = path(problem, problem.X, problem.y, ratio)
    losses = np.zeros(models.grid.size)
    for fold in np.unique(problem.fold_of):
        out = problem.fold_of == fold
        inner = path(problem, problem.X[~out], problem.y[~out], models.grid)
        losses += [problem.family.loss(problem.y[out], eta).sum() for eta in inner.predictors(problem.X[out])]
    best = int(np.argmin(np.where(np.isfinite(losses), losses, np.inf)))
    if best >= models.grid.size - 2 and ratio > 1.01 * least:
        return by_folds(problem, path, ratio / 10, least)
    groups = np.unique(problem.labels[np.any(models.coefs[best] != 0, axis=1)])
    mean = problem.family.mean(models.only(best).predictors(problem.X_test)[0])
    return Fit(mean, groups, {"penalty": best, "ratio": ratio})


# ---------------------------------------------------------------------- the group lasso


def adelie_on(starts: Callable[[GlmProblem], np.ndarray]) -> PathMethod:
    """The group lasso by adelie on the columns as they are, groups beginning at `starts`."""

    def path(problem, X, y, grid):
        import adelie as ad

        p, m = X.shape[1], problem.outputs
        y = problem.family.outputs(y, m)
        glm = {
            "binomial": ad.glm.binomial, "poisson": ad.glm.poisson, "multinomial": ad.glm.multinomial,
            "several": ad.glm.multigaussian,
        }[problem.family.name]  # fmt: skip
        options = {"lmda_path_size": N_PENALTIES, "min_ratio": grid} if isinstance(grid, float) else {"lmda_path": grid}
        state = ad.grpnet(
            X=np.asfortranarray(X), glm=glm(np.ascontiguousarray(y if m > 1 else y[:, 0])), groups=starts(problem),
            early_exit=False, progress_bar=False, n_threads=1, **options,
        )  # fmt: skip
        penalties = np.asarray(state.lmda_path) if isinstance(grid, float) else grid
        coefs = state.betas.toarray().reshape(-1, p, m)
        intercepts = np.asarray(state.intercepts).reshape(-1, m)
        short = penalties.size - len(coefs)
        if short:  # the solver gave up before the end of the grid
            coefs = np.concatenate([coefs, np.full((short, p, m), np.nan)])
            intercepts = np.concatenate([intercepts, np.full((short, m), np.nan)])
        return Models(penalties, coefs, intercepts)

    return path


adelie_groups = adelie_on(lambda problem: problem.starts)
adelie_single = adelie_on(lambda problem: np.arange(problem.labels.size))


def unit_columns(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and scales of columns; a constant column's scale is infinite, which leaves it out."""
    mean, scale = X.mean(axis=0), X.std(axis=0)
    return mean, np.where(scale > 1e-10 * (1 + np.abs(mean)), scale, np.inf)


def on_unit_columns(path: PathMethod) -> PathMethod:
    """The same on columns of unit variance."""

    def solve(problem, X, y, grid):
        mean, scale = unit_columns(X)
        models = path(problem, (X - mean) / scale, y, grid)
        coefs = models.coefs / scale[:, None]
        return Models(models.grid, coefs, models.intercepts - np.einsum("lpm,p->lm", coefs, mean))

    return solve


def skglm_path(problem: GlmProblem, X: np.ndarray, y: np.ndarray, grid: np.ndarray | float) -> Models:
    """The group lasso by skglm's prox-Newton solver, from one penalty to the next; binary classes and counts only."""
    from skglm.datafits import LogisticGroup, PoissonGroup
    from skglm.penalties import WeightedGroupL2
    from skglm.solvers import GroupProxNewton
    from skglm.utils.jit_compilation import compiled_clone

    sizes = np.diff(np.r_[problem.starts, X.shape[1]])
    pointers, indices = np.r_[problem.starts, X.shape[1]].astype(np.int32), np.arange(X.shape[1], dtype=np.int32)
    weights = np.sqrt(sizes.astype(float))
    if isinstance(grid, float):
        gradient = X.T @ (y - y.mean()) / len(y)
        largest = (np.sqrt(np.add.reduceat(gradient**2, problem.starts)) / weights).max()
        grid = largest * np.geomspace(1, grid, N_PENALTIES)
    logistic = problem.family.name == "binomial"
    datafit = compiled_clone((LogisticGroup if logistic else PoissonGroup)(pointers, indices))
    penalty = compiled_clone(WeightedGroupL2(1.0, weights, pointers, indices))
    solver = GroupProxNewton(fit_intercept=True, warm_start=True, max_iter=50)
    X, target, w, Xw = np.asfortranarray(X), 2 * y - 1 if logistic else y, None, None
    found = np.empty((grid.size, X.shape[1] + 1))
    for i, value in enumerate(grid):
        penalty.alpha = value
        w, _, _ = solver.solve(X, target, datafit, penalty, w, Xw)
        found[i], Xw = w, X @ w[:-1] + w[-1]
    return Models(grid, found[:, :-1, None], found[:, -1:])


# ---------------------------------------------------------------------- best subsets of groups


def abess_model(problem: GlmProblem) -> type:
    import abess

    return {
        "binomial": abess.LogisticRegression, "poisson": abess.PoissonRegression,
        "multinomial": abess.MultinomialRegression, "several": abess.MultiTaskRegression,
    }[problem.family.name]  # fmt: skip


def sizes(X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Numbers of groups up to abess's own largest."""
    n, p = X.shape
    return np.arange(min(int(n / (np.log(np.log(n)) * np.log(p))), int(labels[-1]) + 1) + 1)


def abess_path(problem: GlmProblem, X: np.ndarray, y: np.ndarray, grid: np.ndarray | float) -> Models:
    """The best subset of groups for every number of them, on independent columns."""
    used = problem.independent if X is problem.X else independent(X, problem.labels)
    present, inside = np.unique(problem.labels[used], return_inverse=True)
    counts = sizes(X, problem.labels) if isinstance(grid, float) else grid
    coefs = np.full((counts.size, X.shape[1], problem.outputs), np.nan)
    intercepts = np.full((counts.size, problem.outputs), np.nan)
    for i, size in enumerate(counts[counts <= present.size]):
        model = abess_model(problem)(support_size=[int(size)], group=inside, thread=1).fit(X[:, used], y)
        coefs[i], intercepts[i] = 0.0, model.intercept_
        coefs[i, used] = model.coef_.reshape(used.size, -1)
    return Models(counts, coefs, intercepts)
