"""Paths of models by the peers, and the choice among the models of a path by everyone's folds or validation rows.

A path is a grid, of penalties or of numbers of groups, and a model for each value. With validation rows the path is
fitted to the training rows and the least validation loss decides; with folds the grid comes from all training rows,
every fold fits the same grid, and the model is that of the path over all rows where the held-out loss of the folds is
least. All run on one thread with their own tolerances.

The group lasso and its relatives are solved by adelie, on raw columns, on columns of unit variance and on groups made
orthonormal, with the square roots of group sizes as weights. Group MCP and SCAD follow grpreg (group descent on
orthonormal groups, gamma 3 and 4, 100 penalties, tolerance 1e-4, at most 10 000 sweeps over a path); that they are
stationary is tested in `tests/paper/baselines/test_concave.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import lstsq

from .problem import CannotRunError, Fit, Method, Problem, independent

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

    def moved(self, coefs: np.ndarray, mean: np.ndarray) -> Models:
        """With other coefficients, for columns from which `mean` was not subtracted."""
        return Models(self.grid, coefs, self.intercepts - np.einsum("lpm,p->lm", coefs, mean))


# a problem, of which the groups and the family count; rows; responses; a grid, or its end over its beginning
PathMethod = Callable[[Problem, np.ndarray, np.ndarray, "np.ndarray | float"], Models]


def by(*paths: PathMethod, ratio: float | None = None, least: float | None = None) -> Method:
    """The best model over all grids of all `paths`.

    The least penalty is `ratio` of the largest, and while the choice is at the end of the grid, it gets longer, down
    to `least`. By default it is long enough from the start for numbers, and 1e-2 and 1e-4 otherwise.
    """

    def solve(problem: Problem) -> Fit:
        quadratic = problem.family.name == "gaussian"
        usual = (1e-3 if len(problem.y) < problem.labels.size else 1e-4) if quadratic else 1e-2
        first = usual if ratio is None else ratio
        last = (first if quadratic else 1e-4) if least is None else least
        return min((chosen(problem, path, first, last) for path in paths), key=lambda found: found[0])[1]

    return solve


def chosen(problem: Problem, path: PathMethod, ratio: float, least: float) -> tuple[float, Fit]:
    """The judged loss of the model that is chosen from a path, and the model."""
    models = path(problem, problem.X, problem.y, ratio)
    if problem.validation is not None:
        X, y = problem.validation
        losses = problem.family.held_out(X, y, models, np.full(len(y), True))
    else:
        losses = np.zeros(models.grid.size)
        for fold in np.unique(problem.fold_of):
            out = problem.fold_of == fold
            inner = path(problem, problem.X[~out], problem.y[~out], models.grid)
            losses += problem.family.held_out(problem.X, problem.y, inner, out)
    # a model that could not be fitted has no finite loss, and is not chosen
    best = int(np.argmin(np.where(np.isfinite(losses), losses, np.inf)))
    if best >= models.grid.size - 2 and ratio > 1.01 * least:
        return chosen(problem, path, ratio / 10, least)
    return float(losses[best]), problem.linear(models.coefs[best], models.intercepts[best])


def only(*families: str) -> Callable[[PathMethod], PathMethod]:
    """A path that says for which kinds of response there is none."""

    def decorate(path: PathMethod) -> PathMethod:
        def solve(problem, X, y, grid, *rest):
            if problem.family.name not in families:
                raise CannotRunError(f"only for {', '.join(families)} responses")
            return path(problem, X, y, grid, *rest)

        return solve

    return decorate


# ---------------------------------------------------------------------- columns as the path sees them


def unit_columns(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and scales of columns; a constant column's scale is infinite, which leaves it out."""
    mean, scale = X.mean(axis=0), X.std(axis=0)
    return mean, np.where(scale > 1e-10 * (1 + np.abs(mean)), scale, np.inf)


def on_unit_columns(path: PathMethod) -> PathMethod:
    """The same on columns of unit variance."""

    def solve(problem, X, y, grid):
        mean, scale = unit_columns(X)
        models = path(problem, (X - mean) / scale, y, grid)
        return models.moved(models.coefs / scale[:, None], mean)

    return solve


def on_orthonormal_groups(path: PathMethod) -> PathMethod:
    """The same on groups made orthonormal; a group's size is then its rank."""

    def solve(problem, X, y, grid):
        mean, maps, parts, kept = X.mean(axis=0), [], [], []
        for l, columns in enumerate(np.split(np.arange(X.shape[1]), problem.starts[1:])):
            block = X[:, columns] - mean[columns]
            _, s, Vt = np.linalg.svd(block, full_matrices=False)
            on = s > max(1e-7 * s[0], 1e-10 * (1 + np.abs(mean[columns]).max()))
            maps.append(Vt[on].T / s[on] * np.sqrt(len(y)))
            parts.append(block @ maps[-1])
            kept.append(np.full(int(on.sum()), l))
        models = path(replace(problem, labels=np.concatenate(kept)), np.hstack(parts), y, grid)
        ends = np.cumsum([0, *(len(k) for k in kept)])
        pieces = zip(ends[:-1], ends[1:], maps, strict=True)
        return models.moved(np.concatenate([m @ models.coefs[:, a:b] for a, b, m in pieces], axis=1), mean)

    return solve


