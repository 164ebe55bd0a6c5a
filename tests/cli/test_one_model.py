"""A table fitted through the command line: console, report and every file of the folder describe one model."""

import html
import json
import re

import numpy as np
import pandas as pd
import pytest

import covey as library
from cli.running import covey
from covey import Groups, GroupSparseRegressor, Network
from covey.report.numbers import shown
from covey.selection import Size


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    made = pd.DataFrame(rng.standard_normal((150, 24)), columns=[f"g{j // 3}_{j % 3}" for j in range(24)])
    made["y"] = 3 * made["g2_0"] - 2 * made["g2_1"] + made["g5_2"] - made["g0_1"] + 2 * rng.standard_normal(150)
    return made


CASES = {
    "folds": ([], {}),
    "1se": (["--rule", "1se", "--seed", "3"], {"rule": "1se", "random_state": 3}),
    "mean": (["--average"], {"average": True}),
    "hold-out": (["--selection", "holdout"], {"selection": "holdout"}),
    "criterion": (["--selection", "bic"], {"selection": "bic"}),
    "size": (["--selection", "size:2", "--always", "g7"], {"selection": Size(2), "always": ["g7"]}),
    "columns": (["--standardize", "column", "--factors", "1"], {"standardize": "column", "factors": 1}),
    "network": (
        ["--network", "--init-scale", "1e-4", "--selection", "holdout"],
        {"network": Network(init_scale=1e-4), "selection": "holdout"},
    ),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_everything_describes_the_estimators_model(case, frame, tmp_path):
    options, parameters = CASES[case]
    frame.to_csv(tmp_path / "table.csv", index=False)
    frame = pd.read_csv(tmp_path / "table.csv")
    X, y = frame.drop(columns="y"), frame["y"]
    groups = Groups.from_labels([name[:2] for name in X.columns], columns=list(X.columns))
    model = GroupSparseRegressor(groups, **{"random_state": 0, **parameters}).fit(X, y)
    names, norms = list(groups.names), dict(zip(groups.names, model.group_norms_, strict=True))
    selected = sorted(model.selected_groups_, key=lambda name: -model.group_strengths_[names.index(name)])
    assert 0 < len(selected) <= 8

    out = tmp_path / "fit"
    result = covey("fit", tmp_path / "table.csv", "-t", "y", "-g", "_", "-o", out, *options)
    assert result.exit_code == 0, result.output

    # the console
    assert f"{len(selected)} of 8 groups predict y" in result.stdout
    assert model.recipe_ in result.stdout
    printed = re.findall(r"^│(g\d)", result.stdout, re.MULTILINE)
    assert printed == selected

    # groups.csv
    table = pd.read_csv(out / "groups.csv").set_index("group")
    assert table.index[table["selected"]].tolist() == selected
    np.testing.assert_allclose(table.loc[names, "norm"], model.group_norms_, rtol=1e-12)
    np.testing.assert_allclose(table.loc[names, "strength"], model.group_strengths_, rtol=1e-12)
    if model.n_splits_ > 1:
        np.testing.assert_array_equal(table.loc[names, "folds"], model.fold_frequencies_)

    # coefficients.csv
    coefficients = pd.read_csv(out / "coefficients.csv").set_index("column")["coefficient"]
    np.testing.assert_allclose(coefficients[X.columns], model.coef_, rtol=1e-12)
    assert coefficients["(intercept)"] == pytest.approx(model.intercept_, rel=1e-12)

    # run.json
    run = json.loads((out / "run.json").read_text())
    assert [row["group"] for row in run["selected_groups"]] == selected
    assert [row["norm"] for row in run["selected_groups"]] == pytest.approx([norms[name] for name in selected])
    assert (run["model"], run["shrunk"]) == (model.recipe_, model.shrunk_)
    assert run["intercept"] == pytest.approx(model.intercept_)

    # the path, whose last model it is
    path = pd.read_parquet(out / "path.parquet")
    last = path[path["time"] == path["time"].max()].set_index("column")["coefficient"]
    np.testing.assert_allclose(last.reindex(X.columns).fillna(0.0), model.coef_, rtol=1e-12)
    assert last[last.index.isna()].item() == pytest.approx(model.intercept_)

    # the model's file, and predictions from it
    loaded = library.load(out / "model.skops")
    np.testing.assert_allclose(loaded.predict(X), model.predict(X), rtol=1e-12)
    assert loaded[-1].selected_groups_ == model.selected_groups_

    # the report
    page = html.unescape((out / "report.html").read_text())
    assert f"<b>{len(selected)} of 8 groups</b>" in page
    assert model.recipe_ in page
    body = page.split('id="group-table"')[1].split("<tbody>")[1].split('<p id="no-group"')[0]
    rows = re.findall(r'<tr><td class="rank">.*?<bdi>(g\d)</bdi>.*?data-label="norm">(.*?)</td>', body)
    assert rows == [(name, shown(float(np.float32(norms[name])))) for name in selected]
