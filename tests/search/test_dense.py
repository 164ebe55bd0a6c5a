"""What models are made from: Gram rows of parts, elimination, ridges on sets, reweighted ridges."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from covey.limit.kernel import RowKernel
from covey.limit.least_squares import LeastSquares, NormalEquations
from covey.limit.posing import pose
from covey.limit.reweighted import SMALLEST_SHARE, DenseRows, TallTraining, WideTraining, noise_norms, shares_of
from covey.limit.rows import PartedRows, Split
from covey.selection.fitting_squares import cleaned_models

from covey import Groups
from covey.designs import as_design
from covey.preprocess import prepare
from covey.search.elimination import eliminate, eliminate_all
from covey.search.events import EventPath
from covey.search.paths import Near, Paths
from covey.search.ridges import Penalties, ridge_models
from limit_reference import mixed_problem, refit


def table(n=40, ranks=(2, 1, 3), seed=0, extras=0):
    rng = np.random.default_rng(seed)
    k = sum(ranks) + extras
    weight = rng.uniform(0.5, 2, n)
    A = np.column_stack([rng.standard_normal((n, k)), np.ones(n), rng.standard_normal(n)])
    return np.sqrt(weight)[:, None] * A


# ------------------------------------------------------------------ rows in parts


@pytest.mark.parametrize("sizes", [(6, 9, 5), (200, 30, 100)], ids=["few rows", "many rows"])
@pytest.mark.parametrize("extras", [0, 2])
def test_gram_rows_of_parts(sizes, extras):
    ranks = np.array([2, 1, 0, 3])
    parts = [table(n, (2, 1, 3), seed, extras) for seed, n in enumerate(sizes)]
    rows = PartedRows(parts, ranks)
    assert all(len(part) <= max(1.5 * part.shape[1], 9) for part in rows.parts)
    for group, own in enumerate(([0, 1], [2], [], [3, 4, 5])):
        expected = [part[:, own].T @ part for part in parts]
        np.testing.assert_allclose(rows.gram_rows(group), expected, atol=1e-10)
    for k, part in enumerate(parts):
        assert rows.weight([k]) == pytest.approx(part[:, -2] @ part[:, -2])
        assert rows.total_response([k]) == pytest.approx(part[:, -2] @ part[:, -1])
        w = np.random.default_rng(9).standard_normal(part.shape[1])
        assert np.sum((rows.parts[k] @ w) ** 2) == pytest.approx(np.sum((part @ w) ** 2))
    assert rows.weight([0, 2]) == pytest.approx(rows.weight([0]) + rows.weight([2]))
    np.testing.assert_array_equal(rows.columns([3, 0]), [3, 4, 5, 0, 1])


@pytest.mark.parametrize("intercept", [True, False])
def test_training_parts_are_least_squares_on_their_rows(intercept):
    parts = [table(n, seed=seed) for seed, n in enumerate((12, 70, 15))]
    objective = LeastSquares(PartedRows(parts, np.array([2, 1, 3])), [0, 2], intercept)
    A = np.concatenate([parts[0], parts[2]])
    q = A[:, -2] ** 2
    X, y = A[:, :6] / A[:, [-2]], A[:, -1] / A[:, -2]
    own = {0: [0, 1], 1: [2], 2: [3, 4, 5]}
    columns: list[int] = []
    for m, group in enumerate([None, 2, 0, 1]):
        if group is not None:
            objective.refit(group)
            columns += own[group]
        coef, level = refit(X, y, columns, q / q.sum(), intercept)
        residual = y - X @ coef - level
        gradient = X.T @ (q * residual) / q.sum()
        norms = [np.linalg.norm(gradient[at]) for at in own.values()]
        np.testing.assert_allclose(objective.gradient_norms(), norms, atol=1e-12)
        assert objective.unexplained()[-1] == pytest.approx(q @ residual**2 / q.sum())
        knot = objective.knots(m, m)[0]
        found = dict(zip(objective.basis, knot, strict=True))
        np.testing.assert_allclose([found.get(j, 0.0) for j in range(6)], coef, atol=1e-10)
        equations = objective.normal_equations()
        w = np.linalg.solve(equations.K, equations.c)
        np.testing.assert_allclose(w, coef[equations.columns], atol=1e-10)
        assert equations.intercepts(w[None, :])[0] == pytest.approx(level, abs=1e-12)


def test_going_back_is_as_if_it_had_not_happened():
    rows = PartedRows([table()], np.array([2, 1, 3]))
    path = EventPath(LeastSquares(rows, [0], True), np.ones(3), np.arange(3))
    rates, sums = [path.rates()], [path.sums]
    while path.advance():
        rates.append(path.rates())
        sums.append(path.sums)
    groups, times = list(path.groups), list(path.times)
    assert len(groups) == 3
    for back in (2, 1, 0):
        path.truncate(back)
        np.testing.assert_allclose(path.rates(), rates[back], atol=1e-12)
        np.testing.assert_allclose(path.sums, sums[back])
        assert path.groups == groups[:back]
    while path.advance():
        pass
    assert path.groups == groups
    np.testing.assert_allclose(path.times, times, rtol=1e-12)


# ------------------------------------------------------------------ elimination


def quadratic(seed, sizes=(1, 3, 2, 2, 1, 4)):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((30, sum(sizes)))
    return A.T @ A / 30, A.T @ rng.standard_normal(30) / 30, np.concatenate([[0], np.cumsum(sizes)])


@pytest.mark.parametrize("small", [0, 256], ids=["cut down", "as it is"])
@pytest.mark.parametrize("n_always", [0, 2])
@pytest.mark.parametrize("seed", range(3))
def test_each_group_dropped_is_the_one_of_least_rise_per_dimension(seed, n_always, small, monkeypatch):
    monkeypatch.setattr("covey.search.elimination.SMALL", small)
    K, c, starts = quadratic(seed)
    own = [np.arange(a, b) for a, b in pairwise(starts)]

    def best(groups):
        at = np.concatenate([own[l] for l in groups]) if groups else np.empty(0, dtype=int)
        w = np.zeros(c.size)
        if groups:
            w[at] = np.linalg.solve(K[np.ix_(at, at)], c[at])
        return w, -c @ w / 2

    dropped, W = eliminate(K, c, starts, n_always)
    left = list(range(6))
    np.testing.assert_allclose(W[0], best(left)[0], atol=1e-6)
    for group, w in zip(dropped, W[1:], strict=True):
        value = best(left)[1]
        rises = {l: (best([k for k in left if k != l])[1] - value) / own[l].size for l in left if l >= n_always}
        assert group == min(rises, key=rises.get)
        left.remove(group)
        np.testing.assert_allclose(w, best(left)[0], atol=1e-6)
    assert left == list(range(n_always))


def test_elimination_survives_groups_that_repeat_each_other_nearly():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 4))
    A = np.column_stack([A, A[:, :2] + 1e-5 * rng.standard_normal((30, 2))])
    y = A[:, :2].sum(axis=1)
    dropped, W = eliminate(A.T @ A / 30, A.T @ y / 30, np.array([0, 2, 4, 6]))
    assert np.isfinite(W).all()
    assert dropped[0] == 1  # the one without signal; either of the twins will do in the end
    np.testing.assert_allclose(A @ W[2], y, atol=1e-3)


def test_groups_without_columns_are_dropped_first():
    K, c, _ = quadratic(0, (2, 3))
    for dropped, W in [eliminate(K, c, np.array([0, 2, 2, 5])), *eliminate_all([(K, c, np.array([0, 2, 2, 5]))] * 2)]:
        assert dropped[0] == 1
        np.testing.assert_allclose(W[1], W[0])


@pytest.mark.parametrize("n_always", [0, 2])
@pytest.mark.parametrize("sizes", [(1,) * 8, (3,) * 5, (2, 3, 3, 2, 3), (1, 9, 2, 1)], ids=str)
def test_several_eliminations_together_are_one_after_another(sizes, n_always):
    """Problems of equally many groups in other orders, one with fewer groups, and one that stands alone."""
    rng = np.random.default_rng(3)
    problems = [quadratic(seed, tuple(rng.permutation(sizes))) for seed in range(4)]
    problems += [quadratic(7, sizes[:-1]), quadratic(8, sizes[:-1]), quadratic(9, sizes[:3])]
    for (dropped, W), one in zip(eliminate_all(problems, n_always), problems, strict=True):
        expected = eliminate(*one, n_always)
        assert dropped == expected[0]
        np.testing.assert_allclose(W, expected[1], atol=1e-10)


# ------------------------------------------------------------------ ridges on sets


def test_the_penalty_is_that_of_scaled_columns():
    X, y, lists = mixed_problem()
    problem, _ = prepare(X, y, Groups.from_lists(lists))
    rng = np.random.default_rng(0)
    for l, M in zip((0, 1, 2), Penalties(problem).of([0, 1, 2]), strict=True):
        w = rng.standard_normal(int(problem.ranks[l]))
        coef = problem.to_user(l, w) / problem.y_scale
        own = X[:, lists[l]]
        assert w @ M @ w == pytest.approx(np.sum(coef**2 * own.std(axis=0) * np.ptp(own, axis=0) / 6))


def test_a_penalty_does_not_change_with_the_units_of_a_group():
    X, y, lists = mixed_problem()
    for l in (0, 4, 6):
        forms = [Penalties(prepare(X * scale, y, Groups.from_lists(lists))[0]).of([l])[0] for scale in (1.0, 250.0)]
        np.testing.assert_allclose(np.linalg.eigvalsh(forms[0]), np.linalg.eigvalsh(forms[1]), rtol=1e-8)


def test_penalties_of_columns_that_are_only_scaled_and_do_not_vary_or_repeat_each_other():
    X, y, _ = mixed_problem()
    X[:, 0], X[:, 2] = 3.0, X[:, 1]
    problem, _ = prepare(X, y, Groups.from_size(X.shape[1], X.shape[1]), standardize="column")
    (M,) = Penalties(problem).of([0])
    varying = X[:, X.std(axis=0) > 0]
    np.testing.assert_allclose(M, np.diag(np.ptp(varying, axis=0) / varying.std(axis=0) / 6), atol=1e-9)


@pytest.mark.parametrize("lengths", [[6, 4, 1], [3, 3], [2, 5], [0], []], ids=str)
def test_ridges_on_nested_sets_are_direct_solves(lengths):
    K, c, starts = quadratic(1)
    M = np.diag(np.linspace(0.5, 2, c.size))
    equations = NormalEquations(K, c, np.arange(c.size), starts, np.zeros(c.size), 0.0)
    np.testing.assert_array_equal(equations.positions([1, 3]), [1, 2, 3, 6, 7])
    order = np.random.default_rng(0).permutation(c.size)
    W = ridge_models(equations, M, order, np.array(lengths, dtype=int), [0.1, 3.0])
    assert len(W) == 2 * len(lengths)
    for row, (k, penalty) in enumerate([(k, penalty) for k in lengths for penalty in (0.1, 3.0)]):
        expected, at = np.zeros(c.size), order[:k]
        if k:
            expected[at] = np.linalg.solve(K[np.ix_(at, at)] + penalty * M[np.ix_(at, at)], c[at])
        np.testing.assert_allclose(W[row], expected, atol=1e-12)


# ------------------------------------------------------------------ ridges on all columns


def dense_rows(n, intercept, seed=0, full_rank=False):
    X, y, lists = mixed_problem(n, seed=seed)
    if full_rank:
        X[:, [lists[4][4], lists[6][1]]] = np.random.default_rng(9).standard_normal((n, 2))
    weight = np.random.default_rng(1).uniform(0.5, 2, n)
    held = np.arange(n) % 4 == 0
    parts = [np.where(held, 0.0, weight), np.where(held, weight, 0.0)]
    posed = pose(
        as_design(X), y, Groups.from_lists(lists), weight, parts, [float((~held).sum()), float(held.sum())],
        [Split((0,), (1,)), Split((0, 1))], fit_intercept=intercept,
    )  # fmt: skip
    near = Near(posed)
    return X, y, lists, weight, held, posed, DenseRows(near.rows, near.groups, Penalties(posed.problem), intercept)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n", [24, 120], ids=["wide", "tall"])
def test_a_reweighted_ridge_minimises_its_objective(n, intercept):
    X, y, lists, weight, held, posed, rows = dense_rows(n, intercept)
    training = rows.training(posed.splits[0], float((~held).sum()))
    shares = np.random.default_rng(2).uniform(0.1, 5, len(lists))
    penalty = 0.3 * training.unit
    (fit,) = rows.fits(training, [penalty], shares[None])
    problem = posed.problem
    columns, loadings, offset = problem.combination(list(range(len(lists))))
    coef = np.zeros(X.shape[1])
    w = rows.working(fit)[0][0]
    coef[columns] = loadings @ w
    level = fit.intercept - offset @ w
    # gradient of the objective with respect to the model on the columns of X
    q = np.where(held, 0.0, weight) / weight[~held].sum()
    unit_y = (y - problem.y_mean) / problem.y_scale
    residual = unit_y - X @ coef - level
    if intercept:
        assert abs(q @ residual) < 1e-10
    else:
        assert level == 0
    for l, own in enumerate(lists):
        w = rows.working(fit)[0][0][problem.starts[l] : problem.starts[l + 1]]
        Z = problem.working_columns(np.array([l]))
        (M,) = Penalties(problem).of([l])
        np.testing.assert_allclose(Z.T @ (q * residual), penalty * shares[l] * M @ w, atol=1e-9)
        if problem.ranks[l] == len(own):
            centre = np.average(X[:, own], axis=0, weights=weight) if intercept else 0.0
            deviation = np.sqrt(np.average((X[:, own] - centre) ** 2, axis=0, weights=weight))
            span = np.ptp(np.vstack([X[:, own], np.broadcast_to(centre, len(own))]), axis=0)
            assert fit.norms[l] == pytest.approx(np.linalg.norm(coef[own] * np.sqrt(deviation * span / 6)))
    # residuals on the rows that judge, times the roots of their weights
    total = weight.sum()
    expected = np.sqrt(weight[held] / total) * residual[held]
    found = rows.predictions(posed.splits[0], [fit])[:, 0]
    assert found @ found == pytest.approx(expected @ expected)


def test_the_unit_of_penalties_does_not_change_with_compression():
    X, _, _, weight, _, posed, rows = dense_rows(120, True, full_rank=True)
    assert len(rows.rows.parts[0]) < 90
    # every column adds its variance in units of its squared scale, and the mean is over 120 rows
    deviation = np.sqrt(np.average((X - np.average(X, axis=0, weights=weight)) ** 2, axis=0, weights=weight))
    expected = np.sum(6 * deviation / np.ptp(X, axis=0)) / 120
    assert rows.training(posed.splits[1], 120.0).unit == pytest.approx(expected)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n", [24, 120], ids=["wide", "tall"])
def test_the_kernel_of_the_rows_gives_the_same_ridges(n, intercept, monkeypatch):
    monkeypatch.setattr("covey.limit.kernel.TILE", 7)
    X, _, lists, *_, posed, rows = dense_rows(n, intercept, full_rank=True)
    kernel = RowKernel(posed, Penalties(posed.problem), np.ones(posed.problem.ranks.size))
    split = posed.splits[0]
    training = rows.training(split, posed.n_rows(split))
    expected = rows.fits(training, [0.05 * training.unit, 2.0 * training.unit], np.ones((2, len(lists))))
    found = kernel.fits(split, [0.05, 2.0])
    squares = [
        np.sum(table**2, axis=0) for table in (kernel.predictions(split, found), rows.predictions(split, expected))
    ]
    np.testing.assert_allclose(squares[0], squares[1], rtol=1e-8)
    columns, loadings, offset = posed.problem.combination(list(range(len(lists))))
    gains = kernel.gains
    for fit, coef, direct in zip(found, kernel.coefficients(found)[:, 0], expected, strict=True):
        w = rows.working(direct)[0][0]
        here = X[:, posed.problem.layout.members] @ (coef * gains) - posed.problem.mean @ (coef * gains)
        there = X[:, columns] @ (loadings @ w) - offset @ w + direct.intercept
        np.testing.assert_allclose(here + fit.level - fit.shift, there, atol=1e-8)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("split", [0, 1])
def test_both_systems_of_a_ridge_agree(intercept, split, monkeypatch):
    *_, posed, rows = dense_rows(60, intercept)
    split, n_rows = posed.splits[split], posed.n_rows(posed.splits[split])
    tall = rows.training(split, n_rows)
    assert isinstance(tall, TallTraining)
    gains = np.random.default_rng(0).uniform(0.5, 2, (2, tall.c.size))
    by_columns = tall.ridges([0.2, 3.0], gains)
    monkeypatch.setattr("covey.limit.reweighted.STACKED", 0)
    np.testing.assert_allclose(tall.ridges([0.2, 3.0], gains), by_columns, atol=1e-12)
    monkeypatch.setattr("covey.limit.reweighted.TALL", 0)
    wide = rows.training(split, n_rows)
    assert isinstance(wide, WideTraining)
    np.testing.assert_allclose(wide.ridges([0.2, 3.0], gains), by_columns, atol=1e-9)
    np.testing.assert_allclose(wide.mean, tall.mean, atol=1e-12)
    assert (wide.unit, wide.level) == pytest.approx((tall.unit, tall.level))


def test_sums_over_training_rows_keep_their_digits_beside_an_outlying_part():
    """Subtracting a part that is 1e8 times larger than the others would leave none of their digits."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), rng.standard_normal(60)
    part = np.arange(60) % 3
    X[part == 0] *= 1e8
    posed = pose(
        as_design(X), y, Groups.from_size(2, 4), np.ones(60), [np.where(part == k, 1.0, 0.0) for k in range(3)],
        [20.0] * 3, [Split((1, 2), (0,)), Split((0, 1, 2))],
    )  # fmt: skip
    near = Near(posed)
    rows = DenseRows(near.rows, near.groups, Penalties(posed.problem), True)
    assert rows._by_subtraction((1, 2), 40.0) is None
    assert rows._by_subtraction((0, 1), 40.0) is not None
    training = rows.training(posed.splits[0], 40.0)
    one = np.concatenate([near.rows.parts[k][:, near.rows.one] for k in (1, 2)])
    B = np.concatenate(rows.tables[1:]) - np.outer(one, training.mean)
    expected = B.T @ B / near.rows.weight([1, 2])
    np.testing.assert_allclose(training.K, expected, rtol=1e-4, atol=1e-4 * expected.max())


