"""The splice sites: the right data, pairs of positions, and a way out where the file is absent or damaged."""

import os

import pytest

from covey.datasets import DataNotFoundError, load_splice

ABSENT = not os.path.isfile(os.path.join(os.environ.get("COVEY_DATA", ""), "splice.csv"))


@pytest.mark.skipif(ABSENT, reason="COVEY_DATA names no folder with splice.csv")
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


def test_it_says_how_to_get_the_file(monkeypatch, tmp_path):
    monkeypatch.setenv("COVEY_DATA", str(tmp_path))
    with pytest.raises(DataNotFoundError, match=r"There is no file .*splice\.csv\. .* R package grplasso"):
        load_splice()


def test_another_file_under_its_name(tmp_path):
    file = tmp_path / "splice.csv"
    file.write_text("y,Pos.1\n1,a\n")
    with pytest.raises(ValueError, match=r"SHA-256 .* expected b8bc3085"):
        load_splice(file)
