"""A table fitted through the command line: console, report and every file of the folder describe one model."""

import html
import re

import numpy as np
import pandas as pd
import pytest

import covey as library
from cli.families import CASES, command, fitted, make_table
from cli.running import done, run_of
from covey.report.page import ratio, shown


@pytest.fixture(scope="module")
def every_kind(tmp_path_factory):
    file = tmp_path_factory.mktemp("families") / "table.csv"
    make_table().to_csv(file, index=False)
    return file


@pytest.mark.parametrize("case", CASES, ids=str)
def test_everything_describes_the_estimators_model(case, every_kind, tmp_path):
    out, targets = tmp_path / "fit", CASES[case][1].split()
    model, X, y, offset = fitted(case, pd.read_csv(every_kind))
    result = done(*command(case, every_kind, out))
    names, always = [str(name) for name in model.groups_.names], [str(name) for name in model.always_groups_]
    selected = sorted(model.selected_groups_, key=lambda name: -model.group_strengths_[names.index(name)])
    found = [name for name in selected if name not in always]
    assert {"g1", "g4"} <= set(found)

    # the console
    every = len(names) - len(always)
    assert f"{len(found)} of {every} groups predict {', '.join(targets)}" in result.stdout
    assert f"Model: {model.recipe_}" in result.stdout
    assert re.findall(r"^│(g\d)", result.stdout, re.MULTILINE) == selected

    # groups.csv
    table = pd.read_csv(out / "groups.csv").set_index("group")
    assert table.index[table["selected"]].tolist() == selected
    assert table.index[table["always"]].tolist() == always
    if model.loss_.several:  # in the units of each, and no norm that would mix them
        each = table.loc[names, [f"strength_{name}" for name in targets]]
        np.testing.assert_allclose(each.T, model.response_strengths_, rtol=1e-9)
        assert "norm" not in table
    else:
        np.testing.assert_allclose(table.loc[names, "norm"], model.group_norms_, rtol=1e-9)
    np.testing.assert_allclose(table.loc[names, "strength"], model.group_strengths_, rtol=1e-9)
    counted = model.n_splits_ > 1 and model.fold_frequencies_ is not None
    assert ("folds" in table) == counted
    if counted:
        np.testing.assert_array_equal(table.loc[names, "folds"], model.fold_frequencies_)

    # coefficients.csv: one column per response or class, and ratios beside them
    outputs = (
        []
        if model.path_.n_outputs == 1
        else [str(k) for k in getattr(model, "classes_", model.loss_.outputs or targets)]
    )
    ends = [f"_{name}" for name in outputs] or [""]
    coefficients = pd.read_csv(out / "coefficients.csv").set_index("column")
    for end, coef, level in zip(ends, np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_), strict=True):
        np.testing.assert_allclose(coefficients.loc[X.columns, f"coefficient{end}"], coef, rtol=1e-9)
        assert coefficients.loc["(intercept)", f"coefficient{end}"] == pytest.approx(level, rel=1e-9)
        if model.loss_.effect:
            ratios = coefficients[f"{model.loss_.effect.replace(' ', '_')}{end}"]
            np.testing.assert_allclose(ratios[X.columns], np.exp(coef), rtol=1e-9)
    assert coefficients.shape[1] == 1 + len(ends) * (2 if model.loss_.effect else 1)

    # run.json
    run = run_of(out)
    assert [row["group"] for row in run["selected_groups"]] == selected
    assert (run["model"], run["shrunk"], run["groups_found"], run["always"]) == (
        model.recipe_, model.shrunk_, len(found), always,
    )  # fmt: skip
    np.testing.assert_allclose(run["intercept"], np.squeeze(model.intercept_), rtol=1e-9)
    assert run["target"] == (targets[0] if len(targets) == 1 else targets)
    share = _explained(model, X, y, offset)
    assert run["scores"]["train_r2"] == pytest.approx(share, rel=1e-9)
    assert f"{share:.3f} on " in result.stdout

    # the path, whose last model it is
    path = pd.read_parquet(out / "path.parquet")
    last = path[path["time"] == path["time"].max()]
    for k, coef in enumerate(np.atleast_2d(model.coef_)):
        coefficient = last if not outputs else last[last["output"] == outputs[k]]
        coefficient = coefficient.set_index("column")["coefficient"]
        np.testing.assert_allclose(coefficient.reindex(X.columns).fillna(0.0), coef, rtol=1e-9)

    # the model's file, and what `covey predict` writes with it
    assert library.load(out / "model.skops").selected_groups_ == model.selected_groups_
    done("predict", out / "model.skops", every_kind, "--out", tmp_path / "p.csv")
    predictions = pd.read_csv(tmp_path / "p.csv")
    shift = {} if offset is None else {"offset": offset}
    if hasattr(model, "classes_"):
        assert predictions.columns.tolist() == ["prediction", *(f"probability_{k}" for k in model.classes_)]
        assert predictions["prediction"].tolist() == model.predict(X).tolist()
        np.testing.assert_allclose(predictions.drop(columns="prediction"), model.predict_proba(X), rtol=1e-9)
    else:
        heads = [f"prediction_{name}" for name in outputs] or ["prediction"]
        assert predictions.columns.tolist() == heads
        np.testing.assert_allclose(np.squeeze(predictions.to_numpy()), model.predict(X, **shift), rtol=1e-9)

    # the report
    page = html.unescape((out / "report.html").read_text())
    assert f"<b>{len(found)} of {every} groups</b>" in page
    assert page.count('<small class="always">always in</small>') == len(always)
    assert model.recipe_ in page
    assert "rule='" not in page  # remedies are options of the command line
    assert ("--rule select" in page) == (model.rule == "predict" or "--rule select" in CASES[case][0])
    assert "Held-out class predictions" not in page
    assert ("Each response" in page) == (len(targets) > 1)
    body = page.split('id="group-table"')[1].split("<tbody>", 1)[1].split('<p id="no-group"')[0]
    cells = re.findall(r'<tr><td class="rank">.*?<bdi>(g\d)</bdi>.*?data-label="norm">(.*?)</td>', body)
    assert cells == [(name, shown(float(np.float32(model.group_norms_[names.index(name)])))) for name in selected]
    first = float(np.float32(np.atleast_2d(model.coef_)[0, list(X.columns).index("g1_0")]))
    text = shown(ratio(first) if outputs and model.loss_.effect else first, 4)
    assert f"<bdi>g1_0</bdi></th><td>{text}</td>" in body
    if model.loss_.effect and not outputs:
        assert f"<td>{text}</td><td>{shown(ratio(first), 4)}</td>" in body


def _explained(model, X, y, offset):
    """The share of the deviance that a model removes, by hand for classes."""
    if not hasattr(model, "classes_"):
        return model.score(X, y, offset=offset)
    codes = np.array([model.classes_.tolist().index(label) for label in y.tolist()])
    shares = np.bincount(codes) / len(codes)
    left = model.predict_log_proba(X)[np.arange(len(codes)), codes].sum()
    return 1 - left / np.log(shares[codes]).sum()