def test_shares_grow_where_norms_are_small_but_not_beyond_a_bound():
    shares = shares_of(np.array([2.0, 1.0, 0.0, 1.0]), np.array([1.0, 1.0, 1.0, 3.0]))
    np.testing.assert_allclose(shares, [0.5, 1.0, 1 / SMALLEST_SHARE, 3.0])
    np.testing.assert_allclose(shares_of(np.zeros(3), np.ones(3)), 1 / SMALLEST_SHARE)
    assert noise_norms(np.array([1, 4, 9])).mean() == pytest.approx(1)
    assert (np.diff(noise_norms(np.array([1, 4, 9]))) > 0).all()


def test_least_squares_on_every_set_of_two_groups():
    """Knots of paths that start from any pair are least squares on the pair: an exhaustive check of starts."""
    X, y, lists = mixed_problem()
    posed = pose(as_design(X), y, Groups.from_lists(lists), np.ones(60), [np.ones(60)], [60.0], [Split((0,))])
    pairs = list(combinations(range(5), 2))
    posed.splits[:] = [Split((0,))] * len(pairs)
    paths = Paths(Near(posed), pairs)
    for split, pair in enumerate(pairs):
        coef, level = refit(X, y, [j for l in pair for j in lists[l]], np.ones(60) / 60, True)
        left = np.mean((y - X @ coef - level) ** 2)
        assert paths.objective(split).unexplained()[-1] * posed.problem.y_scale**2 == pytest.approx(left)


