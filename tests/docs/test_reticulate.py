"""The calls that the page for R users shows, in Python: names that are not there, or other arguments, would fail."""

import re
from pathlib import Path

import numpy as np
import pandas as pd

import covey
import covey.report
import covey.selection

PAGE = (Path(__file__).parents[2] / "docs" / "reticulate.md").read_text()


def test_the_calls_run(tmp_path):
    rng = np.random.default_rng(0)
    cars = pd.DataFrame(
        {"wt": rng.normal(3, 1, 32), "cyl": rng.choice([4, 6, 8], 32), "gear": rng.choice(list("ab"), 32)}
    )
    mpg = 37 - 5 * cars["wt"].to_numpy() + rng.normal(0, 1, 32)
    cars["gear"] = cars["gear"].astype("category")  # as a factor arrives
    model = covey.GroupSparseRegressor(terms="auto").fit(cars, mpg)
    assert "wt" in str(model.summary())
    assert model.terms_["term"].tolist()[0] == "wt"
    assert model.predict(cars).shape == (32,)
    covey.save(model, tmp_path / "model.skops")
    assert covey.load(tmp_path / "model.skops").selected_groups_ == model.selected_groups_
    labels = ["a", "a", "b"]  # a list of labels, one per column
    matrix = rng.standard_normal((32, 3))
    assert (
        covey.GroupSparseRegressor(groups=labels, selection=covey.selection.Size(1)).fit(matrix, mpg).groups_.n_groups
        == 2
    )


def test_the_names_on_the_page_exist():
    for dotted in set(re.findall(r"covey(?:\$\w+)+", PAGE)):
        value = covey
        for name in dotted.split("$")[1:]:
            value = getattr(value, name)
