"""What to mind: found where it was put, and not where it was not."""

from types import SimpleNamespace

import numpy as np
import pytest

from covey import Groups, GroupSparseRegressor, GroupSparseRegressorCV
from covey.report import FitReport, render
from covey.report.curve import Curve, stopping_curve
from covey.report.overlap import chance_correlation, find_overlaps, inner_coherence
from covey.report.remarks import remarks


def told(model, X, y) -> dict:
    found = remarks(model, stopping_curve(model), float(model.n_iter_), X, y)
    assert [remark.serious for remark in found] == sorted((remark.serious for remark in found), reverse=True)
    return {remark.heading: remark for remark in found}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 12))
    return X, X[:, :3] @ [1.0, -2.0, 1.0] + 0.6 * X[:, 3] + 0.5 * rng.standard_normal(200)


def fit(X, y, **options):
    groups = Groups.from_labels(np.repeat(list("abcd"), 3))
    return GroupSparseRegressor(groups=groups, stopping=1500, **options).fit(X, y)


def test_a_model_without_groups_says_so(data):
    X, y = data
    groups = Groups.from_size(3, 12)
    model = GroupSparseRegressor(groups=groups, stopping=1).fit(X, y)
    assert told(model, X, y)["No group was selected"].serious


def test_distinct_groups_are_called_distinct(data):
    X, y = data
    found = told(fit(X, y), X, y)
    assert not any(remark.serious for remark in found.values())
    assert "Selected groups are distinct" in found


def test_a_double_is_named_with_a_remedy(data):
    X, y = data
    X = X.copy()
    mixed = X[:, :3] @ [[1, 2, 0], [0, 1, 1], [1, 0, 1]]
    X[:, 3:6] = mixed + 0.01 * np.random.default_rng(1).standard_normal((200, 3))
    found = told(fit(X, y), X, y)
    (heading,) = (heading for heading in found if "overlap" in heading)
    assert found[heading].serious
    assert "“a”" in found[heading].meaning
    assert "“b”" in found[heading].meaning
    assert "1.00" in found[heading].meaning
    assert "one group" in found[heading].remedy


def test_dependent_columns_are_named(data):
    X, y = data
    X = X.copy()
    X[:, 2] = X[:, 0] + X[:, 1]
    assert "“a”" in told(fit(X, y), X, y)["Linearly dependent columns"].meaning


def test_correlated_columns_matter_only_where_groups_were_not_orthonormalised(data):
    X, y = data
    X = X.copy()
    X[:, 1:3] = X[:, [0]] + 0.1 * X[:, 1:3]
    assert "Correlated columns within groups" in told(fit(X, y, standardize="column"), X, y)
    assert "Correlated columns within groups" not in told(fit(X, y), X, y)


def test_a_dense_model_says_so_and_how_to_get_a_sparse_one():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 90))
    y = X @ rng.standard_normal(90) / np.sqrt(90) + 0.5 * rng.standard_normal(120)
    model = GroupSparseRegressorCV(groups=3, restarts=1).fit(X, y)
    assert model.dense_network_
    found = told(model, X, y)["A dense model was chosen"]
    assert found.serious
    assert f"starts from {model.init_scale_:g}" in found.meaning
    assert "init_scale=1e-6" in found.remedy
    report = FitReport.from_model(model, X, y)
    assert "all groups grow together" in render(report)
    assert report.settings["init_scale"] == f"'auto', which chose {model.init_scale_:g}"
    assert "columns" in report.strength_label  # and not what it is with orthonormal groups
    sparse = GroupSparseRegressorCV(groups=3, init_scale=1e-6).fit(X, y)
    assert "A dense model was chosen" not in told(sparse, X, y)


def test_a_model_of_most_groups_says_so():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 30))
    y = X @ np.repeat(rng.permutation(np.linspace(1, 3, 10)), 3) + 0.1 * rng.standard_normal(200)
    model = GroupSparseRegressor(groups=3, stopping=5000).fit(X, y)
    assert len(model.selected_groups_) == 10
    assert "rule='1se'" in told(model, X, y)["Most groups were selected"].remedy
    early = GroupSparseRegressor(groups=3, stopping=int(model.path_.entered[3][1])).fit(X, y)
    assert "Most groups were selected" not in told(early, X, y)


