"""Which family a target is taken for, what each can be asked, and how good predictions are said to be."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, mean_poisson_deviance, r2_score, roc_auc_score

import covey as library
from cli.families import RESPONSES, command, make_table
from cli.running import as_json, covey, done, refused, run_of
from covey.settings import TableSettings
from covey.tables import TableError
from covey.workflow.response import read_response


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    file = tmp_path_factory.mktemp("families") / "table.csv"
    make_table().to_csv(file, index=False)
    return file


def found(values, family="auto", squared=""):
    return read_response(pd.DataFrame({"y": values}), TableSettings((), ("y",), family=family), squared=squared)


@pytest.mark.parametrize(
    ("values", "family", "words"),
    [
        (["a", "b", "a", "b"], "binomial", "text with 2 different values"),
        (["a", "b", "c"] * 2, "multinomial", "text with 3 different values"),
        ([True, False] * 2, "binomial", "booleans with 2 different values"),
        ([0, 1, 1, 0], "binomial", "only two values; --family gaussian"),
        ([-1.0, 1.0, 1.0, -1.0], "binomial", "only two values"),
        ([0.0, 1.0, 0.0], "gaussian", "holds numbers"),  # a value in a single row is rather a measurement
        ([1.5, 2.5, 3.5], "gaussian", "holds numbers"),
        (["1", "2.5", "x3"], "gaussian", None),
        ([0, 3, 1, 0, 7], "gaussian", "holds numbers"),
    ],
    ids=str,
)
def test_auto_says_what_it_took_and_why(values, family, words):
    if words is None:
        with pytest.raises(TableError, match="'x3' in row 3"):
            found(values)
        return
    response = found(values)
    assert response.family == family
    assert words in response.reason
    assert response.has_classes == (family != "gaussian")
    assert found(values, family).reason == ""


@pytest.mark.parametrize(
    ("values", "hint"),
    [
        ([0, 3, 1, 0, 7], "looks like counts: --family poisson"),
        ([1, 3, 2, 3], "3 different whole numbers: if they are classes, give --family multinomial"),
        (list(range(1, 40)), ""),
        ([0.5, 3, 1], ""),
        (["high", "low", "medium"] * 2, "seems to have an order, which these classes ignore: --order low,medium,high"),
        (["Often", "Never", "Always"] * 2, "--order Never,Often,Always uses it"),
        (pd.Categorical(list("cbacba"), list("cba"), ordered=True), "--family ordinal uses it"),
        (["cat", "dog", "owl"] * 2, ""),
    ],
    ids=["counts", "ratings", "ages", "numbers", "grades", "how often", "ordered category", "animals"],
)
def test_what_else_it_may_be_is_a_hint(values, hint):
    assert hint in found(values).hint
    assert bool(found(values).hint) == bool(hint)


def test_labels_stay_what_they_are():
    assert found([2.0, 3.0, 2.0, 3.0]).y.tolist() == [2, 3, 2, 3]
    assert found([1, 2, 2, 1, 5, 5], "multinomial").y.dtype.kind == "i"
    assert found([0.5, 1.5, 0.5, 1.5], "multinomial").y.tolist() == ["0.5", "1.5", "0.5", "1.5"]
    assert found([True, False, True, False]).y.dtype == bool
    assert not found([0.1, 0.5, 1.0], "binomial").has_classes  # shares


def test_the_path_of_squared_loss_takes_numbers_only():
    assert found([0, 1, 0, 1], squared="covey path").family == "gaussian"
    with pytest.raises(TableError, match="covey path needs numbers, but the target 'y' holds text"):
        found(["a", "b"] * 2, squared="covey path")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-t", "first", "-t", "second", "--family", "gamma"], ["--family gamma is for one response"]),
        (["-t", "first", "-t", "first"], ["--target names 'first' twice"]),
        (["-t", "first", "--family", "poisson"], ["'first' must not be negative", "such rows", "--family gaussian"]),
        (["-t", "count", "--family", "gamma"], ["'count' must be above zero", "is 0 in row"]),
        (["-t", "first", "--family", "tweedie"], ["'first' must not be negative", "such rows", "--family gaussian"]),
        (["-t", "first", "--family", "negative-binomial"], ["'first' must not be negative"]),
        (["-t", "cost", "--power", "3"], ["--power 3.0: power must lie between 1 and 2, not 3"]),
        (["-t", "cost", "--family", "poisson", "--power", "1.5"], ["--power is for --family tweedie", "is poisson"]),
        (["-t", "first", "--quantile", "0.1,1.5"], ["--quantile 0.1,1.5: levels must lie between 0 and 1"]),
        (["-t", "first", "--quantile", "half"], ["--quantile half: could not convert"]),
        (
            ["-t", "mark", "--family", "ordinal"],
            ["whose order is not known", "give --order with 'fair', 'good', 'poor'"],
        ),
        (["-t", "mark", "--order", "poor,fair"], ["--order lacks 'good', which the target 'mark' holds"]),
        (["-t", "mark", "--order", "poor,fair,good,fair"], ["--order names a class twice"]),
        (["-t", "first", "--family", "binomial"], ["two classes, or shares between 0 and 1"]),
        (["-t", "three", "--family", "binomial"], ["'three' has 3 classes", "--family multinomial"]),
        (["-t", "three", "--offset", "years"], ["with more than two classes each needs its own offset"]),
        (["-t", "two", "--selection", "discrepancy"], ["--selection discrepancy needs squared loss"]),
        (["-t", "count", "--offset", "yearz"], ["--offset: there is no column 'yearz'", "did you mean 'years'"]),
        (["-t", "count", "--offset", "log:g0_0"], ["'g0_0' is -", "which has no logarithm"]),
        (
            ["-t", "first", "--always", "g0_1"],
            ["--always names the column 'g0_1', which is one of several in group 'g0'"],
        ),
        (["-t", "first", "--always", "g9"], ["no group or column 'g9'"]),
    ],
    ids=lambda value: " ".join(value) if value[0].startswith("-") else "",
)
def test_what_a_family_cannot_is_refused(table, tmp_path, options, words):
    asked = {name for name, option in zip(options[1:], options, strict=False) if option == "-t"}
    unused = [word for name in RESPONSES if name not in asked for word in ("--drop", name)]
    refused(covey("fit", table, "-g", "_", *unused, *options, "-o", tmp_path / "fit"), *words)
    assert not (tmp_path / "fit").exists()


def fit_and_predict(case, table, folder, *targets):
    done(*command(case, table, folder / "fit"))
    wanted = [word for name in targets for word in ("--target", name)]
    return as_json("predict", folder / "fit", table, *wanted)


def test_the_positive_class_is_chosen_and_classes_are_weighted_and_scored(table, tmp_path):
    other, out, frame = tmp_path / "other", tmp_path / "fit", pd.read_csv(table)
    given = ("fit", table, "-t", "two", "-g", "_", "--selection", "ebic", "--drop", ",".join(RESPONSES[1:]))
    printed = done(*given, "--nested", "--positive", "ill <b>", "--class-weight", "balanced", "-o", out).stdout
    assert "coefficients describe the odds of ill <b> against well" in printed
    assert "Held-out probabilities of ill <b>" in printed
    assert "of all ill <b>, found" in printed
    # the other class's odds are the inverse, in every file; the model file keeps scikit-learn's order
    model = library.load(out / "model.skops")
    coefficients = pd.read_csv(out / "coefficients.csv")["coefficient"].to_numpy()
    np.testing.assert_allclose(coefficients[1:], -model.coef_[0], rtol=1e-9)
    page = (out / "report.html").read_text()
    assert "odds of <bdi>ill &lt;b&gt;</bdi> against <bdi>well</bdi>" in page
    assert "Held-out class predictions" in page
    run = run_of(out)
    assert model.classes_.tolist() == ["ill <b>", "well"]
    assert run["classes"] == ["well", "ill <b>"]  # the positive one last
    assert run["scores"]["held_out_r2"] == run["nested"]["mean"] < run["scores"]["train_r2"]
    held_out = run["nested"]["classes"]
    assert held_out["positive"] == "ill <b>"
    assert np.sum(held_out["confusion"]) == len(frame)
    assert np.trace(held_out["confusion"]) / len(frame) == pytest.approx(held_out["accuracy"])
    # the scores of predictions
    scored = as_json("predict", out, table, "--target", "two")
    p = np.column_stack([scored[f"probability_{label}"] for label in model.classes_])
    assert scored["accuracy"] == pytest.approx(np.mean(np.array(scored["prediction"]) == frame["two"]))
    assert scored["log_loss"] == pytest.approx(log_loss(frame["two"], p, labels=list(model.classes_)))
    assert scored["auc"] == pytest.approx(roc_auc_score(frame["two"] == "ill <b>", p[:, 0]))
    assert scored["base_rate"] == pytest.approx((frame["two"] == "ill <b>").mean())
    frame.assign(two="dead").to_csv(tmp_path / "dead.csv", index=False)
    refused(covey("predict", out, tmp_path / "dead.csv", "--target", "two"), "holds 'dead'", "'ill <b>', 'well'")
    # equal weights change nothing
    done(*given, "--class-weight", "well=2, ill <b>=2", "-o", other)
    done(*given, "-o", tmp_path / "plain")
    equal, plain = (library.load(folder / "model.skops") for folder in (other, tmp_path / "plain"))
    np.testing.assert_allclose(equal.coef_, plain.coef_, atol=1e-8)


def test_the_affirmative_class_is_the_positive_one_for_constraints_too(table, tmp_path):
    frame = pd.read_csv(table)
    frame["two"] = np.where(frame["two"] == "well", "Ja", "Nein")
    other, out = tmp_path / "ja.csv", tmp_path / "fit"
    frame.to_csv(other, index=False)
    given = ("fit", other, "-t", "two", "-g", "1", "--selection", "ebic", "--drop", ",".join(RESPONSES[1:]))
    columns = [name for name in frame if name not in RESPONSES]
    result = done(*given, "--constraint", "*>=0", "--no-nested", "-o", out)
    assert "coefficients describe the odds of Ja against Nein" in result.stdout
    coefficients = pd.read_csv(out / "coefficients.csv").set_index("column")["coefficient"]
    assert coefficients[columns].min() >= 0
    assert coefficients[columns].max() > 0
    assert ">=0 for the odds of Ja" in (out / "report.html").read_text().replace("&gt;", ">")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-t", "two", "--positive", "dead"], ["--positive must be one of the classes 'ill <b>', 'well', not 'dead'"]),
        (["-t", "two", "--class-weight", "dead=2"], ["--class-weight must be one of the classes", "not 'dead'"]),
        (["-t", "two", "--class-weight", "much"], ["--class-weight must be balanced, or a list"]),
        (["-t", "count", "--positive", "1"], ["--positive is for classes, but the family is gaussian"]),
        (["-t", "count", "--class-weight", "balanced"], ["--class-weight is for classes"]),
    ],
)
def test_classes_that_are_not_there(options, words, table, tmp_path):
    refused(covey("fit", table, *options, "-o", tmp_path / "fit"), *words)


def test_counts_are_scored_by_deviance_and_need_their_exposure(table, tmp_path):
    answer = fit_and_predict("counts", table, tmp_path, "count")
    frame = pd.read_csv(table)
    assert answer["deviance"] == pytest.approx(mean_poisson_deviance(frame["count"], answer["prediction"]))
    run = run_of(tmp_path / "fit")
    assert answer["deviance_explained"] == pytest.approx(run["scores"]["train_r2"])
    other = tmp_path / "other.csv"
    frame.drop(columns="years").to_csv(other, index=False)
    refused(covey("predict", tmp_path / "fit", other), "lacks 'years', the offset of the fit", "all ones")
    frame.assign(years=2 * frame["years"]).to_csv(other, index=False)
    doubled = as_json("predict", tmp_path / "fit", other)
    np.testing.assert_allclose(doubled["prediction"], 2 * np.array(answer["prediction"]))


def test_an_offset_of_numbers_explains_nothing(table, tmp_path):
    """R^2 is that of what is left beside the offset, in the fit and for predictions."""
    options = ["-t", "first", "-g", "_", "--offset", "second", "--drop", ",".join({*RESPONSES} - {"first", "second"})]
    done("fit", table, *options, "--selection", "bic", "-o", tmp_path / "fit")
    scored = as_json("predict", tmp_path / "fit", table, "--target", "first")
    assert scored["r2"] == pytest.approx(run_of(tmp_path / "fit")["scores"]["train_r2"])


def test_several_responses_are_scored_each(table, tmp_path):
    answer = fit_and_predict("several", table, tmp_path, "first", "second")
    frame = pd.read_csv(table)
    for name in ("first", "second"):
        assert answer[f"r2_{name}"] == pytest.approx(r2_score(frame[name], answer[f"prediction_{name}"]))
    refused(covey("predict", tmp_path / "fit", table, "--target", "first"), "predicts 2 responses")


def test_codes_are_classes(tmp_path):
    frame = pd.DataFrame({"x": np.arange(60.0), "code": np.array(["007", "010", "120"])[np.arange(60) // 20]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    shown = covey("fit", tmp_path / "t.csv", "-t", "code", "-o", tmp_path / "fit").output
    assert "Family: multinomial (code holds text with 3 different values)" in shown
    shown = covey("fit", tmp_path / "t.csv", "-t", "code", "--family", "gaussian", "-o", tmp_path / "fit2").output
    assert "Family: gaussian." in shown
