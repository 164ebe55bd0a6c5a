"""``covey fit --constraint``: signs, bounds and shapes, and what the console and the folder say of them."""

import numpy as np
import pandas as pd
import pytest

import covey as library
from cli.running import covey, refused, run_of
from covey.tables import TableError
from covey.workflow.parameters import read_constraints


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Units sold fall with the price and with advertising; age helps in a wiggly way."""
    rng = np.random.default_rng(0)
    n = 240
    frame = pd.DataFrame({"age": rng.uniform(20, 80, n), "price": rng.uniform(1, 5, n), "ad": rng.uniform(0, 3, n)})
    frame["site"] = rng.choice(list("abc"), n)
    eta = np.tanh((frame["age"] - 50) / 8) + 0.6 * np.sin(frame["age"] / 5) - np.log(frame["price"])
    frame["units"] = eta - 0.8 * frame["ad"] + 0.4 * rng.standard_normal(n)
    file = tmp_path_factory.mktemp("constraints") / "sales.csv"
    frame.to_csv(file, index=False)
    return file


def test_the_option_gives_the_model_of_the_library(table, tmp_path):
    asked = ["fit", table, "-t", "units", "--no-nested", "--pairs", "none", "-o", tmp_path / "fit"]
    asked += ["--constraint", "price<=0", "--constraint", "age=increasing", "--constraint", "ad>=0"]
    said = covey(*asked).stdout
    assert "Constraints bind; kept out: ad (>=0); at the limit: age (increasing)." in said
    model = library.load(tmp_path / "fit" / "model.skops")
    assert model.constraints == {"price": "<=0", "age": "increasing", "ad": ">=0"}
    assert np.diff(model.effect("age").effect).min() >= -1e-12
    run = run_of(tmp_path / "fit")
    assert [one["binds"] for one in run["constraints"]] == model.constraints_["binds"].tolist()
    page = (tmp_path / "fit" / "report.html").read_text()
    assert "--constraint age=increasing" in page
    assert "The rows contradict a constraint" in page
    assert "2 of 3 constraints bind" in page


def test_groups_and_bounds(table, tmp_path):
    asked = ["fit", table, "-t", "units", "--drop", "site", "--groups", "1", "--no-nested", "-o", tmp_path / "fit"]
    covey(*asked, "--constraint", "age=0:0.01", "--constraint", "p*<=0")
    coef = pd.read_csv(tmp_path / "fit" / "coefficients.csv").set_index("column")["coefficient"]
    assert coef["age"] == 0.01
    assert coef["price"] < 0


@pytest.mark.parametrize(
    ("constraint", "messages"),
    [
        ("prise<=0", ["--constraint: there is no variable 'prise'", "did you mean 'price'"]),
        ("site=increasing", ["--constraint site is a category without an order", "such as 1, 2 and 3."]),
        ("price=1:2", ["1 to 2 for 'price' excludes zero", "give --always price, or bounds"]),
        ("price=2:0", ["--constraint price: the bounds (2.0, 0.0) are reversed: give 0:2."]),
        ("price=up", ["'up' is not increasing, decreasing, convex, concave, or bounds such as 0:2"]),
        ("price<=x", ["a number such as 0 must follow <="]),
        ("price", ["must be such as 'price<=0'"]),
    ],
)
def test_wrong_constraints_are_refused(table, tmp_path, constraint, messages):
    refused(covey("fit", table, "-t", "units", "-o", tmp_path / "fit", "--constraint", constraint), *messages)


def test_names_may_hold_marks_and_ends_may_be_open():
    found = read_constraints(["a=b<=c>=0", "x=:3", "y=-1e-2:"])
    assert found == {"a=b<=c": ">=0", "x": (None, 3.0), "y": (-0.01, None)}
    assert read_constraints([]) is None
    with pytest.raises(TableError, match="bounds such as 0:2"):
        read_constraints(["x=:"])
