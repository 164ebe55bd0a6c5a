"""fig10 and table2: tables that survive the disk, figures drawn from them, claims that can fail."""

import numpy as np
import pandas as pd
import pytest
from experiments.toy import failing, through_disk, verdicts

from covey.datasets import DataNotFoundError
from covey.paper.datasets import make_digits
from covey.paper.experiments import Verdict, fig10, table2
from covey.paper.experiments.fig10 import MODELS, mean_and_error
from covey.paper.results import blended, combined, grids, read, table, write

SCALE = {
    "midpoint_ratio": {"AE": 1.3, "VAE": 1.4, "GAE8": 1.15, "GAE4": 1.12, "IRMAE": 1.1},
    "effective_rank": {"AE": 20, "VAE": 15, "GAE8": 12, "GAE4": 8, "IRMAE": 5},
    "frechet": {"AE": 9, "VAE": 8, "GAE8": 4, "GAE4": 4, "IRMAE": 5},
    "probe_accuracy": {"AE": 0.7, "VAE": 0.7, "GAE8": 0.8, "GAE4": 0.82, "IRMAE": 0.8},
    "confidence_middle": {"AE": 0.7, "VAE": 0.7, "GAE8": 0.8, "GAE4": 0.82, "IRMAE": 0.8},
    "reconstruction_error": {"AE": 0.002, "VAE": 0.004, "GAE8": 0.003, "GAE4": 0.004, "IRMAE": 0.005},
}


def invented_table(seeds=3, **changes):
    """A table in which every claim holds, unless changed."""
    scale = {q: {**values, **changes.get(q, {})} for q, values in SCALE.items()}
    confidence = {f"confidence_{k}": 0.9 - 0.02 * k * (8 - k) / 4 for k in range(9)}
    images = make_digits(54, 1).train_images.reshape(6, 9, 28, 28)
    parts = [
        table(m, s, {q: scale[q][m] * (1 + 0.001 * s) for q in scale} | confidence, 0.5 ** np.arange(12), images)
        for m in MODELS
        for s in range(seeds)
    ]
    return combined([*parts, blended(1.5)])


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({}, set()),
        ({"midpoint_ratio": {"GAE8": 1.31}}, {3, 5}),
        ({"midpoint_ratio": {"VAE": 1.05}}, {1, 4}),
        ({"midpoint_ratio": {"GAE4": 1.22}}, {2}),
        ({"effective_rank": {"GAE8": 30}}, {6}),
        ({"frechet": {"VAE": 3}}, {7}),
        ({"probe_accuracy": {"AE": 0.9}}, {8}),
        ({"confidence_middle": {"GAE8": 0.6}}, {9}),
        ({"reconstruction_error": {"GAE4": 0.01}}, {10}),
    ],
)
def test_claims_hold_and_each_can_fail(changes, wrong):
    assert set(failing(fig10, through_disk(invented_table(**changes)))) == wrong


def test_a_lead_within_the_noise_does_not_count():
    frame = invented_table()
    rows = (frame["model"] == "GAE4") & (frame["quantity"] == "midpoint_ratio")
    frame.loc[rows, "value"] = [0.8, 1.1, 1.6]
    assert verdicts(fig10, through_disk(frame))[0] == Verdict.FAILS


def test_one_seed_is_enough_for_a_picture_and_says_so():
    frame = through_disk(invented_table(seeds=1))
    assert "one seed" in next(fig10.claims(frame)).measured
    assert mean_and_error(frame, "AE", "frechet") == (9.0, 0.0)
    figure = fig10.plot(frame)
    assert len(figure.axes) == 5 + 6
    assert [axes.get_ylabel() for axes in figure.axes[:5]] == list(MODELS)
    assert figure.axes[0].images[0].get_array().shape == (3 * 28, 2 * 9 * 28 + 14)
    np.testing.assert_array_equal(grids(frame, "GAE4"), make_digits(54, 1).train_images.reshape(6, 9, 28, 28))


def test_saved_results_are_read_as_the_same_table(tmp_path):
    invented = invented_table()
    write(invented[invented["model"] != "pixels"], tmp_path)
    (tmp_path / "about.json").write_text('{"blend_midpoint_ratio": 1.5, "device": "a GPU"}')
    saved = read(tmp_path)
    assert (saved["quantity"] == "image").sum() == len(MODELS) * 54, "the images of one seed per model"
    keys = ["model", "seed", "quantity", "index"]
    saved, invented = (f.sort_values(keys, ignore_index=True) for f in (saved, invented))
    pd.testing.assert_frame_equal(saved[[*keys, "data"]], invented[[*keys, "data"]], check_dtype=False)
    np.testing.assert_allclose(saved["value"], invented["value"], rtol=1e-4)
    assert verdicts(fig10, saved) == verdicts(fig10, through_disk(invented))


def test_the_full_setting_without_gpu_and_results_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(fig10, "has_gpu", lambda: False)
    monkeypatch.delenv("COVEY_DATA", raising=False)
    monkeypatch.setattr("covey.__file__", str(tmp_path / "a" / "b" / "covey.py"))
    with pytest.raises(DataNotFoundError, match="CUDA GPU"):
        fig10.run(fig10.Settings.full())


def test_without_torch_the_experiments_say_what_to_install(monkeypatch):
    monkeypatch.setattr("covey.paper.experiments.autoencoders.TORCH", False)
    with pytest.raises(DataNotFoundError, match=r"pip install 'covey\[torch\]'"):
        table2.run(table2.Settings.quick())


def test_table_2_holds_and_would_not_with_other_sizes():
    pytest.importorskip("torch", reason="torch is not installed: pip install 'covey[torch]'")
    frame = through_disk(table2.run(table2.Settings.quick()))
    assert frame["latent"].tolist() == [786_432, 196_608, 98_304]
    assert verdicts(table2, frame) == [Verdict.HOLDS]
    assert table2.plot(frame).axes
    other = table2.run(table2.Settings(latent=128, layers=8))
    assert verdicts(table2, other) == [Verdict.FAILS]


def test_a_tiny_run_from_training_to_claims(monkeypatch):
    pytest.importorskip("torch", reason="torch is not installed: pip install 'covey[torch]'")
    monkeypatch.setattr(fig10, "load_mnist", lambda: make_digits(150, 60))
    settings = fig10.Settings(
        images=150, test_images=60, epochs=1, batch_size=32, seeds=(0,), pairs=10, needs_gpu=False, width=8, latent=16
    )
    frame = through_disk(fig10.run(settings))
    assert set(frame["model"]) == {*MODELS, "pixels"}
    assert len(list(fig10.claims(frame))) == 11
    assert fig10.plot(frame).axes