def test_what_was_a_combination_of_others_is_back_when_they_are_dropped():
    """Group 1 shares a column with group 0, which wakes first and is dropped: least squares on group 1 has it all."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    y = 2 * X[:, 1] + X[:, 2] + 0.1 * rng.standard_normal(60)
    groups = Groups.from_lists([[0, 1], [1, 2], [3, 4]], overlap=True)
    weight = np.ones(60)
    posed = pose(as_design(X), y, groups, weight, [weight], [60.0], [Split((0,))], group_weights=[1, 5, 1])
    paths = Paths(Near(posed), [[]])
    paths.advance(3)
    assert paths.groups(0)[0] == 0
    (made,) = cleaned_models([paths.objective(0)], [paths.groups(0)], 0, 0, [[3]], [0.1], Penalties(posed.problem))
    sets = {recipe: [paths.groups(0)[i] for i in kept] for recipe, kept in made.sets.items()}
    (alone,) = [recipe for recipe in sets if recipe.size == 1]
    assert sets[alone] == [1]
    row = made.recipes.index(alone)
    assert made.sizes[row] == 2
    table = paths.near.rows.parts[0]
    residual = table[:, -1] - table[:, made.columns] @ made.W[row, 0] - table[:, -2] * made.levels[row, 0]
    coef, level = refit(X, y, [1, 2], weight / 60, True)
    expected = np.mean((y - X @ coef - level) ** 2) / posed.problem.y_scale**2
    assert residual @ residual == pytest.approx(expected)
    assert all(np.isfinite(made.W).ravel())


def test_the_kernel_of_the_rows_gives_the_same_ridges_for_groups_with_dependent_columns():
    *_, posed, rows = dense_rows(120, True)
    split = posed.splits[0]
    training = rows.training(split, posed.n_rows(split))
    expected = rows.predictions(split, rows.fits(training, [0.3 * training.unit], np.ones((1, rows.groups.size))))
    kernel = RowKernel(posed, Penalties(posed.problem), np.ones(posed.problem.ranks.size))
    found = kernel.predictions(split, kernel.fits(split, [0.3]))
    assert found.ravel() @ found.ravel() == pytest.approx(expected.ravel() @ expected.ravel())


def test_the_unit_of_the_kernels_penalties_counts_rows_by_their_weights():
    *_, posed, _ = dense_rows(40, True, full_rank=True)
    kernel, split = RowKernel(posed, Penalties(posed.problem), np.ones(posed.problem.ranks.size)), posed.splits[0]
    (expected,) = kernel.fits(split, [0.1])
    posed.counts[:] = [2 * count for count in posed.counts]
    (found,) = kernel.fits(split, [0.2])
    np.testing.assert_allclose(found.alpha, expected.alpha, atol=1e-12)
