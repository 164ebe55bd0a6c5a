"""Effects of variables and pairs: they add up to the linear predictor, are centred, and agree with tables of scores."""

import numpy as np
import pandas as pd
import pytest

from covey import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, Terms, nested_score, survival

# rows far from those of the fit, or with new levels, are what many of these tests are about
pytestmark = pytest.mark.filterwarnings("ignore::covey.terms.unusual.NewValuesWarning")

HOSTILE = "=1+1<b>"
N = 400


def make_table(seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.uniform(20, 60, N),
            "bmi": rng.normal(25, 4, N),
            "sex": rng.choice(["f", "m"], N),
            HOSTILE: rng.choice(["@a", "<i>b</i>", "c"], N),
            "smokes": rng.random(N) < 0.4,
            "grade": pd.Categorical(rng.choice(["low", "mid", "high"], N), ["low", "mid", "high"], ordered=True),
            "day": pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 1500, N), "D"),
            "noise": rng.standard_normal(N),
            "id": [f"row {i}" for i in range(N)],
        }
    )
    season = np.sin(2 * np.pi * table["day"].dt.day_of_year / 365.25)
    eta = (
        2 * np.sin(table["age"] / 6) + 0.3 * table["bmi"] + (table["sex"] == "m") + 2 * (table[HOSTILE] == "@a")
        + 1.5 * table["smokes"] + table["grade"].cat.codes + 1.5 * season + 1.5 * (table["day"].dt.day_of_week == 6)
        + 0.05 * (table["age"] - 40) * (table["bmi"] - 25) + 0.4 * (table["bmi"] - 25) * (table["sex"] == "m")
        + 2 * ((table["sex"] == "f") & (table[HOSTILE] == "c"))
    )  # fmt: skip
    table.loc[rng.choice(N, 30, replace=False), "bmi"] = np.nan
    table.loc[rng.choice(N, 20, replace=False), "sex"] = None
    return table, eta - eta.mean(), rng


@pytest.fixture(scope="module")
def data():
    table, eta, rng = make_table()
    return table, eta + 0.3 * rng.standard_normal(N)


@pytest.fixture(scope="module")
def model(data):
    table, y = data
    pairs = [("age", "bmi"), ("bmi", "sex"), ("sex", HOSTILE)]
    weight = np.linspace(0.5, 1.5, N)
    return GroupSparseRegressor(terms=Terms(pairs=pairs)).fit(table, y, sample_weight=weight)


def split(name):
    """The variables of a part of the model."""
    return name.split(":")


def test_terms_and_variables(model):
    terms = model.terms_
    assert list(terms.columns) == ["term", "kind", "variables", "parents", "df", "strength", "folds", "woke_up"]
    assert terms["term"].tolist() == model.selected_groups_
    kinds = dict(zip(terms["term"], terms["kind"], strict=True))
    assert {"linear", "curve", "levels", "season", "pair", "surface"} >= set(kinds.values())
    assert kinds["age~"] == "curve"
    assert kinds["bmi:sex"] == "pair"
    by_name = terms.set_index("term")
    assert by_name.loc["age~", "parents"] == ("age",)
    assert by_name.loc["sex", "df"] == 2  # f, m and missing
    assert by_name.loc["bmi:sex", "df"] == 2
    assert by_name["folds"].str.fullmatch(r"\d+ of \d+").all()
    variables = model.variables_.set_index("variable")
    assert variables.loc["age", "shape"] == "curved"
    assert "sex" in variables.loc["bmi", "pairs"]
    assert "year" in variables.loc["day", "shape"]
    assert "noise" not in variables.index


def test_the_summary_speaks_of_variables_and_of_what_was_left_out(model):
    text = str(model.summary())
    assert "of 9 variables: " in text
    assert "age (curved)" in text
    assert "pairs: " in text
    assert "'id'" in text
    assert "Missing numbers count as the mean" in text
    assert "group" not in text.replace("GroupSparse", "")
    assert "<b>" not in model.summary()._repr_html_().replace("<bdi>", "")


def test_contributions_add_up_to_the_predictor(model, data):
    table, _ = data
    every = model.contributions(table)
    np.testing.assert_allclose(every.sum(axis=1), model.predict(table), rtol=0, atol=1e-10)
    means = np.average(every.drop(columns="constant"), axis=0, weights=np.linspace(0.5, 1.5, N))
    np.testing.assert_allclose(means, 0, atol=1e-10)
    other = make_table(seed=5)[0].assign(age=lambda t: 3 * t["age"] - 40, bmi=lambda t: 2 * t["bmi"])
    other.loc[:5, "sex"] = "unseen"
    np.testing.assert_allclose(model.contributions(other).sum(axis=1), model.predict(other), rtol=0, atol=1e-9)


