"""What to keep in mind: remarks on constructed faults, and none where there is no fault."""

import inspect
import tomllib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import covey.report.remarks
from covey import Groups, GroupSparseRegressor, nested_score
from covey.evidence.overlap import chance_correlation, find_overlaps, inner_coherence
from covey.report.fitted import Fitted
from covey.report.page import asset
from covey.report.remarks import remarks
from covey.selection import Size


def remarks_on(model, X) -> dict:
    found = remarks(Fitted(model, X))
    assert [remark.serious for remark in found] == sorted((remark.serious for remark in found), reverse=True)
    return {remark.heading: remark for remark in found}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 12))
    return X, X[:, :3] @ [1.0, -2.0, 1.0] + 0.6 * X[:, 3] + 0.5 * rng.standard_normal(200)


def changed(data, columns, values):
    """The data with other values in some columns."""
    X, y = data[0].copy(), data[1]
    X[:, columns] = values(data[0])
    return X, y


def fit(X, y, **options):
    groups = Groups.from_labels(np.repeat(list("abcd"), 3))
    return GroupSparseRegressor(groups=groups, **{"selection": Size(2), **options}).fit(X, y)


def test_groups_are_distinct_or_not_selected(data):
    X, y = data
    found = remarks_on(fit(X, y), X)
    assert not any(remark.serious for remark in found.values())
    assert "Selected groups are distinct" in found
    assert remarks_on(fit(X, y, selection=Size(0)), X)["No group was selected"].serious


def test_the_closest_group_is_named_and_said_not_to_be_selected(data):
    X, y = changed(data, 6, lambda X: X[:, 6] + 0.6 * X[:, 1])
    model = fit(X, y)
    assert set(model.selected_groups_) == {"a", "b"}
    overlaps = find_overlaps(X, model.groups_, np.array([0, 1]))
    assert (overlaps.pairs[0].group, overlaps.pairs[0].other) == (0, 2)
    meaning = remarks_on(model, X)["Selected groups are distinct"].meaning
    assert f"“a” with “c” ({overlaps.pairs[0].correlation:.2f}, not selected)" in meaning


def test_a_double_is_named_with_a_remedy(data):
    noise = 0.01 * np.random.default_rng(1).standard_normal((200, 3))
    X, y = changed(data, slice(3, 6), lambda X: X[:, :3] @ [[1, 2, 0], [0, 1, 1], [1, 0, 1]] + noise)
    (double,) = (remark for heading, remark in remarks_on(fit(X, y), X).items() if "overlap" in heading)
    assert double.serious
    assert [text for text in ("“a”", "“b”", "1.00") if text not in double.meaning] == []
    assert "Merge the two groups" in double.remedy


def test_columns_within_a_group_that_repeat_each_other_are_named(data):
    X, y = changed(data, 2, lambda X: X[:, 0] + X[:, 1])
    assert "“a”" in remarks_on(fit(X, y), X)["Linearly dependent columns"].meaning
    # correlations matter only where groups were not orthonormalised
    X, y = changed(data, slice(1, 3), lambda X: X[:, [0]] + 0.1 * X[:, 1:3])
    assert "Correlated columns within groups" in remarks_on(fit(X, y, standardize="column"), X)
    assert "Correlated columns within groups" not in remarks_on(fit(X, y), X)


def test_what_sparsity_costs_is_said_if_it_is_much(data):
    model, heading = fit(*data, selection=5), "A model of all groups predicts better"
    model.price_ = 0.2, 0.05
    found = remarks_on(model, data[0])[heading]
    assert found.serious
    assert "20.0% ± 5.0% better" in found.meaning
    assert "rule='predict'" in found.remedy
    for price in ((0.2, 0.15), (0.01, 0.001), (-0.1, 0.01), None):
        model.price_ = price
        assert heading not in remarks_on(model, data[0])


@pytest.mark.parametrize("shrunk", [True, False])
def test_a_ridge_says_that_coefficients_are_shrunk(data, shrunk):
    model = fit(*data, selection=5)
    model.shrunk_ = shrunk
    assert ("Coefficients are shrunk" in remarks_on(model, data[0])) == shrunk


def test_groups_that_could_replace_others_are_named():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 6))
    model = GroupSparseRegressor(selection=5).fit(X, X[:, 0] + 0.1 * rng.standard_normal(100))
    assert "Some groups could replace others" not in remarks_on(model, X)
    model.rivals_ = pd.DataFrame({"groups": [[0], [3]], "without": [[], [0]], "instead": [[], [3]], "mse": [1.0, 1.1]})
    assert "“0 or 3”" in remarks_on(model, X)["Some groups could replace others"].meaning


def test_a_model_of_most_groups_says_so():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 30))
    y = X @ np.repeat(rng.permutation(np.linspace(1, 3, 10)), 3) + 0.1 * rng.standard_normal(200)
    model = GroupSparseRegressor(groups=3, selection=Size(10)).fit(X, y)
    assert len(model.selected_groups_) == 10
    assert "selection=5" in remarks_on(model, X)["Most groups were selected"].remedy
    few = GroupSparseRegressor(groups=3, selection=Size(3)).fit(X, y)
    assert "Most groups were selected" not in remarks_on(few, X)