def single_columns(path: PathMethod) -> PathMethod:
    """The same without groups."""
    return lambda problem, X, y, grid: path(replace(problem, labels=np.arange(X.shape[1])), X, y, grid)


# ---------------------------------------------------------------------- the group lasso


def adelie(problem, X, y, grid, weights=None) -> Models:
    """The group lasso by adelie on the columns as they are."""
    import adelie as ad

    p, m, name = X.shape[1], problem.outputs, problem.family.name
    if name == "cox":
        glm = ad.glm.cox(np.full(len(y), -1.0), y["time"].copy(), y["event"].astype(float), tie_method="efron")
    else:
        y = np.ascontiguousarray(problem.family.outputs(y, m), dtype=float)
        glm = getattr(ad.glm, {"several": "multigaussian"}.get(name, name))(y if m > 1 else y[:, 0])
    if problem.always:
        weights = np.sqrt(problem.sizes) * ~np.isin(np.arange(problem.sizes.size), problem.always)
    options = {"lmda_path_size": N_PENALTIES, "min_ratio": grid} if isinstance(grid, float) else {"lmda_path": grid}
    state = ad.grpnet(
        X=np.asfortranarray(X), glm=glm, groups=problem.starts, penalty=weights, intercept=name != "cox",
        early_exit=False, ddev_tol=0, adev_tol=1.0, progress_bar=False, n_threads=1, **options,
    )  # fmt: skip
    penalties = np.asarray(state.lmda_path) if isinstance(grid, float) else grid
    coefs, intercepts = state.betas.toarray().reshape(-1, p, m), np.asarray(state.intercepts).reshape(-1, m)
    short = penalties.size - len(coefs)
    if short:  # the solver gave up before the end of the grid
        coefs = np.concatenate([coefs, np.full((short, p, m), np.nan)])
        intercepts = np.concatenate([intercepts, np.full((short, m), np.nan)])
    return Models(penalties, coefs, intercepts)


def relaxed(path: PathMethod) -> PathMethod:
    """Least squares on the supports of a path, as long as there are more rows than columns."""

    @only("gaussian")
    def solve(problem, X, y, grid):
        models = path(problem, X, y, grid)
        coefs, intercepts = np.full_like(models.coefs, np.nan), np.full_like(models.intercepts, np.nan)
        mean, level, last = X.mean(axis=0), y.mean(), None
        for i, w in enumerate(models.coefs[:, :, 0]):
            on = np.isin(problem.labels, problem.labels[w != 0]) if np.isfinite(w).all() else None
            if on is None or on.sum() >= len(y) - 1:
                break
            if last is not None and np.array_equal(on, last):
                coefs[i], intercepts[i] = coefs[i - 1], intercepts[i - 1]
                continue
            coefs[i] = 0.0
            coefs[i, on, 0] = lstsq(X[:, on] - mean[on], y - level, cond=1e-9, lapack_driver="gelsy")[0]
            intercepts[i], last = level - mean @ coefs[i], on
        return Models(models.grid, coefs, intercepts)

    return solve


@only("gaussian")
def _adaptive(problem, X, y, grid) -> Models:
    """Weights divided by the groups' norms in a ridge regression of the penalty that is best by GCV."""
    first = _ridge(problem, X, y, 1e-9)
    n, s = len(y), np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    freedom = 1 + (s * s / (s * s + n * first.grid[:, None])).sum(axis=1)
    errors = np.array([problem.family.loss(y, eta).mean() for eta in first.predictors(X)])
    best = first.coefs[np.argmin(errors / np.maximum(1 - freedom / n, 1e-3) ** 2), :, 0]
    norms = np.sqrt(np.add.reduceat(best * best, problem.starts))
    # bounded, so that a group without any variance in these rows does not make a weight infinite
    return adelie(problem, X, y, grid, problem.sizes / np.maximum(norms, 1e-4 * (norms.max() or 1.0)))