def test_effects_are_the_contributions_of_rows(model, data):
    rows = data[0].iloc[:60]
    every = model.contributions(rows)
    assert sum(":" in name for name in every.columns) >= 2
    for name in every.columns.drop("constant"):
        names = split(name)
        at = [rows[one.partition("[")[0]] for one in names]
        effect = model.effect(*names, at=at[0] if len(at) == 1 else at).effect
        shown = effect if len(names) == 1 else np.diag(effect)
        np.testing.assert_allclose(shown, every[name], rtol=0, atol=1e-10, err_msg=name)


def test_the_grid_of_an_effect(model):
    age = model.effect("age")
    assert age.values.shape == age.effect.shape == (200,)
    assert age.axes[0].quantiles[0] == age.values[0]
    assert (age.low, age.high, age.n_refits) == (None, None, 0)
    assert age.terms == ("age", "age~")
    assert list(age.to_frame().columns) == ["age", "effect"]
    sex = model.effect("sex")
    assert sex.values.tolist() == ["f", "m", "(missing)"]
    assert sex.axes[0].counts.sum() == N
    bmi = model.effect("bmi")
    assert isinstance(bmi.missing, float)
    assert model.effect("grade").values.tolist() == ["low", "mid", "high"]
    assert model.effect("day[week]").values.tolist() == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    assert str(model.effect("day[year]").values[0])[:10] == "2001-01-01"
    pair = model.effect("bmi", "sex")
    np.testing.assert_allclose(model.effect("sex", "bmi").effect, pair.effect.T)
    both = model.effect("bmi", "sex", main=True)
    alone = model.effect("bmi", at=both.values[0]).effect[:, None] + sex.effect
    np.testing.assert_allclose(both.effect - pair.effect, alone, atol=1e-12)
    assert len(pair.to_frame()) == pair.effect.size
    assert model.effect("age", n=7).effect.shape == (7,)


def test_variables_called_like_the_constant_and_numbers_with_two_values():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"constant": rng.choice([3, 10**5], N), "constant'": rng.standard_normal(N)})
    model = GroupSparseRegressor(terms={"constant'": "linear"}, selection=3).fit(
        table, table["constant"] / 1e5 + table["constant'"] + 0.1 * rng.standard_normal(N)
    )
    np.testing.assert_allclose(model.contributions(table).sum(axis=1), model.predict(table), atol=1e-10)
    assert model.effect("constant").values.tolist() == [3, 10**5]
    assert [len(one) for one in model.to_tables().values()] == [1, 1, 2]


def test_what_has_no_effect_says_so(model):
    nothing = model.effect("noise")
    assert not nothing.effect.any()
    assert "does not have noise" in nothing.note
    assert not model.effect("noise", "age").effect.any()
    with pytest.raises(ValueError, match="no variable 'agee'; did you mean 'age'"):
        model.effect("agee")
    with pytest.raises(ValueError, match="'id' is left out"):
        model.effect("id")
    with pytest.raises(ValueError, match="given twice"):
        model.effect("age", "age")
    with pytest.raises(ValueError, match="one or two variables"):
        model.effect()
    with pytest.raises(ValueError, match="name two"):
        model.effect("age", main=True)


def test_models_without_terms_have_no_effects():
    X = np.random.default_rng(0).standard_normal((60, 3))
    plain = GroupSparseRegressor().fit(X, X[:, 0])
    assert not hasattr(plain, "terms_")
    assert not hasattr(plain, "encoding_")
    with pytest.raises(AttributeError, match="terms="):
        plain.effect("x0")


def test_the_band_is_the_range_of_the_refits(data):
    table, y = data[0][["age", "sex"]], data[1]
    model = GroupSparseRegressor(terms="auto").fit(table, y)
    nested = nested_score(model, table, y, 3, references=False, return_estimator=True)
    one = model.effect("age", refits=nested)
    again = [refit.effect("age", at=one.values).effect for refit in nested.estimators]
    np.testing.assert_allclose(one.low, np.min(again, axis=0))
    np.testing.assert_allclose(one.high, np.max(again, axis=0))
    assert one.n_refits == 3


def test_several_outputs_and_other_losses(data):
    table = data[0][["age", "sex", "smokes"]]
    classes = np.digitize(data[1], [-2, 2])
    model = GroupSparseClassifier(terms=Terms(pairs=[("age", "sex")]), class_weight="balanced").fit(table, classes)
    every = model.contributions(table)
    for k, name in enumerate(model.classes_):
        np.testing.assert_allclose(every[str(name)].sum(axis=1), model.decision_function(table)[:, k], atol=1e-10)
    effect = model.effect("age")
    assert effect.effect.shape == (200, 3)
    assert effect.outputs == ("0", "1", "2")
    assert len(effect.to_frame()) == 600
    assert model.effect("age", "sex").effect.shape[2] == 3
    assert "points 2" in model.to_tables()["age"]
    eta = (data[1] - data[1].mean()) / data[1].std()
    times = np.random.default_rng(1).exponential(np.exp(-eta))
    cox = GroupSparseCox(terms="auto").fit(table, survival(times, np.ones(N, dtype=bool)))
    np.testing.assert_allclose(cox.contributions(table).sum(axis=1), cox.predict(table), atol=1e-10)