def test_overlaps_are_the_largest_canonical_correlations():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 20)) @ rng.standard_normal((20, 20))
    groups = Groups.from_sizes([4, 1, 6, 2, 7])
    bases = [np.linalg.qr((X - X.mean(axis=0))[:, members])[0] for members in groups.lists()]
    found = find_overlaps(X, groups, np.arange(5))
    assert {l for pair in found.pairs for l in (pair.group, pair.other)} == set(range(5))
    for pair in found.pairs:
        values = [np.linalg.norm(bases[pair.group].T @ other, 2) for other in bases]
        values[pair.group] = -1
        assert pair.other == int(np.argmax(values))
        assert pair.correlation == pytest.approx(max(values))


def test_chance_is_what_unrelated_groups_reach():
    rng = np.random.default_rng(4)
    bases = [[np.linalg.qr(rng.standard_normal((400, size)))[0] for size in (30, 50)] for _ in range(10)]
    reached = [np.linalg.norm(a.T @ b, 2) for a, b in bases]
    assert np.mean(reached) == pytest.approx(chance_correlation(30, 50, 400), rel=0.03)


def test_inner_coherence_is_the_norm_of_the_correlations():
    X = np.random.default_rng(5).standard_normal((50, 4)) * [1, 10, 100, 1000] + 7
    R = np.corrcoef(X.T)
    ((l, value),) = inner_coherence(X, Groups.from_size(4, 4), np.array([0]))
    assert l == 0
    assert value == pytest.approx(np.linalg.norm(R - np.eye(4), 2))


def judged_table(model, nothing, standard_error):
    """Two candidates: no group, with this error and standard error, and the chosen one with an error of 1."""
    return pd.DataFrame(
        {
            "recipe": ["no group", model.recipe_],
            "groups": [0, len(model.selected_groups_)],
            "mse": [nothing, 1.0],
            "standard_error": [standard_error, 0.0],
            "weight": [0.0, 1.0],
            "chosen": [False, True],
        }
    )


def test_folds_that_differ_are_named(data):
    X, y = data
    model = fit(X, y, selection=5)
    first, *_, last = model.selected_groups_
    names = [str(name) for name in model.groups_.names]
    model.candidates_ = judged_table(model, 4.0, 0.1)
    model.fold_frequencies_ = np.full(4, 5)
    assert "The folds agree" in remarks_on(model, X)
    for count, serious in ((4, False), (2, True)):
        model.fold_frequencies_[names.index(last)] = count
        (remark,) = (r for heading, r in remarks_on(model, X).items() if "not selected in every fold" in heading)
        assert remark.serious == serious
        assert f"“{last}” in {count}" in remark.meaning
        assert f"“{first} in" not in remark.meaning


def test_a_poor_model_and_weak_evidence_are_named(data):
    X, y = data
    model = fit(X, y, selection=5)
    model.candidates_ = judged_table(model, 1.03, 0.02)
    assert {"The model hardly predicts", "The evidence for any group is weak"} <= set(remarks_on(model, X))
    model.candidates_ = judged_table(model, 1.5, 0.02)
    assert not {"The model hardly predicts", "The evidence for any group is weak"} & set(remarks_on(model, X))


def test_a_mean_of_models_says_so():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((120, 60))
    y = X[:, :9].sum(axis=1) + 6 * rng.standard_normal(120)
    model = GroupSparseRegressor(groups=3, rule="predict").fit(X, y)
    found = remarks_on(model, X)["The model is a mean of models"]
    assert f"{(model.candidates_['weight'] > 0).sum()} candidates" in found.meaning
    assert "rule='select'" in found.remedy
    one = GroupSparseRegressor(groups=3).fit(X, y)
    assert "The model is a mean of models" not in remarks_on(one, X)


def test_every_text_is_found_by_a_check():
    texts, source = tomllib.loads(asset("remarks.toml")), inspect.getsource(covey.report.remarks)
    for name, text in texts.items():
        assert f'"{name}"' in source
        assert {"heading", "meaning"} <= set(text) <= {"heading", "meaning", "remedy", "serious"}


def test_a_copy_of_the_response_is_asked_about(data):
    X, y = data
    copied = pd.DataFrame(X).assign(copy=2.2 * y).rename(columns=str)
    model = GroupSparseRegressor().fit(copied, y)
    assert "is copy a copy of the response" in remarks_on(model, copied)["The prediction is nearly perfect"].meaning
    assert "is copy a copy of the response" in str(model.summary())
    assert "copy of the response" not in str(GroupSparseRegressor().fit(X, y).summary())


@pytest.mark.parametrize("selection", ["ebic", 5])
def test_outer_folds_say_how_certain_a_model_is_whatever_chose_it(data, selection):
    X, y = data
    model = fit(X, y, selection=selection)
    nested = nested_score(model, X, y, 3, references=False)
    assert "The outer folds agree" in {remark.heading for remark in remarks(Fitted(model, X, y, nested=nested))}
    unsure = Fitted(model, X, y, nested=replace(nested, selected=[(), ("a",), ("a", "b")]))
    (split,) = (remark for remark in remarks(unsure) if remark.heading == "The selection depends on the split")
    assert "repeated in 3 outer folds: b is in only 1 of 3 repetitions." in split.meaning