def test_overlaps_are_the_largest_canonical_correlations():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 20)) @ rng.standard_normal((20, 20))
    groups = Groups.from_sizes([4, 1, 6, 2, 7])
    bases = [np.linalg.qr((X - X.mean(axis=0))[:, members])[0] for members in groups.lists()]
    found = find_overlaps(X, rng.standard_normal(60), groups, np.arange(5))
    assert found.n_looked_at == 5
    for pair in found.pairs:
        values = [np.linalg.norm(bases[pair.group].T @ other, 2) for other in bases]
        values[pair.group] = -1
        assert pair.other == int(np.argmax(values))
        assert pair.correlation == pytest.approx(max(values))


def test_chance_is_what_unrelated_groups_reach():
    rng = np.random.default_rng(4)
    reached = []
    for _ in range(10):
        a, b = (np.linalg.qr(rng.standard_normal((400, size)))[0] for size in (30, 50))
        reached.append(np.linalg.norm(a.T @ b, 2))
    assert np.mean(reached) == pytest.approx(chance_correlation(30, 50, 400), rel=0.03)


def test_inner_coherence_is_the_norm_of_the_correlations():
    X = np.random.default_rng(5).standard_normal((50, 4)) * [1, 10, 100, 1000] + 7
    R = np.corrcoef(X.T)
    ((l, value),) = inner_coherence(X, Groups.from_size(4, 4), np.array([0]))
    assert l == 0
    assert value == pytest.approx(np.linalg.norm(R - np.eye(4), 2))


def rules(strict: float, lax: float) -> Curve:
    times = np.array([0.0, strict, lax, 2 * lax])
    return Curve(
        "error", times, np.array([4.0, 1.1, 1.0, 1.2]), np.full(4, 0.2), 5, {"1se": strict, "min": lax}, True, 4.0
    )


def test_groups_within_the_noise_are_named(data):
    X, y = data
    model = fit(X, y)
    (first, _), *_, (last, at) = model.path_.entered
    names = model.groups_.names
    path = model.path_
    before, after = (float(path.times[i]) for i in (path.index(at) - 1, -1))
    curve = rules(before, after)
    (remark,) = (r for r in remarks(model, curve, after) if "noise of cross-validation" in r.heading)
    assert remark.serious
    assert f"“{names[last]}”" in remark.meaning
    assert f"“{names[first]}”" not in remark.meaning
    (remark,) = (r for r in remarks(model, curve, before) if "noise of cross-validation" in r.heading)
    assert not remark.serious
    nothing = rules(0.0, after)
    assert any(r.heading == "The evidence for any group is weak" and r.serious for r in remarks(model, nothing, after))


def test_a_path_that_was_cut_short_a_poor_one_and_a_diverged_one(data):
    X, y = data
    model = fit(X, y, max_iter=1500)
    times = np.array([0.0, 750.0, 1500.0])
    flat = Curve("error", times, np.array([1.0, 0.99, 0.98]), held_out=True, null=1.0)
    headings = [remark.heading for remark in remarks(model, flat, 1500.0)]
    assert headings == ["The path was cut short", "The model hardly predicts"]
    diverged = SimpleNamespace(
        path_=SimpleNamespace(status="diverged", message="It grew."), max_iter=10, group_norms_=np.zeros(2)
    )
    assert remarks(diverged, None, 1.0)[0].meaning == "It grew."


def test_a_mean_of_models_is_told_of():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((120, 60))
    y = X[:, :9].sum(axis=1) + 6 * rng.standard_normal(120)
    model = GroupSparseRegressor(groups=3, random_state=0).fit(X, y)
    found = told(model, X, y)["Predictions are a mean of models"]
    assert f"{len(model.average_)} models" in found.meaning
    assert "average=False" in found.remedy
    one = GroupSparseRegressor(groups=3, random_state=0, average=False).fit(X, y)
    assert "Predictions are a mean of models" not in told(one, X, y)
