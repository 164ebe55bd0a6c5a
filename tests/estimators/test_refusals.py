"""Input that cannot be used is refused in our words: the parameter, what is wrong with it, and what to do."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from covey import Groups, GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, TermGroups, survival
from covey.search.dense import Reweighted
from covey.selection import Discrepancy, HoldOut, Size

N, P = 40, 6
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, P))
Y = X[:, 0] + 0.1 * RNG.standard_normal(N)
POSITIVE = np.exp(Y)
TWO, THREE = np.arange(N) % 2, np.arange(N) % 3
TIMES = survival(POSITIVE, TWO == 1)
FIRST, SECOND = np.arange(20), np.arange(20, 40)
RIDGE = Reweighted(1.0, 0)
REGRESSOR, CLASSIFIER, COX = GroupSparseRegressor, GroupSparseClassifier, GroupSparseCox


def changed(y, row, value):
    y = np.array(y, dtype=float)
    y[row] = value
    return y


def refused(model, y, match, X=X, **given):
    with pytest.raises((ValueError, KeyError), match=match):
        model.fit(X, y, **given)


RESPONSES = {
    "a negative count": (REGRESSOR(loss="poisson"), changed(POSITIVE, 7, -1), r"negative.*Poisson.*row 7 has -1.*Use"),
    "no count": (REGRESSOR(loss="poisson"), np.zeros(N), "Every count is zero.*give rows with positive counts"),
    "no amount": (REGRESSOR(loss="tweedie"), np.zeros(N), "Every response is zero.*give rows with positive responses"),
    "one class": (REGRESSOR(loss="binomial"), np.ones(N), r"class 1.*other class"),
    "two columns": (REGRESSOR(loss="poisson"), np.c_[Y, Y], r"2 columns.*poisson.*one by one"),
    "a huge value": (REGRESSOR(), changed(Y, 5, 1e300), r"1e\+300.*change the units"),
    "a huge value of several": (REGRESSOR(), np.c_[Y, changed(Y, 5, 1e300)], r"must not exceed.*row 5"),
    "ordered classes": (REGRESSOR(loss="ordinal"), THREE, r"loss='ordinal' is for classes: use covey.GroupSparseClass"),
    "several classes": (REGRESSOR(loss="multinomial"), THREE, "GroupSparseClassifier"),
    "a loss of survival times": (REGRESSOR(loss="cox"), Y, "use covey.GroupSparseCox"),
    "an unknown loss": (REGRESSOR(loss="nonsense"), Y, r"loss must be one of.*'nonsense'"),
    "missing": (REGRESSOR(), changed(Y, 4, np.nan), "missing or infinite values, first in row 4"),
    "infinite": (REGRESSOR(loss="gamma"), changed(POSITIVE, 4, np.inf), "missing or infinite values, first in row 4"),
    "short": (REGRESSOR(loss="huber"), Y[:-1], "y has 39 entries, but X has 40 rows"),
    "none": (REGRESSOR(), None, "requires y"),
    "text": (REGRESSOR(), ["a"] * N, "text.*GroupSparseClassifier"),
    "decimal commas": (REGRESSOR(), pd.Series([f"{i},5" for i in range(N)]), "y holds '0,5', a decimal comma; read"),
    "commas as classes": (CLASSIFIER(), pd.Series([f"{i},5" for i in range(N)]), "y holds '0,5', a decimal comma"),
    "percentages": (CLASSIFIER(), np.array([f"{y:.2f}%" for y in Y]), "y holds .*, a number with a unit; write the"),
    "one label": (CLASSIFIER(), ["a"] * N, "only one class, 'a'.*another class"),
    "numbers as labels": (CLASSIFIER(), POSITIVE, "continuous"),
    "labels in columns": (CLASSIFIER(), np.c_[TWO, TWO], "1d|one|multilabel|shape"),
    "a rare class": (
        CLASSIFIER(selection=3), np.where(np.arange(N) == 5, "rare", "usual"),
        r"Class 'rare' \(1 row in all\).*of fold.*fewer folds.*ebic",
    ),
    "a class of one fold": (
        CLASSIFIER(selection=KFold(2)), np.repeat([False, True], N // 2), "Class (False|True).*training rows of fold 0",
    ),
    "empty cells beside a yes": (
        CLASSIFIER(), pd.Series(np.where(THREE, "x", None)),
        "y is missing in 14 rows of 40 and 'x' in all others: if an empty cell means no, write a word",
    ),
    "weights of unknown classes": (CLASSIFIER(class_weight={5: 2.0}), TWO, "not in class_weight"),
    "weights in words": (CLASSIFIER(class_weight="even"), TWO, "class_weight"),
    "negative weights of classes": (CLASSIFIER(class_weight={0: -1.0}), TWO, "class_weight must not be negative"),
    "noise of classes": (CLASSIFIER(selection=Discrepancy(0.1)), TWO, "discrepancy principle.*binomial.*ebic"),
    "an unknown loss of classes": (
        CLASSIFIER(loss="poisson"), TWO, r"loss must be 'multinomial' \(for two classes, too\), 'ordinal' or a covey",
    ),
    "thresholds and no intercept": (
        CLASSIFIER(loss="ordinal", fit_intercept=False), THREE, "thresholds in the place of an intercept: leave fit",
    ),
    "no known order": (CLASSIFIER(loss="ordinal"), np.array(list("abc"))[THREE], "whose order is not known"),
    "constraints on several classes": (
        CLASSIFIER(constraints={"*": ">=0"}), THREE, r"constraints= needs two classes.*one class against the others",
    ),
    "bounds of several responses": (
        REGRESSOR(constraints={0: (0, 2)}), np.c_[Y, -Y], "0 to 2 for '0' is in the units of a response, and there are",
    ),
    "no event": (COX(), survival(POSITIVE, np.zeros(N)), "y has no event"),
    "a missing time": (COX(), pd.DataFrame({"time": changed(Y, 0, np.nan), "event": TWO}), "row 0 has nan"),
    "events 1 and 2": (COX(), (POSITIVE, TWO + 1), "must be 0 or 1, or boolean"),
    "other names": (COX(), pd.DataFrame({"t": POSITIVE, "d": TWO}), "no column 'time', but 't', 'd'"),
    "fewer times": (COX(), TIMES[:-1], "y has 39 entries, but X has 40 rows"),
    "a stratum without event": (COX(), survival(POSITIVE, TWO, strata=TWO), "Stratum 0 of y has no event"),
    "recipes and a criterion": (REGRESSOR(selection="ebic", recipes=RIDGE), Y, "recipes= are compared on held-out"),
    "recipes and constraints": (REGRESSOR(constraints={0: ">=0"}, recipes=RIDGE), Y, "leave out recipes= or constr"),
    "unknown ties": (COX(ties="exact"), TIMES, "ties must be"),
    "no event held out": (COX(selection=[(TWO == 1, TWO == 0)]), TIMES, "No held-out row of fold 0 has an event: use"),
    "no event trained on": (COX(selection=[(TWO == 0, TWO == 1)]), TIMES, "training rows of fold 0 cannot be fitted"),
}  # fmt: skip


@pytest.mark.parametrize("case", RESPONSES)
def test_responses(case):
    model, y, match = RESPONSES[case]
    refused(model, y, match)


@pytest.mark.parametrize("missing", [None, pd.NA, np.nan, pd.NaT])
@pytest.mark.parametrize("kind", [np.asarray, list, pd.Series])
def test_missing_labels(missing, kind):
    labels = np.array(["no", "yes"], dtype=object)[TWO]
    labels[3] = missing
    refused(CLASSIFIER(), kind(labels), r"y has missing labels .* first in row 3")


@pytest.mark.parametrize("dtype", ["Int64", "string"])
def test_missing_labels_of_nullable_types(dtype):
    labels = pd.Series(TWO).astype(dtype)
    labels[5] = pd.NA
    refused(CLASSIFIER(), labels, r"y has missing labels .* first in row 5")


def test_a_response_without_differences():
    """It has one message in Python and on the command line, and is not a model that predicts the same everywhere."""
    for loss in ("squared", "huber", "poisson", "gamma", "quantile"):
        refused(REGRESSOR(loss=loss, selection=Size(1)), np.full(N, 3), "y is 3 in every row: there is nothing")
    weight = np.where(np.arange(N) == 5, 0.0, 1.0)
    refused(REGRESSOR(), changed(np.ones(N), 5, 2.0), "y is 1 in every row", sample_weight=weight)
    two = pd.DataFrame({"a": POSITIVE, "b": np.ones(N)})
    refused(REGRESSOR(), two, "Column 'b' of y is 1 in every row.*leave it out")
    refused(REGRESSOR(), two.to_numpy(), "Column 1 of y is 1 in every row")
    # an offset may differ between rows, and a model without an intercept has to find the constant
    REGRESSOR(loss="poisson", selection=Size(1)).fit(X, np.ones(N), offset=np.log(POSITIVE))
    REGRESSOR(fit_intercept=False, selection=Size(1)).fit(X, np.ones(N))


MASKED = np.ma.array(np.ones(N), mask=np.arange(N) == 3)
MODELS = [(REGRESSOR(), Y), (REGRESSOR(loss="poisson"), POSITIVE), (CLASSIFIER(), TWO), (COX(), TIMES)]
BESIDE = {
    "negative weights": ({"sample_weight": -np.ones(N)}, "sample_weight must not be negative; row 0"),
    "no weight": ({"sample_weight": np.zeros(N)}, "zero in every row"),
    "huge weights": ({"sample_weight": np.full(N, 1e200)}, "divide them by a constant"),
    "one row": ({"sample_weight": np.eye(N)[0]}, "2 rows of positive weight|only one class|y has no event"),
    "missing weights": ({"sample_weight": changed(np.ones(N), 3, np.nan)}, "sample_weight has missing or infinite"),
    "masked weights": ({"sample_weight": MASKED}, "sample_weight is a masked array with masked values; fill them"),
    "masked offset": ({"offset": MASKED}, "offset is a masked array with masked values; fill them"),
    "a missing offset": ({"offset": changed(np.zeros(N), 3, np.nan)}, "offset has missing .* in row 3.*logarithm"),
    "an infinite offset": ({"offset": changed(np.zeros(N), 3, -np.inf)}, "offset has missing .* in row 3.*exposure"),
    "a short offset": ({"offset": np.zeros(N - 1)}, r"offset has shape \(39,\).*40 rows"),
    "a wide offset": ({"offset": np.zeros((N, 2))}, r"offset has shape \(40, 2\)"),
    "a number": ({"offset": 3.0}, r"offset has shape \(\)"),
    "short labels": ({"split_groups": np.zeros(N - 1)}, r"split_groups must have one label per row: 40, not .*\(39,\)"),
    "missing labels": (
        {"split_groups": ["a"] * 15 + [None] * 5 + ["b"] * 20},
        r"split_groups has missing labels, first in row 15",
    ),
    "an offset in words": ({"offset": ["a"] * N}, "offset must hold numbers"),
    "exposures": ({"offset": np.full(N, 1e160)}, "offset must not exceed .*the logarithm of the exposure, not the exp"),
}


@pytest.mark.parametrize(("model", "y"), MODELS, ids=["squared", "poisson", "classes", "survival"])
@pytest.mark.parametrize("case", BESIDE)
def test_weights_and_offsets(case, model, y):
    given, match = BESIDE[case]
    refused(model, y, match, **given)


@pytest.mark.parametrize("model", [REGRESSOR(loss="poisson", selection=Size(1)), CLASSIFIER(selection=Size(1))])
def test_offsets_and_weights_of_other_rows(model):
    y = np.where(TWO, 1.0, 0.0)
    model.fit(X, y)
    for offset, match in ((np.full(N, 5e3), "must not exceed 1000"), (np.zeros(N - 1), r"offset has shape \(39,\)")):
        for call in (lambda given: model.predict(X, offset=given), lambda given: model.score(X, y, offset=given)):
            with pytest.raises(ValueError, match=match):
                call(offset)
    with pytest.raises(ValueError, match="sample_weight must not be negative; row 0"):
        model.score(X, y, sample_weight=-np.ones(N))
    labels = CLASSIFIER(selection=Size(1))
    refused(labels, THREE, "one column per class", offset=np.zeros(N))
    with pytest.raises(ValueError, match="one column per class"):
        labels.fit(X, THREE, offset=np.zeros((N, 3))).predict_proba(X, offset=np.zeros(N))


def test_classes_without_weight():
    refused(CLASSIFIER(), TWO, "only one class, 0", sample_weight=1.0 - TWO)
    refused(CLASSIFIER(), THREE, "All rows of class 1 have weight zero", sample_weight=(THREE != 1) * 1.0)


PARAMETERS = {
    "a size that leaves columns": ({"groups": 4}, "would be left over"),
    "too few labels": ({"groups": [1, 2]}, "2 entries, but X has 6 columns"),
    "groups of more columns": ({"groups": Groups.from_sizes([7])}, "for 7 columns, but X has 6"),
    "names of columns": ({"groups": TermGroups(["a"])}, "pass a DataFrame"),
    "one fold": ({"selection": 1}, "at least 2"),
    "an unknown selection": ({"selection": "nonsense"}, "selection must be"),
    "a boolean": ({"selection": True}, "selection must be"),
    "nothing held out": ({"selection": HoldOut(0.0)}, "between 0 and 1"),
    "an unknown rule": ({"rule": "best"}, "'select' or 'predict'"),
    "an old rule": ({"rule": "1se"}, "Use 'select' where you had '1se'"),
    "negative factors": ({"factors": -1}, "factors"),
    "factors in words": ({"factors": "many"}, "factors must be"),
    "one weight": ({"group_weights": [1.0]}, "there are 6 groups"),
    "weights by other names": ({"group_weights": pd.Series(1.0, index=list("abcdef"))}, "'a' is none"),
    "weights in words": ({"group_weights": "heavy"}, "group_weights must be"),
    "an unknown scale": ({"standardize": "rows"}, "standardize must be"),
    "an intercept in words": ({"fit_intercept": "no"}, "fit_intercept must be True or False, not 'no'"),
    "a seed in words": ({"random_state": "a"}, "'a' cannot be used to seed"),
    "every group always": ({"always": range(6)}, "always names all 6 groups.*leave some out"),
    "an unknown group": ({"always": ["age"]}, "always.*'age'|'age'.*always"),
    "an unknown position": ({"always": [99]}, "99"),
    "a group and no list": ({"always": 3}, "always"),
    "a negative count held out": (
        {"loss": "poisson", "selection": HoldOut(validation=(X, -POSITIVE))}, "y_val must not be negative",
    ),
    "no amount held out": (
        {"loss": "gamma", "selection": HoldOut(validation=(X, 0 * POSITIVE))}, "y_val must be above zero",
    ),
    "rows within groups": ({"within": "rows"}, "must be None or 'columns'"),
    "columns by a criterion": ({"within": "columns", "selection": "bic"}, "held-out rows"),
    "weights within groups": ({"groups": 3, "within": "columns", "group_weights": np.ones(2)}, "group_weights"),
    "columns of overlapping groups": (
        {"within": "columns", "groups": Groups.from_lists([[0, 1], [1, 2, 3, 4, 5]], overlap=True)}, "in common",
    ),
    "columns of terms": ({"within": "columns", "terms": "auto"}, "within='columns' is for groups="),
    "constraints on columns": (
        {"groups": 3, "within": "columns", "constraints": {"*": ">=0"}}, "leave out within='columns'",
    ),
    "constraints on overlapping groups": (
        {"groups": Groups.from_lists([[0, 1], [1, 2, 3, 4, 5]], overlap=True), "constraints": {"*": ">=0"}},
        "groups without a column in common",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PARAMETERS)
def test_parameters(case):
    options, match = PARAMETERS[case]
    refused(REGRESSOR(**options), POSITIVE, match)


def test_a_label_that_only_validation_rows_have():
    labels = np.array(["a", "b"])[TWO]
    other = np.where(np.arange(N) == 3, "c", labels)
    way = HoldOut(validation=(X, other))
    refused(CLASSIFIER(selection=way), labels, "y_val has the label 'c', which no row of fit has")
    model = CLASSIFIER(selection=Size(1)).fit(X, labels)
    assert model.score(X, other) == np.mean(model.predict(X) == other)


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ([(FIRST, np.arange(20, 50))], "held-out rows of split 0 must lie between 0 and 39, not 20 to 49"),
        ([(FIRST, SECOND), (np.array([-1, 3]), SECOND)], "training rows of split 1 must lie between 0 and 39"),
        ([(FIRST * 1.5, SECOND)], "must be a list of positions, or a mask of 40 rows"),
        ([(np.arange(30) < 20, SECOND)], "must be a list of positions, or a mask of 40 rows"),
        ([(["a"], ["b"])], "must be a list of positions"),
        ([(FIRST.reshape(2, 10), SECOND)], "must be a list of positions"),
        ([([[1], [2, 3]], SECOND)], "must be a list of positions"),
        ([FIRST], "split 0 is not a pair"),
        ([3], "split 0 is not a pair"),
        ([(np.append(FIRST, 0), SECOND)], "name a row more than once; repeat rows by sample_weight"),
        ([(FIRST, FIRST[-1:])], "split 0 holds out rows that it trains on, 1 in all, first row 19"),
        ([], "there are none. A generator can be used only once: give a list"),
    ],
)
def test_splits(splits, message):
    refused(REGRESSOR(selection=splits), Y, f"selection must give pairs of training and held-out rows.*{message}")


def test_what_can_be_read_only_once():
    model = REGRESSOR(selection=(pair for pair in [(FIRST, SECOND)])).fit(X, Y)
    refused(model, Y, "A generator can be used only once")
    always = REGRESSOR(groups=2, always=(name for name in [0]))
    for _ in range(2):
        refused(always, Y, "always is a generator, which can be read only once: give a list")
    refused(REGRESSOR(recipes=iter([])), Y, "recipes is a list_iterator, which can be read only once")
    refused(CLASSIFIER(), [0, 1, 0, 1], "X is a generator, which can be read only once", X=(row for row in np.eye(4)))


VALUES = {
    "one row": (X[:1], Y[:1], "at least 2 rows|minimum of 2"),
    "one row of a table": (pd.DataFrame({"a": [1.0]}), [1.0], "X has 1 row; a fit needs at least 2"),
    "missing": (changed(X, (3, 2), np.nan), Y, "missing in 'column 2'"),
    "infinite": (changed(X, (3, 2), -np.inf), Y, "infinite in 'column 2'"),
}


@pytest.mark.parametrize("case", VALUES)
def test_columns(case):
    given, y, match = VALUES[case]
    refused(REGRESSOR(terms="auto" if isinstance(given, pd.DataFrame) else None), y, match, X=given)


@pytest.mark.parametrize(("model", "y"), MODELS[1:], ids=["poisson", "classes", "survival"])
def test_values_whose_squares_overflow(model, y):
    match = r"X has values above 1e\+150 in column 2, whose squares overflow: change the units"
    refused(model, y, match, X=changed(X, (3, 2), 1e200))


@pytest.mark.parametrize("value", [1e160, 1e308])
def test_one_value_whose_square_overflows_is_neither_missing_nor_infinite(value):
    rng = np.random.default_rng(0)
    large, y = rng.standard_normal((80, 2)), rng.standard_normal(80)
    large[3, 1] = value
    refused(REGRESSOR(1), y, "X has values in column 1 whose squares overflow beside the others: change", X=large)


def test_models_that_are_not_fitted_and_groups_of_no_transformer():
    for call in (lambda: REGRESSOR().predict(X), lambda: REGRESSOR().score(X, Y), lambda: REGRESSOR().summary()):
        with pytest.raises(NotFittedError):
            call()
    with pytest.raises(ValueError, match="starts with none of the inputs 'a'"):
        TermGroups(["a"])(["b_1"])
    with pytest.raises(ValueError, match="fit it on a DataFrame"):
        TermGroups.from_transformer(StandardScaler())


def test_warnings_of_what_may_be_a_mistake():
    with pytest.warns(UserWarning, match="GroupSparseClassifier"):
        REGRESSOR(selection=Size(1)).fit(X, TWO.astype(float))
    y = np.where(X[:, 0] > 0, "good", np.where(X[:, 1] > 0, "bad", "bad "))
    with pytest.warns(UserWarning, match="classes that differ in spaces or capitals only: 'bad', 'bad '"):
        CLASSIFIER(selection="ebic").fit(X, y)
