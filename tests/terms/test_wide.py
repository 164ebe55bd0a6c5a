"""Tables too wide for all pairs: the fit goes on without them, and says so."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from covey import GroupSparseRegressor, Terms
from covey.terms import expansion


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    numbers = {f"v{j}": rng.standard_normal(120) for j in range(15)}
    return pd.DataFrame(numbers | {f"c{j}": rng.choice(list("abc"), 120) for j in range(6)})


def fit(table, **options):
    terms = Terms({"v*": "linear"}, **options)
    return GroupSparseRegressor(terms=terms).fit(table, table["v0"] + 0.1 * np.arange(120) % 3)


def test_too_many_pairs_are_left_out(table, monkeypatch):
    monkeypatch.setattr(expansion, "LISTED", 50)
    monkeypatch.setattr(expansion, "MOST_COLUMNS", 30)
    with pytest.warns(UserWarning, match=r"All pairs of 21 variables are too many to try.*pairs=None") as warned:
        model = fit(table)
    assert warned[0].filename == __file__
    assert not model.expansion_.unlisted
    assert "v0" in model.selected_groups_


def test_named_pairs_are_tried_however_wide_the_table_is(table, monkeypatch):
    monkeypatch.setattr(expansion, "LISTED", 1)
    model = fit(table, pairs=[("v0", "c0"), ("v1", "v2")])
    assert [name for name in model.groups_.names if ":" in name] == ["v0:c0", "v1:v2"]
    assert {term.kind for term in model.expansion_.terms} == {"linear", "levels", "pair"}


@pytest.mark.parametrize("listed", [50_000, 50])
def test_a_tensor_is_the_same_table_and_its_columns_stay_with_it(listed, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(expansion, "LISTED", listed)
    rng = np.random.default_rng(3)
    X = rng.standard_normal((120, 20))
    X[:, 19] = rng.integers(0, 3, 120)
    y = X[:, 0] + X[:, 1] * X[:, 2] + X[:, 3] * (1 + 2 * (X[:, 19] == 1)) + 0.3 * rng.standard_normal(120)
    tensor, terms = torch.tensor(X), {"x19": "levels"}
    model, other = (GroupSparseRegressor(terms=terms).fit(table, y) for table in (X, tensor))
    assert {"x1:x2", "x3:x19"} <= set(model.selected_groups_)
    assert model.selected_groups_ == other.selected_groups_
    np.testing.assert_allclose(other.predict(tensor), model.predict(X), rtol=1e-8)
    _, design = expansion.expand("auto", None, tensor, None)
    assert design.on_device
    with pytest.raises(ValueError, match="X is sparse, and terms= reads tables in memory"):
        model.predict(tensor.to_sparse())
