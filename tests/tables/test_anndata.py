"""X, y and groups of AnnData objects, and of a stand-in with the same attributes."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from covey import GroupSparseClassifier, GroupSparseRegressor, from_anndata
from covey.designs import BackedDesign, DenseDesign, SparseDesign
from storage_kinds import Backed

N, P = 120, 24


def parts():
    rng = np.random.default_rng(0)
    X = rng.poisson(0.7, (N, P)).astype("float32")
    obs = pd.DataFrame({"age": X[:, 6:9].sum(axis=1) + 0.3 * rng.standard_normal(N)}, index=[f"c{i}" for i in range(N)])
    obs["kind"] = pd.Categorical(np.where(X[:, 0] > 0, "a", "b"))
    var = pd.DataFrame({"pathway": [f"path{j // 3}" for j in range(P)]}, index=[f"g{j}" for j in range(P)])
    var.loc["g23", "pathway"] = None
    return X, obs, var


def stand_in(X, obs, var, **layers):
    return SimpleNamespace(X=X, obs=obs, var=var, layers=layers, obs_names=obs.index, var_names=var.index)


def check(adata, kind):
    design, y, groups = from_anndata(adata, y="obs:age", groups="var:pathway")
    assert isinstance(design, kind)
    assert groups["path2"].tolist() == [6, 7, 8]
    assert groups["g23"].tolist() == [23]
    model = GroupSparseRegressor(groups).fit(design, y)
    assert model.selected_groups_ == ["path2"]
    assert list(model.feature_names_in_) == [f"g{j}" for j in range(P)]
    with pytest.raises(ValueError, match=r"y has the label 'c119' in row 0, .* give y\.loc\[X\.row_names\]"):
        GroupSparseRegressor(groups).fit(design, pd.Series(y, adata.obs_names)[::-1])
    return model.coef_


def test_dense_sparse_and_backed_matrices_give_one_model():
    X, obs, var = parts()
    expected = check(stand_in(X, obs, var), DenseDesign)
    for stored, kind in [(sp.csr_matrix(X), SparseDesign), (Backed(sp.csr_array(X)), BackedDesign)]:
        np.testing.assert_allclose(check(stand_in(stored, obs, var), kind), expected, atol=1e-5)


def test_layers_responses_and_default_groups():
    X, obs, var = parts()
    adata = stand_in(X, obs, var, counts=2 * X)
    design, y, groups = from_anndata(adata, layer="counts")
    np.testing.assert_array_equal(design.take(np.arange(P)), 2 * X)
    assert y is None
    assert groups.names == tuple(var.index)
    design, kinds, _ = from_anndata(adata, y="obs:kind")
    assert "g0" in GroupSparseClassifier().fit(design, kinds).selected_groups_
    given = np.arange(N)
    assert from_anndata(adata, y=given)[1] is given
    assert from_anndata(adata, groups=3)[2].sizes.tolist() == [3] * 8


def test_integers_in_a_file_are_read_as_float64():
    X, obs, var = parts()
    assert from_anndata(stand_in(Backed(X.astype(int)), obs, var))[0].dtype == np.float64


def test_what_cannot_be_used():
    X, obs, var = parts()
    adata = stand_in(X, obs, var, counts=X)
    for options, message in [
        ({"y": "obs:agee"}, "adata.obs has no column 'agee': did you mean 'age'?"),
        ({"groups": "var:gene"}, "adata.var has no column 'gene': the columns are 'pathway'."),
        ({"y": "age"}, "'age' is a column of adata.obs: give 'obs:age'."),
        ({"groups": "pathway"}, "'pathway' is a column of adata.var: give 'var:pathway'."),
        ({"layer": "count"}, "adata has no layer 'count': did you mean 'counts'?"),
    ]:
        with pytest.raises(ValueError, match=message.replace("?", r"\?")):
            from_anndata(adata, **options)
    obs.loc["c5", "age"] = np.nan
    with pytest.raises(ValueError, match="1 rows have no 'obs:age', the first is 'c5'"):
        from_anndata(adata, y="obs:age")
    for name in ("path2", "g22"):  # of a pathway, and of another variable without one
        var.loc["g22", "pathway"] = None
        other = stand_in(X, obs, var.rename({"g23": name}))
        with pytest.raises(ValueError, match=f"variable '{name}' has no 'var:pathway', and another group has its name"):
            from_anndata(other, groups="var:pathway")
    with pytest.raises(ValueError, match="is a ndarray without 'X'; it must be an AnnData object"):
        from_anndata(X)
    with pytest.raises(ValueError, match=r"For an AnnData object use covey.from_anndata"):
        GroupSparseRegressor().fit(adata, obs["age"])
    with pytest.raises(ValueError, match="name a layer"):
        from_anndata(stand_in(None, obs, var))


@pytest.mark.parametrize("stored", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_files_of_anndata_are_only_read(stored, tmp_path):
    anndata = pytest.importorskip("anndata")
    X, obs, var = parts()
    path = tmp_path / "cells.h5ad"
    anndata.AnnData(stored(X), obs, var).write_h5ad(path)
    path.chmod(0o444)
    before = path.read_bytes()
    adata = anndata.read_h5ad(path, backed="r")
    expected = check(anndata.AnnData(stored(X), obs, var), DenseDesign if stored is np.asarray else SparseDesign)
    np.testing.assert_allclose(check(adata, BackedDesign), expected, atol=1e-5)
    adata.file.close()
    assert path.read_bytes() == before
