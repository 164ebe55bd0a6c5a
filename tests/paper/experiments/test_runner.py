"""Saved results: used again, computed again when damaged, never partial."""

import json
import os
from dataclasses import asdict

import pandas as pd
import pytest
from experiments import toy
from joblib import parallel_config

from covey.paper.experiments.runner import reproduce
from covey.paper.experiments.tasks import each, records, running
from covey.progress import listening


def test_a_second_run_uses_the_first(monkeypatch, tmp_path):
    runs = toy.install(monkeypatch)
    (first,) = reproduce(["toy"], "quick", tmp_path)
    (second,) = reproduce(["toy"], "quick", tmp_path)
    assert len(runs) == 1
    assert (first.reused, second.reused) == (False, True)
    assert second.seconds == pytest.approx(first.seconds, abs=1e-3)
    pd.testing.assert_frame_equal(first.frame, second.frame)
    assert second.claims == first.claims
    assert second.figure == first.figure
    assert sorted(p.name for p in (tmp_path / "toy").iterdir()) == ["data.csv", "figure.png", "figure.svg", "run.json"]
    record = json.loads((tmp_path / "toy" / "run.json").read_text())
    assert record["settings"] == asdict(first.settings)


def test_other_settings_and_other_code_run_again(monkeypatch, tmp_path):
    runs = toy.install(monkeypatch)
    list(reproduce(["toy"], "quick", tmp_path))
    (full,) = reproduce(["toy"], "full", tmp_path)
    assert full.claims[0].measured == "30 rows"
    monkeypatch.setattr("covey.paper.experiments.runner.code_version", lambda: "another")
    list(reproduce(["toy"], "full", tmp_path))
    assert [run.repeats for run in runs] == [3, 30, 30]


@pytest.mark.parametrize(
    ("file", "content"),
    [("data.csv", "i,value\n0,7\n"), ("data.csv", None), ("run.json", "{"), ("run.json", "{}"), ("run.json", "[1]")],
)
def test_a_damaged_result_is_computed_again_with_a_notice(monkeypatch, tmp_path, file, content):
    runs = toy.install(monkeypatch)
    (first,) = reproduce(["toy"], "quick", tmp_path)
    damaged = tmp_path / "toy" / file
    if content is None:
        damaged.unlink()
    else:
        damaged.write_text(content)
    (second,) = reproduce(["toy"], "quick", tmp_path)
    assert len(runs) == 2
    assert not second.reused
    assert "damaged" in second.notices[0]
    pd.testing.assert_frame_equal(first.frame, second.frame)
    (third,) = reproduce(["toy"], "quick", tmp_path)
    assert third.reused
    assert not third.notices


def test_a_lost_figure_is_drawn_again_from_the_table(monkeypatch, tmp_path):
    runs = toy.install(monkeypatch)
    (first,) = reproduce(["toy"], "quick", tmp_path)
    (tmp_path / "toy" / "figure.png").unlink()
    (second,) = reproduce(["toy"], "quick", tmp_path)
    assert len(runs) == 1
    assert (tmp_path / "toy" / "figure.png").read_bytes() == first.figure["png"] == second.figure["png"]


def test_an_interruption_leaves_the_finished_ones(monkeypatch, tmp_path):
    def interrupted(settings):
        raise KeyboardInterrupt

    runs = toy.install(monkeypatch, "first")
    toy.install(monkeypatch, "second", run=interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(reproduce(["first", "second"], "quick", tmp_path))
    assert not (tmp_path / "second" / "run.json").exists()
    toy.install(monkeypatch, "second")
    first, second = reproduce(["first", "second"], "quick", tmp_path)
    assert len(runs) == 1
    assert (first.reused, second.reused) == (True, False)


def test_repeats_are_watched_and_in_order():
    progress = []
    with listening(lambda text, share: progress.append((text, share))), running("fig2"):
        assert each(abs, [-3, 2, -1], 1) == [3, 2, 1]
    assert progress == [(f"fig2, repeat {k} of 3", (k - 1) / 3) for k in (1, 2, 3)]


@pytest.mark.parametrize("backend", ["sequential", "threading", "multiprocessing", "loky"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_repeats_run_on_any_backend(backend):
    offset = 10
    with parallel_config(backend=backend):
        assert each(lambda i: i + offset, [1, 2, 3], 2) == [11, 12, 13]


def counted(item):
    """Counts its runs in a file."""
    folder, value = item
    with open(os.path.join(folder, "calls"), "a") as calls:
        calls.write("x")
    return [{"value": value, "square": value**2}]


def test_finished_repeats_are_kept_and_damaged_ones_run_again(tmp_path):
    calls, kept, progress = tmp_path / "calls", tmp_path / "kept", []
    items = [(str(tmp_path), value) for value in range(4)]
    with listening(lambda text, share: progress.append(text)), running("toy", kept):
        first = records(counted, items[:3])
        assert [row["square"] for row in first] == [0, 1, 4]
        assert len(calls.read_text()) == 3
        # only the new one runs
        assert records(counted, items)[:3] == first
        assert len(calls.read_text()) == 4
        # a file cut off in the middle is computed again
        broken = next(kept.glob("*.json"))
        broken.write_text(broken.read_text()[:10])
        assert len(records(counted, items)) == 4
        assert len(calls.read_text()) == 5
    assert progress[2] == "toy, repeat 3 of 3"
    assert not list(kept.glob("*.part"))