@only("gaussian", "binomial", "poisson")
def skglm(problem, X, y, grid) -> Models:
    """The group lasso by skglm, from one penalty to the next: block coordinate descent, or prox-Newton steps."""
    from skglm.datafits import LogisticGroup, PoissonGroup, QuadraticGroup
    from skglm.penalties import WeightedGroupL2
    from skglm.solvers import GroupBCD, GroupProxNewton
    from skglm.utils.jit_compilation import compiled_clone

    pointers, indices = np.r_[problem.starts, X.shape[1]].astype(np.int32), np.arange(X.shape[1], dtype=np.int32)
    weights, name = np.sqrt(problem.sizes.astype(float)), problem.family.name
    if isinstance(grid, float):
        gradient = X.T @ (y - y.mean()) / len(y)
        largest = (np.sqrt(np.add.reduceat(gradient**2, problem.starts)) / weights).max()
        grid = largest * np.geomspace(1, grid, N_PENALTIES)
    kinds = {"gaussian": QuadraticGroup, "binomial": LogisticGroup, "poisson": PoissonGroup}
    datafit = compiled_clone(kinds[name](pointers, indices))
    penalty = compiled_clone(WeightedGroupL2(1.0, weights, pointers, indices))
    options = {"fit_intercept": True, "warm_start": True}
    solver = GroupBCD(**options) if name == "gaussian" else GroupProxNewton(max_iter=50, **options)
    X, target, w, Xw = np.asfortranarray(X), 2.0 * y - 1 if name == "binomial" else y, None, None
    if name == "gaussian":
        datafit.initialize(X, target)
    found = np.empty((grid.size, X.shape[1] + 1))
    for i, value in enumerate(grid):
        penalty.alpha = value
        w, _, _ = solver.solve(X, target, datafit, penalty, w, Xw)
        found[i], Xw = w, X @ w[:-1] + w[-1]
    return Models(grid, found[:, :-1, None], found[:, -1:])


# ---------------------------------------------------------------------- folded concave penalties, best subsets


def concave(name: str, gamma: float) -> PathMethod:
    """Group MCP or SCAD with grpreg's settings."""

    @only("gaussian")
    def solve(problem, X, y, grid):
        from . import concave as penalties

        model = getattr(penalties, name)(groups=problem.labels, gamma=gamma, tol=1e-4, max_iter=10_000 // N_PENALTIES)
        path = model.path(X, y, None if isinstance(grid, float) else grid, n_penalties=N_PENALTIES)
        return Models(path.penalties, path.coefs.toarray()[:, :, None], path.intercepts[:, None])

    return solve


def abess_model(problem: Problem) -> type:
    import abess as peer

    names = {"gaussian": "Linear", "binomial": "Logistic", "several": "MultiTask"}
    return getattr(peer, names.get(problem.family.name, problem.family.name.capitalize()) + "Regression")


def abess_sizes(problem: Problem, n: int) -> np.ndarray:
    """Numbers of groups: abess's own largest, or for numbers, where it is quick, more, with gaps."""
    count, p = problem.starts.size, problem.labels.size
    if problem.family.name != "gaussian":
        return np.arange(min(int(n / (np.log(np.log(n)) * np.log(p))), count) + 1)
    sizes = (*range(16), 20, 25, 30, 35, 40, 45, 50, 60, 80, 100, 150, 200, 300)
    return np.array([k for k in sizes if k <= count and (k <= 10 or k * p / count <= 1.5 * n)])


@only("gaussian", "binomial", "multinomial", "poisson", "several")
def abess(problem, X, y, grid) -> Models:
    """The best subset of groups for every number of them, on independent columns."""
    used = problem.independent if X is problem.X else independent(X, problem.labels)
    present, inside = np.unique(problem.labels[used], return_inverse=True)
    counts = abess_sizes(problem, len(y)) if isinstance(grid, float) else grid
    coefs = np.full((counts.size, X.shape[1], problem.outputs), np.nan)
    intercepts = np.full((counts.size, problem.outputs), np.nan)
    for i, size in enumerate(counts):
        if size > present.size:  # a fold whose rows leave a group constant
            break
        model = abess_model(problem)(support_size=[int(size)], group=inside, thread=1).fit(X[:, used], y)
        if np.isfinite(model.coef_).all():
            coefs[i], intercepts[i] = 0.0, model.intercept_
            coefs[i, used] = model.coef_.reshape(used.size, -1)
    return Models(counts, coefs, intercepts)


# ---------------------------------------------------------------------- without groups


@only("gaussian")
def _ridge(problem, X, y, grid) -> Models:
    mean, level = X.mean(axis=0), y.mean()
    U, s, Vt = np.linalg.svd(X - mean, full_matrices=False)
    if isinstance(grid, float):
        grid = np.geomspace(1e3, 1e-6, N_PENALTIES) * max(s[0] ** 2 / len(y), 1e-300)
    coefs = ((U.T @ (y - level)) * s / (s * s + len(y) * grid[:, None])) @ Vt
    return Models(grid, coefs[:, :, None], (level - coefs @ mean)[:, None])


adelie_standardised = on_unit_columns(adelie)
adelie_orthonormal = on_orthonormal_groups(adelie)
adaptive = on_unit_columns(_adaptive)
group_mcp, group_scad = concave("GroupMCP", 3.0), concave("GroupSCAD", 4.0)
lasso = on_unit_columns(single_columns(adelie))
ridge = on_unit_columns(_ridge)
