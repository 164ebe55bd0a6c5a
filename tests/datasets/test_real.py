"""Loaders of real data: the right data, and a way out where a file is absent or damaged."""

import os

import numpy as np
import pytest

from covey.datasets import DataNotFoundError, load_bardet, load_nki70, load_splice

LOADERS = {"bardet": (load_bardet, "gglasso"), "nki70": (load_nki70, "penalized"), "splice": (load_splice, "grplasso")}


def needs(name):
    absent = not os.path.isfile(os.path.join(os.environ.get("COVEY_DATA", ""), f"{name}.csv"))
    return pytest.mark.skipif(absent, reason=f"COVEY_DATA names no folder with {name}.csv")


@needs("bardet")
def test_bardet_is_that_of_the_paper():
    data = load_bardet()
    assert data.X.shape == (120, 100)
    assert data.groups.n_groups == 20
    assert set(data.groups.sizes) == {5}
    assert data.groups.names[0] == "gene01"
    assert data.y.mean() == pytest.approx(8.391, abs=5e-4)
    assert data.y.var(ddof=1) == pytest.approx(0.0209, abs=5e-5)
    assert int(np.argmin(data.y)) == 79


@needs("splice")
def test_the_sites_and_their_pairs():
    data, wide = load_splice(), load_splice(interactions=True)
    assert data.X.shape == (400, 28)
    assert list(data.groups.names) == [f"Pos.{k}" for k in range(1, 8)]
    assert data.y.sum() == 200
    for name in data.groups.names:
        assert (data.X[[f"{name}_{letter}" for letter in "acgt"]].sum(axis=1) == 1).all()
    assert wide.groups.n_groups == 28
    assert set(wide.groups.sizes[7:]) == {16}
    product = data.X["Pos.2_a"] * data.X["Pos.5_g"]
    assert (wide.X["Pos.2_a:Pos.5_g"] == product).all()
    assert wide.groups.names[wide.groups.labels[wide.X.columns.get_loc("Pos.2_a:Pos.5_g")]] == "Pos.2:Pos.5"


@pytest.mark.parametrize("name", LOADERS)
def test_a_file_that_is_absent_or_another(name, monkeypatch, tmp_path):
    load, package = LOADERS[name]
    monkeypatch.delenv("COVEY_DATA", raising=False)
    with pytest.raises(DataNotFoundError, match=rf"COVEY_DATA, which is not set.*R package {package}"):
        load()
    monkeypatch.setenv("COVEY_DATA", str(tmp_path))
    with pytest.raises(DataNotFoundError, match=rf"There is no file .*{name}\.csv\. The data is not part of covey"):
        load()
    (tmp_path / f"{name}.csv").write_text("y,a\n1,2\n")
    with pytest.raises(ValueError, match=r"SHA-256 .* expected \w{64}\."):
        load()
