"""The Bardet loader: the right data, and a way out where it is absent or damaged."""

import os

import numpy as np
import pytest

from covey.datasets import DataNotFoundError, load_bardet

ABSENT = not os.path.isfile(os.path.join(os.environ.get("COVEY_DATA", ""), "bardet.csv"))


@pytest.mark.skipif(ABSENT, reason="COVEY_DATA names no folder with bardet.csv")
def test_the_data_is_that_of_the_paper():
    data = load_bardet()
    assert data.X.shape == (120, 100)
    assert data.groups.n_groups == 20
    assert set(data.groups.sizes) == {5}
    assert data.groups.names[0] == "gene01"
    assert data.y.mean() == pytest.approx(8.391, abs=5e-4)
    assert data.y.var(ddof=1) == pytest.approx(0.0209, abs=5e-5)
    assert int(np.argmin(data.y)) == 79


def test_no_folder_named(monkeypatch):
    monkeypatch.delenv("COVEY_DATA", raising=False)
    with pytest.raises(DataNotFoundError, match=r"COVEY_DATA, which is not set.*gglasso"):
        load_bardet()


def test_no_file_in_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("COVEY_DATA", str(tmp_path))
    with pytest.raises(DataNotFoundError, match=r"There is no file .*bardet\.csv\. The data is not part of covey"):
        load_bardet()


def test_another_file_under_its_name(tmp_path):
    file = tmp_path / "bardet.csv"
    file.write_text("TRIM32,gene01_b1\n1,2\n")
    with pytest.raises(ValueError, match=r"SHA-256 .* expected 7ac7f442"):
        load_bardet(file)
