"""Responses, offsets and labels that cannot be fitted are refused by name, with a remedy."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold

from covey import GroupSparseClassifier, GroupSparseRegressor
from covey.selection import Discrepancy, HoldOut, Size

N, P = 40, 6
X = np.random.default_rng(0).standard_normal((N, P))
POSITIVE = np.exp(X[:, 0] + 0.1 * X[:, 1])


def changed(y, row, value):
    y = np.array(y, dtype=float)
    y[row] = value
    return y


def refused(model, y, match, X=X, **given):
    with pytest.raises(ValueError, match=match):
        model.fit(X, y, **given)


@pytest.mark.parametrize("given", ["array", "torch"])
@pytest.mark.parametrize(
    ("loss", "y", "match"),
    [
        ("poisson", changed(POSITIVE, 7, -1.0), r"negative.*Poisson.*row 7 has -1.*Use loss="),
        ("poisson", np.zeros(N), r"[Ee]very count is zero.*give rows with positive counts"),
        ("poisson", changed(POSITIVE, 3, 1e300), r"must not exceed.*row 3.*larger units"),
        ("negative-binomial", np.zeros(N), r"[Ee]very count is zero"),
        ("tweedie", np.zeros(N), r"Every response is zero.*give rows with positive responses"),
        ("quantile", np.stack([POSITIVE, POSITIVE], axis=1), r"2 columns.*quantile.*one by one"),
        (
            "multi-quantile",
            np.stack([POSITIVE, POSITIVE], axis=1),
            r"2 columns.*one response: fit responses one by one",
        ),
        ("ordinal", POSITIVE, r"GroupSparseClassifier"),
        ("gamma", changed(POSITIVE, 5, 0.0), r"above zero.*gamma.*row 5 has 0.*loss='poisson'"),
        ("squared", changed(POSITIVE, 5, 1e300), r"1e\+300.*change the units"),
        ("squared", np.stack([POSITIVE, changed(POSITIVE, 5, 1e300)], axis=1), r"must not exceed.*row 5"),
        ("binomial", changed(np.zeros(N), 5, 1.5), r"between 0 and 1.*row 5 has 1.5.*GroupSparseClassifier"),
        ("binomial", np.ones(N), r"class 1.*other class"),
        ("multinomial", POSITIVE, r"GroupSparseClassifier"),
        ("poisson", np.stack([POSITIVE, POSITIVE], axis=1), r"2 columns.*poisson.*one by one"),
        ("nonsense", POSITIVE, r"loss must be one of.*'nonsense'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_responses_of_a_regressor(loss, y, match, given):
    design = X
    if given == "torch":
        design = pytest.importorskip("torch").from_numpy(X)
    refused(GroupSparseRegressor(loss=loss, selection=3), y, match, X=design)


@pytest.mark.parametrize(
    "loss",
    [
        "squared", "huber", "quantile", "multi-quantile", "poisson", "negative-binomial", "gamma", "tweedie",
        "binomial",
    ],
)  # fmt: skip
def test_missing_and_short_responses(loss):
    model = GroupSparseRegressor(loss=loss, selection="ebic")
    y = np.clip(POSITIVE, 0.01, 0.99)
    refused(model, changed(y, 4, np.nan), "NaN|missing")
    refused(model, changed(y, 4, np.inf), "infinity|infinite")
    refused(model, y[:-1], "inconsistent|entries")
    refused(model, None, "y cannot be None|requires y")
    refused(model, ["a"] * N, "text.*GroupSparseClassifier")


@pytest.mark.parametrize(
    ("offset", "match"),
    [
        (changed(np.zeros(N), 3, np.nan), "offset has missing or infinite values, first in row 3.*logarithm"),
        (changed(np.zeros(N), 3, -np.inf), "offset has missing or infinite values, first in row 3.*exposure"),
        (np.zeros(N - 1), r"offset has shape \(39,\).*40 rows"),
        (np.zeros((N, 2)), r"offset has shape \(40, 2\)"),
        (3.0, r"offset has shape \(\)"),
        (["a"] * N, "offset must hold numbers"),
        (np.full(N, 5e3), "offset must not exceed 1000.*logarithm of the exposure"),
    ],
    ids=["nan", "infinite", "short", "wide", "scalar", "text", "exposure"],
)
@pytest.mark.parametrize("kind", ["poisson", "classes"])
def test_offsets(kind, offset, match):
    model = GroupSparseRegressor(loss="poisson", selection=Size(1))
    y = POSITIVE
    if kind == "classes":
        model, y = GroupSparseClassifier(selection=Size(1)), POSITIVE > 1
    refused(model, y, match, offset=offset)
    model.fit(X, y)
    for call in (lambda: model.predict(X, offset=offset), lambda: model.score(X, y, offset=offset)):
        with pytest.raises(ValueError, match=match):
            call()


def test_an_offset_for_classes_has_a_column_for_each():
    labels = np.arange(N) % 3
    model = GroupSparseClassifier(selection=Size(1))
    refused(model, labels, "one column per class", offset=np.zeros(N))
    model.fit(X, labels, offset=np.zeros((N, 3)))
    with pytest.raises(ValueError, match="one column per class"):
        model.predict_proba(X, offset=np.zeros(N))


def test_a_response_without_differences():
    """It has one message in Python and on the command line, and is not a model that predicts the same everywhere."""
    for loss in ("squared", "huber", "poisson", "gamma", "quantile"):
        refused(
            GroupSparseRegressor(loss=loss, selection=Size(1)), np.full(N, 3), "y is 3 in every row: there is nothing"
        )
    weight = np.where(np.arange(N) == 5, 0.0, 1.0)
    refused(GroupSparseRegressor(), changed(np.ones(N), 5, 2.0), "y is 1 in every row", sample_weight=weight)
    two = pd.DataFrame({"a": POSITIVE, "b": np.ones(N)})
    refused(GroupSparseRegressor(), two, "Column 'b' of y is 1 in every row.*leave it out")
    refused(GroupSparseRegressor(), two.to_numpy(), "Column 1 of y is 1 in every row")
    refused(
        GroupSparseRegressor(terms="auto"), [1.0], "X has 1 row; a fit needs at least 2", X=pd.DataFrame({"a": [1.0]})
    )
    # an offset may differ between rows, and a model without an intercept has to find the constant
    GroupSparseRegressor(loss="poisson", selection=Size(1)).fit(X, np.ones(N), offset=np.log(POSITIVE))
    GroupSparseRegressor(fit_intercept=False, selection=Size(1)).fit(X, np.ones(N))


def test_percentages_are_no_classes():
    shares = np.array([f"{value:.2f}%" for value in POSITIVE])
    refused(GroupSparseClassifier(), shares, "y holds .*, a number with a unit; write the number alone")


def test_classes():
    model = GroupSparseClassifier(selection=3)
    refused(model, np.zeros(N, dtype=int), "only one class, 0.*another class")
    refused(model, ["a"] * N, "only one class, 'a'")
    refused(model, POSITIVE, "Unknown label type: continuous|continuous")
    refused(
        model,
        np.where(np.arange(N) == 5, "rare", "usual"),
        r"Class 'rare' \(1 row in all\).*of fold.*fewer folds.*ebic",
    )
    refused(model, np.where(np.arange(N) == 5, 7, np.arange(N) % 2), "Class 7.*training rows of fold")
    refused(
        model.set_params(selection=KFold(2)), np.repeat([False, True], N // 2),
        "Class False.*training rows of fold 0|Class True.*training rows of fold 0",
    )  # fmt: skip
    labels = np.arange(N) % 2
    refused(GroupSparseClassifier(), labels, "only one class, 0", sample_weight=1.0 - labels)
    three = np.arange(N) % 3
    refused(GroupSparseClassifier(), three, "All rows of class 1 have weight zero", sample_weight=(three != 1) * 1.0)
    refused(GroupSparseClassifier(class_weight={5: 2.0}), labels, "not in class_weight")
    refused(GroupSparseClassifier(class_weight="even"), labels, "class_weight")
    refused(GroupSparseClassifier(class_weight={0: -1.0}), labels, "class_weight.*negative|negative.*class_weight")
    refused(GroupSparseClassifier(), np.stack([labels, labels], axis=1), "1d|one|multilabel|shape")
    refused(GroupSparseClassifier(selection="discrepancy"), labels, "discrepancy principle.*binomial.*ebic")
    refused(GroupSparseClassifier(selection=Discrepancy(0.1)), labels, "discrepancy principle.*binomial")


def test_a_class_that_is_one_row_repeated_is_in_every_training_set():
    """It cannot be held out without leaving training rows without it."""
    labels = np.arange(N) % 2
    rows = np.concatenate([np.arange(N), [0, 0, 0]])
    model = GroupSparseClassifier(selection=4).fit(X[rows], np.concatenate([labels, [2, 2, 2]]))
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.n_splits_ == 4


def test_labels_that_no_training_row_has():
    labels = np.array(["a", "b"])[np.arange(N) % 2]
    other = np.where(np.arange(N) == 3, "c", labels)
    refused(
        GroupSparseClassifier(selection=HoldOut(validation=(X, other))),
        labels,
        "y_val has the label 'c', which no row of fit has",
    )
    model = GroupSparseClassifier(selection=Size(1)).fit(X, labels)
    assert model.score(X, other) == np.mean(model.predict(X) == other)


@pytest.mark.parametrize(
    ("loss", "y", "match"),
    [("poisson", -POSITIVE, "y_val must not be negative"), ("gamma", 0 * POSITIVE, "y_val must be above zero")],
)
def test_validation_rows_are_checked_as_well(loss, y, match):
    refused(GroupSparseRegressor(loss=loss, selection=HoldOut(validation=(X, y))), POSITIVE, match)


def test_validation_rows_with_offsets():
    offset = np.linspace(-1, 1, N)
    way = HoldOut(validation=(X, POSITIVE * np.exp(offset), offset))
    found = GroupSparseRegressor(loss="gamma", selection=way).fit(X, POSITIVE * np.exp(offset), offset=offset)
    expected = GroupSparseRegressor(loss="gamma", selection=HoldOut(validation=(X, POSITIVE))).fit(X, POSITIVE)
    assert found.recipe_ == expected.recipe_
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-7)
    for wrong, match in ((offset[:-1], "offset"), (np.full(N, np.nan), "offset"), ("text", "offset")):
        way = HoldOut(validation=(X, POSITIVE, wrong))
        refused(GroupSparseRegressor(loss="gamma", selection=way), POSITIVE, match, offset=offset)


@pytest.mark.parametrize("model", [GroupSparseRegressor(loss="poisson"), GroupSparseClassifier()], ids=str)
def test_always(model):
    y = POSITIVE if isinstance(model, GroupSparseRegressor) else POSITIVE > 1
    refused(model.set_params(always=[0, 1, 2, 3, 4, 5]), y, "always names all 6 groups.*leave some out")
    refused(model.set_params(always=["age"]), y, "always.*'age'|'age'.*always")
    refused(model.set_params(always=[99]), y, "99")
    refused(model.set_params(always=3), y, "always")


def test_a_regressor_speaks_of_the_classifier():
    with pytest.warns(UserWarning, match="GroupSparseClassifier"):
        GroupSparseRegressor(selection=Size(1)).fit(X, (POSITIVE > 1).astype(float))


@pytest.mark.parametrize("model", [GroupSparseRegressor(), GroupSparseClassifier()], ids=["numbers", "classes"])
def test_a_generator_is_refused_by_name(model):
    with pytest.raises(ValueError, match="X is a generator, which can be read only once: give an array or a list"):
        model.fit((row for row in np.eye(4)), [0, 1, 0, 1])


@pytest.mark.parametrize("estimator", [GroupSparseRegressor, GroupSparseClassifier])
def test_numbers_with_a_decimal_comma_are_no_classes(estimator):
    y = pd.Series([f"{i},5" for i in range(len(X))])
    with pytest.raises(ValueError, match=r"y holds '0,5', a decimal comma; read the table with decimal=','"):
        estimator(1).fit(X, y)


def test_a_class_beside_empty_cells_may_be_a_yes():
    said = r"y is missing in 14 rows of 40 and 'x' in all others: if an empty cell means no, write a word"
    refused(GroupSparseClassifier(), pd.Series(np.where(np.arange(N) % 3, "x", None)), said)


def test_classes_that_differ_in_spelling_only():
    y = np.where(X[:, 0] > 0, "good", np.where(X[:, 1] > 0, "bad", "bad "))
    with pytest.warns(UserWarning, match="classes that differ in spaces or capitals only: 'bad', 'bad '"):
        GroupSparseClassifier(selection="ebic").fit(X, y)
