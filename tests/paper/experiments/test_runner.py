"""Saved results: used again, computed again when damaged, never partial."""

import json
import os
from dataclasses import asdict

import pandas as pd
import pytest
from experiments import toy
from joblib import parallel_config

from covey.paper.experiments.runner import ROOT, code_version, look_version, reproduce, sources
from covey.paper.experiments.tasks import each, resumable, run_tasks, watched


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
    monkeypatch.setattr("covey.paper.experiments.runner.code_version", lambda module: "another")
    list(reproduce(["toy"], "full", tmp_path))
    assert [run.repeats for run in runs] == [3, 30, 30]


def test_the_version_of_a_table_is_that_of_everything_it_imports():
    names = {file.relative_to(ROOT).as_posix() for file in sources("covey.paper.experiments.fig9")}
    assert {f"paper/experiments/{name}.py" for name in ("fig9", "fig8", "drawing", "base")} <= names
    assert not {"paper/experiments/style.py", "paper/experiments/fig2.py", "cli.py"} & names
    names = {file.relative_to(ROOT).as_posix() for file in sources("covey.paper.experiments.fig12")}
    assert {"paper/baselines/proximal.py", "paper/dynamics/kernels.py", "groups/partition.py", "validation.py"} <= names
    assert not any(name.startswith(("report/", "estimators/", "paper/report/")) for name in names)
    assert code_version("covey.paper.experiments.fig2") != code_version("covey.paper.experiments.fig3")
    assert look_version("covey.paper.experiments.fig2") != code_version("covey.paper.experiments.fig2")


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
    with watched(lambda done, total: progress.append((done, total))):
        assert each(abs, [-3, 2, -1], 1) == [3, 2, 1]
    assert progress == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("backend", ["sequential", "threading", "multiprocessing", "loky"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_repeats_run_on_any_backend(backend):
    offset = 10
    with parallel_config(backend=backend):
        assert each(lambda i: i + offset, [1, 2, 3], 2) == [11, 12, 13]


def counted(folder, value):
    """A task that counts its runs in a file."""
    with open(os.path.join(folder, "calls"), "a") as calls:
        calls.write("x")
    return [{"value": value, "square": value**2}]


def test_cache_resumes_and_survives_damage(tmp_path):
    calls = tmp_path / "calls"
    tasks = [{"folder": str(tmp_path), "value": v} for v in range(4)]
    cache = tmp_path / "cache"
    progress = []
    with resumable(cache), watched(lambda done, total: progress.append((done, total))):
        first = run_tasks(counted, tasks[:3])
        assert [row["square"] for row in first] == [0, 1, 4]
        assert len(calls.read_text()) == 3
        # only the new task runs
        assert run_tasks(counted, tasks)[:3] == first
        assert len(calls.read_text()) == 4
        # a file cut off in the middle is computed again
        broken = next((cache / "counted").glob("*.json"))
        broken.write_text(broken.read_text()[:10])
        assert len(run_tasks(counted, tasks)) == 4
        assert len(calls.read_text()) == 5
    assert progress[2] == (3, 3)
    assert not list((cache / "counted").glob("*.part"))
