"""Survival times on the command line: the same model as from Python, its files, predictions, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest

import covey as library
from cli.running import as_json, covey, done, refused, run_of
from covey import GroupSparseCox, survival


def make_trial(n_rows=160, seed=0):
    """Columns g0_0 to g5_1, months and dead; status, site and entry say the same in other words, or add to it."""
    rng = np.random.default_rng(seed)
    columns = [f"g{j // 2}_{j % 2}" for j in range(12)]
    frame = pd.DataFrame(rng.standard_normal((n_rows, 12)), columns=columns)
    eta = (frame["g1_0"] - frame["g1_1"] + frame["g4_0"]).to_numpy()
    site = np.array(["north", "south"])[np.arange(n_rows) % 2]
    entry = rng.uniform(0.0, 0.5, n_rows)
    death = entry + rng.exponential(np.exp(-eta) * np.where(site == "north", 10.0, 20.0))
    lost = entry + rng.uniform(1.0, 40.0, n_rows)
    dead = (death <= lost).astype(int)
    months = np.maximum(np.ceil(10 * np.minimum(death, lost)) / 10, 0.6)  # with ties
    return frame.assign(
        months=months, dead=dead, status=np.where(dead == 1, "dead", "alive"), site=site, entry=entry.round(2)
    )


OTHERS = ["--drop", "status,site,entry"]


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    file = tmp_path_factory.mktemp("trial") / "trial.csv"
    make_trial().to_csv(file, index=False)
    return file


@pytest.fixture(scope="module")
def plain_fit(trial, tmp_path_factory):
    """With nested folds, and what the console said."""
    out = tmp_path_factory.mktemp("fits") / "plain"
    asked = ["--time", "months", "--event", "dead", "-g", "_", "--always", "g5,g4", *OTHERS]
    result = done("fit", trial, *asked, "--selection", "2", "--nested", "-o", out)
    return out, result.stdout


@pytest.fixture(scope="module")
def strata_fit(trial, tmp_path_factory):
    out = tmp_path_factory.mktemp("fits") / "strata"
    asked = ["--time", "months", "--event", "status", "--event-value", "dead", "--start", "entry", "--strata", "site"]
    done("fit", trial, *asked, "--drop", "dead", "-g", "_", "--selection", "bic", "--ties", "breslow", "-o", out)
    return out


def columns_of(frame):
    return frame[[name for name in frame.columns if name.startswith("g")]]


def by_hand(frame, **options):
    X = columns_of(frame)
    return GroupSparseCox(groups=[name[:2] for name in X.columns], random_state=0, **options), X


def test_the_model_is_that_of_python(trial, plain_fit):
    out, _ = plain_fit
    frame = pd.read_csv(trial)
    model, X = by_hand(frame, selection=2, always=["g5", "g4"])
    y = survival(frame["months"], frame["dead"])
    model.fit(X, y)
    saved = library.load(out / "model.skops")
    np.testing.assert_allclose(saved.coef_, model.coef_)
    table = pd.read_csv(out / "coefficients.csv").iloc[1:]
    np.testing.assert_allclose(table["coefficient"], model.coef_)
    np.testing.assert_allclose(table["hazard_ratio"], np.exp(model.coef_))
    run = run_of(out)
    assert (run["family"], run["events"], run["target"]) == ("cox", int(frame["dead"].sum()), ["months", "dead"])
    assert run["settings"]["estimator"] == "GroupSparseCox"
    assert run["always"] == ["g5", "g4"]
    assert run["scores"]["measure"] == "concordance"
    assert run["scores"]["train_r2"] == pytest.approx(model.score(X, y))
    assert run["scores"]["chosen_r2"] is None


def test_files_console_and_report_agree(plain_fit):
    out, said = plain_fit
    run = run_of(out)
    nested = run["nested"]
    assert nested["measure"] == "concordance"
    assert run["scores"]["held_out_r2"] == nested["mean"]
    assert nested["references"]["null"]["mean"] == 0.5
    assert nested["references"]["always in"]["mean"] < nested["mean"]
    assert "adds to what is always in" in nested["verdict"]
    page = (out / "report.html").read_text()
    for text in (
        f"{nested['mean']:.3f} ± {nested['margin']:.3f}",
        f"{nested['references']['always in']['mean']:.3f}",
    ):
        assert text in said
        assert text in page
    assert f"{run['events']} events" in said
    groups = pd.read_csv(out / "groups.csv")
    assert set(groups.loc[groups["selected"], "group"]) == {row["group"] for row in run["selected_groups"]}
    assert {"g1", "g4", "g5"} <= set(groups.loc[groups["selected"], "group"])


def test_predictions_are_log_risk_and_survival(trial, plain_fit):
    out, _ = plain_fit
    frame, model = pd.read_csv(trial), library.load(out / "model.skops")
    answer = as_json("predict", out, trial, "--at", "1,5", "--at", "10")
    np.testing.assert_allclose(answer["prediction"], model.predict(columns_of(frame)))
    curves = model.predict_survival_function(columns_of(frame))
    for time in (1, 5, 10):
        np.testing.assert_allclose(answer[f"survival_{time}"], [curve(time) for curve in curves])
    quartiles = [f"survival_{float(f'{t:.4g}'):g}" for t in np.quantile(frame["months"], [0.25, 0.5, 0.75])]
    unasked = as_json("predict", out, trial)
    assert [name for name in unasked if name.startswith("survival")] == quartiles
    scored = as_json("predict", out, trial, "-t", "months", "-t", "dead")
    run = run_of(out)
    assert scored["concordance"] == pytest.approx(run["scores"]["train_r2"])
    result = covey("predict", out, trial, "-t", "months", "-t", "dead", "-o", out.parent / "p.csv")
    assert f"concordance {scored['concordance']:.3f}" in result.stderr


def test_strata_entries_and_words_for_events(trial, strata_fit, tmp_path):
    frame = pd.read_csv(trial)
    model, X = by_hand(frame, selection="bic", ties="breslow")
    y = survival(frame["months"], frame["dead"], start=frame["entry"], strata=frame["site"])
    model.fit(X, y)
    saved = library.load(strata_fit / "model.skops")
    np.testing.assert_allclose(saved.coef_, model.coef_)
    assert saved.ties == "breslow"
    answer = json.loads(
        covey("predict", strata_fit, trial, "--at", "5", "-t", "months", "-t", "status", "--json").stdout
    )
    curves = model.predict_survival_function(X, strata=frame["site"])
    np.testing.assert_allclose(answer["survival_5"], [curve(5.0) for curve in curves])
    assert answer["concordance"] == pytest.approx(model.score(X, y))
    other = tmp_path / "other.csv"
    frame.drop(columns="site").to_csv(other, index=False)
    refused(covey("predict", strata_fit, other), "lacks 'site', the strata of the fit")
    frame.assign(site="east").to_csv(other, index=False)
    refused(covey("predict", strata_fit, other), "holds 'east'", "it knows 'north', 'south'")


def test_times_that_differ_in_late_digits_have_a_column_each(trial, plain_fit):
    answer = as_json("predict", plain_fit[0], trial, "--at", "1.0000001,1.0000002,2")
    assert [name for name in answer if name.startswith("survival_")] == [
        "survival_1.0000001", "survival_1.0000002", "survival_2"
    ]  # fmt: skip


def test_survival_beyond_a_stratum_is_not_known(trial, strata_fit):
    frame = pd.read_csv(trial)
    ends = frame.groupby("site")["months"].max()
    time = float(ends.max())
    answer = as_json("predict", strata_fit, trial, "--at", f"{time}")
    known = np.array([value is not None for value in answer[f"survival_{time:g}"]])
    np.testing.assert_array_equal(known, frame["site"] == ends.idxmax())


def test_several_columns_of_strata(tmp_path):
    file = tmp_path / "trial.csv"
    frame = make_trial()
    frame["sex"] = np.arange(len(frame)) // 2 % 2
    frame.drop(columns=["status", "entry"]).to_csv(file, index=False)
    asked = ["--time", "months", "--event", "dead", "--strata", "site", "--strata", "sex", "--selection", "bic"]
    done("fit", file, *asked, "-g", "_", "-o", tmp_path / "fit")
    saved = library.load(tmp_path / "fit" / "model.skops")
    assert saved.strata_.tolist() == ["north / 0", "north / 1", "south / 0", "south / 1"]
    done("predict", tmp_path / "fit", file)


def test_the_path_of_survival_times(trial):
    result = covey("path", trial, "--time", "months", "--event", "dead", "-g", "_", *OTHERS, "--most", "3", "--json")
    answer = json.loads(result.stdout)
    assert {row["group"] for row in answer["groups"][:2]} == {"g1", "g4"}


@pytest.mark.parametrize("asked", [("--at", "1,x"), ("--at", "-1"), ("--at", "1000"), ("-t", "months")], ids=" ".join)
def test_what_predict_refuses(trial, plain_fit, asked):
    words = {
        "1,x": "'x' is not a number",
        "-1": "not negative",
        "1000": "beyond the follow-up",
        "months": "--target twice",
    }
    refused(covey("predict", plain_fit[0], trial, *asked), words[asked[1]])


SURVIVAL = ["--time", "months", "--event", "dead"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], ["--target COL, or --time COL and --event COL"]),
        (["--time", "months"], ["--time months needs --event"]),
        (["--event", "dead"], ["--event dead needs --time"]),
        (["--family", "cox", "-t", "months"], ["--family cox is for survival times"]),
        (["-t", "months", "--strata", "site"], ["--strata is for survival times"]),
        (["-t", "months", "--event-value", "1"], ["--event-value is for survival times"]),
        (["-t", "months", "--ties", "efron"], ["--ties is for survival times"]),
        ([*SURVIVAL, "-t", "months"], ["--target months and --time months: a fit has only one of them"]),
        ([*SURVIVAL, "--family", "poisson"], ["--family poisson is not for survival times"]),
        ([*SURVIVAL, *OTHERS, "--selection", "discrepancy"], ["--selection discrepancy needs squared loss"]),
        (["--time", "month", "--event", "dead"], ["no column 'month' for --time", "did you mean 'months'"]),
        (["--time", "months", "--event", "death"], ["no column 'death' for --event", "did you mean 'dead'"]),
        ([*SURVIVAL, "--strata", "sites"], ["no column 'sites' for --strata", "did you mean 'site'"]),
        ([*SURVIVAL, "--start", "entri"], ["no column 'entri' for --start", "did you mean 'entry'"]),
        ([*SURVIVAL, "--start", "months"], ["'months' is named twice"]),
        (["--time", "months", "--event", "status"], ["'status' must be 1", "alive, dead", "--event-value dead"]),
        (["--time", "months", "--event", "months"], ["'months' is named twice"]),
        ([*SURVIVAL, "--event-value", "2"], ["--event-value 2", "its values are 0, 1"]),
        ([*SURVIVAL, "--event-value", "0", "--event-value", "1"], ["names every value"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_contradictions_and_unknown_columns_are_refused(trial, tmp_path, options, words):
    refused(covey("fit", trial, "-g", "_", *options, "-o", tmp_path / "fit"), *words)
    assert not (tmp_path / "fit").exists()


BAD = {
    "no events": ({"dead": 0}, ["'dead' is 0 in every row: there is no event"]),
    "one time": ({"months": 3.0}, ["events are at time 3", "Predict the event with --target"]),
    "negative": ({"months": -2.0}, ["--time 'months' must not be negative, but is -2 in row 1"]),
    "no time": ({"months": np.nan}, ["--time 'months' is missing in every row"]),
    "no event known": ({"dead": [np.nan] + [1] * 159}, ["--event 'dead' is missing in 1 row of 160"]),
    "1 and 2": ({"dead": [1, 2] * 80}, ["'dead' must be 1", "holds 1, 2", "--event-value 2"]),
    "shares": ({"dead": np.linspace(0, 1, 160)}, ["'dead' must be 1", "is it the right column?"]),
    "late": ({"entry": 99.0}, ["--start 'entry' must lie before --time 'months', but is 99 against", "in row 1"]),
    "negative entry": ({"entry": -1.0}, ["--start 'entry' must not be negative"]),
    "text": ({"months": ["soon"] + [1.0] * 159}, ["Column 'months' holds 'soon' in row 1"]),
    "no stratum": ({"site": [None] + ["a"] * 159}, ["--strata 'site' is missing in 1 row"]),
    "empty stratum": (
        {"site": ["lone"] + ["a"] * 159, "dead": [0] + [1] * 159},
        ["Stratum 'lone' has no event"],
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_times_are_refused_by_column_and_row(tmp_path, case):
    changed, words = BAD[case]
    file = tmp_path / "trial.csv"
    make_trial().drop(columns="status").assign(**changed).to_csv(file, index=False)
    asked = [*SURVIVAL, "--start", "entry", "--strata", "site", "-g", "_", "-o", tmp_path / "fit"]
    refused(covey("fit", file, *asked), *words)


def test_numbers_are_event_values_however_they_are_spelt(tmp_path):
    file = tmp_path / "trial.csv"
    frame = make_trial()
    frame.drop(columns=["status", "site", "entry"]).assign(dead=frame["dead"] + 1.0).to_csv(file, index=False)
    asked = [*SURVIVAL, "--event-value", "2", "-g", "_", "--selection", "bic", "-o", tmp_path / "fit", "--json"]
    assert json.loads(covey("fit", file, *asked).stdout)["events"] == frame["dead"].sum()
