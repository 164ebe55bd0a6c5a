"""Channels at equal accuracy: a tiny run, saved results, and verdicts that fail on tables that should make them."""

import numpy as np
import pandas as pd
import pytest
from experiments.toy import failing, through_disk, verdicts

from covey.datasets import DataNotFoundError
from covey.paper.datasets import make_digits
from covey.paper.experiments import channels

SLOPE = {"plain": 40, "group lasso": 20, "D-gating 2": 20, "D-gating 3": 10, "power 2": 21, "power 3": 20}


def invented(seeds=3, **changes):
    """Each method has 0.98 down to so many channels, less below; every claim holds unless changed."""
    records = []
    for method, fewest in {**SLOPE, **changes}.items():
        for seed in range(seeds):
            for strength in (0.1, 0.2):
                place = {"method": method, "strength": strength, "learning_rate": 0.1, "seed": seed}
                # the weaker strength keeps twice as many
                bar = (fewest + seed - 1) * (1 if strength == 0.2 else 2)
                for rule, counts in (("ladder", range(100, 5, -1)), ("awake", [90])):
                    for count in counts:
                        share = {"first": count // 10, "second": count // 3, "hidden": count - count // 10 - count // 3}
                        accuracy = 0.98 if count >= bar else 0.98 - 0.02 * (bar - count)
                        row = {**place, "rule": rule, "channels": count, **share, "weights": 20 * count}
                        records.append({**row, "validation": accuracy, "test": accuracy - 0.001})
    return through_disk(pd.DataFrame(records))


def test_best_setting_is_the_one_with_the_fewest_channels():
    frame = invented()
    assert channels.target_accuracy(frame) == pytest.approx(0.97)
    table = channels.best_settings(frame)
    assert table["channels"].to_dict() == {method: pytest.approx(value) for method, value in SLOPE.items()}
    assert set(table["strength"]) == {0.2}
    assert table.loc["plain", "error"] == pytest.approx(1 / np.sqrt(3))
    assert table.loc["plain", "test"] == pytest.approx(0.979)


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [({}, []), ({"power 2": 40}, [0, 2]), ({"power 3": 25}, [3]), ({"D-gating 2": 30}, [4]), ({"D-gating 3": 20}, [5])],
)
def test_claims_hold_and_each_can_fail(changes, wrong):
    assert failing(channels, invented(**changes)) == wrong


def test_deleting_what_is_awake_is_noticed():
    frame = invented()
    frame.loc[frame["rule"] == "awake", "test"] -= 0.01
    assert failing(channels, frame) == [6]


def test_a_method_that_never_reaches_the_target_fails_and_is_not_drawn():
    frame = invented()
    frame.loc[frame["method"] == "power 2", ["validation", "test"]] -= 0.2
    assert "never at the target" in next(channels.claims(frame)).measured
    assert failing(channels, frame) == [0, 2]
    figure = channels.plot(frame)
    assert "power 2" not in [label.get_text() for label in figure.axes[1].get_yticklabels()]


def test_a_setting_counts_only_if_every_seed_reaches_the_target():
    frame = invented()
    lost = (frame["method"] == "power 3") & (frame["strength"] == 0.2) & (frame["seed"] == 1)
    frame.loc[lost, "validation"] -= 0.2
    table = channels.best_settings(frame)
    assert table.loc["power 3", "strength"] == 0.1
    assert table.loc["power 3", "channels"] == pytest.approx(40)


def test_saved_results_are_shown_where_there_is_no_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(channels, "has_gpu", lambda: False)
    monkeypatch.setenv("COVEY_DATA", str(tmp_path))
    monkeypatch.setattr("covey.__file__", str(tmp_path / "a" / "b" / "covey.py"))
    with pytest.raises(DataNotFoundError, match=r"CUDA GPU.*benchmarks/channels_full\.py"):
        channels.run(channels.Settings.full())
    (tmp_path / "channels").mkdir()
    invented().to_csv(tmp_path / "channels" / "curves.csv", index=False)
    pd.testing.assert_frame_equal(channels.run(channels.Settings.full()), invented())


def test_a_tiny_run_from_training_to_claims(monkeypatch):
    pytest.importorskip("torch", reason="torch is not installed: pip install 'covey[torch]'")
    monkeypatch.setattr(channels, "load_mnist", lambda: make_digits(150, 60))
    monkeypatch.setattr(channels, "has_gpu", lambda: False)
    settings = channels.Settings(
        images=150, validation=50, test_images=60, widths=(2, 3, 4), epochs=2, batch_size=25, penalties=(1e-3,),
        starts=(1.0,), learning_rates=(0.1,), seeds=(0,), rungs=3, needs_gpu=False,
    )  # fmt: skip
    frame = channels.run(settings)
    assert set(frame["method"]) == set(channels.METHODS)
    assert len(verdicts(channels, frame)) == 7
    assert channels.plot(frame).axes