def rated(tables, rows):
    """The score of rows by tables of points."""
    total = np.full(len(rows), tables["constant"]["points"].iloc[0])
    for name, table in list(tables.items())[1:]:
        for i, (_, row) in enumerate(rows.iterrows()):
            fits, gain = np.ones(len(table), dtype=bool), np.zeros(len(table))
            for k, variable in enumerate(split(name)):
                after = f"_{k + 1}" if len(split(name)) > 1 else ""
                value = row[variable]
                if pd.isna(value):
                    fits &= (table[f"level{after}"] == "(missing)").to_numpy()
                elif table[f"level{after}"].isin([str(value)]).any():
                    fits &= (table[f"level{after}"] == str(value)).to_numpy()
                else:
                    inside = (table[f"from{after}"].to_numpy(float) <= value) & (
                        value <= table[f"to{after}"].to_numpy(float)
                    )
                    fits &= inside
                    gain += table[f"slope{after}"] * (value - table[f"from{after}"].to_numpy(float))
            total[i] += (table["points"] + gain)[fits].iloc[0]
    return total


def test_tables_are_exact_for_lines_and_levels_and_near_for_curves(data):
    table, y = data
    names = ["bmi", "sex", HOSTILE, "smokes"]
    kinds = Terms({"bmi": "linear"}, pairs=[("bmi", "sex"), ("sex", HOSTILE)])
    without = y - 2 * np.sin(table["age"] / 6) - 0.05 * (table["age"] - 40) * (table["bmi"].fillna(25) - 25)
    exact = GroupSparseRegressor(terms=kinds).fit(table[names], without)
    assert {"bmi:sex", f"sex:{HOSTILE}"} <= set(exact.selected_groups_)
    rows = table[names].iloc[:40]
    np.testing.assert_allclose(rated(exact.to_tables(), rows), exact.predict(rows), atol=1e-8)
    names = ["age", "bmi"]
    bent = GroupSparseRegressor(terms=Terms(pairs=[("age", "bmi")])).fit(table[names], y)
    rows = table[names].iloc[:40]
    errors = [np.abs(rated(bent.to_tables(bins=n), rows) - bent.predict(rows)).max() for n in (10, 80)]
    assert errors[1] < 0.1 * errors[0]
    curve = GroupSparseRegressor(terms=Terms(pairs=None)).fit(table[["age"]], y)
    assert curve.variables_["shape"].tolist() == ["curved"]
    eta = curve.predict(rows)
    assert np.abs(rated(curve.to_tables(), rows) - eta).max() < 0.02 * np.ptp(eta)  # 0.04 with a constant per bin
    with pytest.raises(ValueError, match="bins must be at least 1"):
        bent.to_tables(bins=0)


def test_tables_in_files(model, tmp_path):
    file = tmp_path / "new" / "scores.csv"
    tables = model.to_tables(file)
    assert [one.name for one in file.parent.iterdir()] == ["scores.csv"]
    long = pd.read_csv(file)
    assert len(long) == sum(map(len, tables.values()))
    np.testing.assert_allclose(long["points"], np.concatenate([table["points"] for table in tables.values()]))
    assert f"'{HOSTILE}" in long["term"].tolist()
    assert "'@a" in long["level_1"].tolist()
    for column in long.columns:
        assert not long[column].dropna().astype(str).str.match(r"[=+@\t\r]|-(?!\d)").any()
    with pytest.raises(ValueError, match=r"\.csv or \.xlsx"):
        model.to_tables(tmp_path / "scores.txt")
    assert [one.name for one in tmp_path.iterdir()] == ["new"]


def test_tables_as_a_workbook(model, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    model.to_tables(tmp_path / "scores.xlsx")
    book = openpyxl.load_workbook(tmp_path / "scores.xlsx")
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    assert len(book.sheetnames) == len(model.to_tables())
    assert all(cell.data_type != "f" for cell in cells)


def test_without_openpyxl_the_error_says_what_to_install(model, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(ModuleNotFoundError, match=r"covey\[xlsx\]"):
        model.to_tables(tmp_path / "scores.xlsx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [({"n": 0}, "n must be at least 2"), ({"refits": [3]}, "fitted with terms=.*return_estimator=True")],
)
def test_grids_of_no_points_and_refits_of_something_else_are_refused(model, options, message):
    with pytest.raises(ValueError, match=message):
        model.effect("age", **options)
