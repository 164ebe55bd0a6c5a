"""Channels at equal accuracy: a tiny run, saved results, and verdicts that fail on tables that should make them."""

import io

import numpy as np
import pandas as pd
import pytest

from covey.datasets import DataNotFoundError, make_digits
from covey.paper.experiments import Verdict, channels

SLOPE = {"plain": 40, "group lasso": 20, "D-gating 2": 20, "D-gating 3": 10, "power 2": 21, "power 3": 20}


def made_up(seeds=3, **changes):
    """Each method has 0.98 down to so many channels, less below; every claim holds unless changed."""
    rows = []
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
                        rows.append({**row, "validation": accuracy, "test": accuracy - 0.001})
    frame = pd.DataFrame(rows)
    return pd.read_csv(io.StringIO(frame.to_csv(index=False, float_format="%.8g")))


def verdicts(frame):
    return [claim.verdict for claim in channels.claims(frame)]


def test_best_setting_is_the_one_with_the_fewest_channels():
    frame = made_up()
    assert channels.target_accuracy(frame) == pytest.approx(0.97)
    table = channels.best_settings(frame)
    assert table["channels"].to_dict() == {method: pytest.approx(value) for method, value in SLOPE.items()}
    assert set(table["strength"]) == {0.2}
    assert table.loc["plain", "error"] == pytest.approx(1 / np.sqrt(3))
    assert table.loc["plain", "test"] == pytest.approx(0.979)


def test_claims_hold_where_they_should():
    assert set(verdicts(made_up())) == {Verdict.HOLDS}


@pytest.mark.parametrize(
    ("changes", "failing"),
    [
        ({"power 2": 40}, {0, 2}),
        ({"power 3": 25}, {3}),
        ({"D-gating 2": 30}, {4}),
        ({"D-gating 3": 20}, {5}),
    ],
)
def test_each_claim_can_fail(changes, failing):
    found = verdicts(made_up(**changes))
    assert {i for i, verdict in enumerate(found) if verdict == Verdict.FAILS} == failing


def test_deleting_what_is_awake_is_noticed():
    frame = made_up()
    frame.loc[frame["rule"] == "awake", "test"] -= 0.01
    assert verdicts(frame)[-1] == Verdict.FAILS


def test_a_method_that_never_reaches_the_target_fails_and_is_not_drawn():
    frame = made_up()
    frame.loc[frame["method"] == "power 2", ["validation", "test"]] -= 0.2
    claims = channels.claims(frame)
    assert "never at the target" in claims[0].measured
    assert claims[0].verdict == Verdict.FAILS
    assert claims[2].verdict == Verdict.FAILS
    figure = channels.plot(frame)
    assert "power 2" not in [label.get_text() for label in figure.axes[1].get_yticklabels()]


def test_a_setting_counts_only_if_every_seed_reaches_the_target():
    frame = made_up()
    lost = (frame["method"] == "power 3") & (frame["strength"] == 0.2) & (frame["seed"] == 1)
    frame.loc[lost, "validation"] -= 0.2
    table = channels.best_settings(frame)
    assert table.loc["power 3", "strength"] == 0.1
    assert table.loc["power 3", "channels"] == pytest.approx(40)


def test_figure():
    figure = channels.plot(made_up(seeds=1))
    assert [axes.get_xlabel() for axes in figure.axes] == [
        "channels kept", "channels: first, second, hidden", "channels awake",
    ]  # fmt: skip
    figure.canvas.draw()


def test_saved_results_are_shown_where_there_is_no_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(channels, "_has_gpu", lambda: False)
    monkeypatch.setattr(channels, "saved_file", lambda: None)
    with pytest.raises(DataNotFoundError, match="CUDA GPU"):
        channels.run(channels.Settings.full())
    file = tmp_path / channels.FILE
    made_up().to_csv(file, index=False)
    monkeypatch.setattr(channels, "saved_file", lambda: file)
    pd.testing.assert_frame_equal(channels.run(channels.Settings.full()), made_up())


def test_saved_results_may_lie_with_the_data(monkeypatch, tmp_path):
    (tmp_path / channels.SAVED).mkdir()
    (tmp_path / channels.SAVED / channels.FILE).touch()
    monkeypatch.setenv("COVEY_DATA", str(tmp_path))
    monkeypatch.setattr(channels.covey, "__file__", str(tmp_path / "a" / "b" / "covey.py"))
    assert channels.saved_file() == tmp_path / channels.SAVED / channels.FILE


def test_a_tiny_run_from_training_to_claims(monkeypatch):
    pytest.importorskip("torch", reason="torch is not installed: pip install 'covey[torch]'")
    monkeypatch.setattr(channels, "load_mnist", lambda: make_digits(150, 60))
    monkeypatch.setattr(channels, "_has_gpu", lambda: False)
    settings = channels.Settings(
        images=150, validation=50, test_images=60, widths=(2, 3, 4), epochs=2, batch_size=25, penalties=(1e-3,),
        starts=(1.0,), learning_rates=(0.1,), seeds=(0,), rungs=3, needs_gpu=False,
    )  # fmt: skip
    frame = channels.run(settings)
    assert set(frame["method"]) == set(channels.METHODS)
    assert len(channels.claims(frame)) == 7
    assert channels.plot(frame).axes
