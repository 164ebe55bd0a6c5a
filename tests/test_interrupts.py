"""Kill -9 and Ctrl-C at random moments of long work: a rerun goes on, and ends where an undisturbed one does."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from covey.datasets import make_group_sparse
from covey.selection import network_time
from covey.stopping import PathTask


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
@pytest.mark.parametrize("work", ["cross-validation", "reproduction", "overwriting"])
def test_killed_work_is_taken_up_again(work, tmp_path):
    seed = int.from_bytes(os.urandom(3), "big")
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("interrupts.py")), work, str(tmp_path), str(seed)],
        env={**os.environ, **threads, "PYTHONPATH": os.pathsep.join(sys.path), "MPLBACKEND": "Agg"},
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, f"seed {seed}\n{done.stdout}\n{done.stderr}"
    assert "the same to the last bit" in done.stdout


def test_finished_folds_are_used_again(tmp_path, monkeypatch):
    data = make_group_sparse(60, 60, 3, active=2, random_state=0)
    honest, runs = network_time._run_fold, []
    monkeypatch.setattr(network_time, "_run_fold", lambda *args, **own: runs.append(1) or honest(*args, **own))

    def choose(y=data.y, rule="min", checkpoint=tmp_path / "folds", **options):
        runs.clear()
        task = PathTask(data.X, y, data.groups, np.ones(60), options)
        return network_time.choose_by_folds(task, task.design.folds(3, y, None), rule, checkpoint=checkpoint)

    plain = choose(checkpoint=None)
    first, of_all = choose(), len(runs)
    assert of_all >= 3
    again = choose()
    assert not runs
    for choice in (first, again):
        np.testing.assert_array_equal(choice.model[0], plain.model[0])
        np.testing.assert_array_equal(choice.scores, plain.scores)
    # other data and other settings are other work; which rule reads the errors is not
    choose(y=data.y * (1 + 1e-12))
    assert runs
    choose(init_scale=1e-5)
    assert runs
    choose(rule="1se")
    assert not runs
    # a damaged file is work to be done again
    for file in (tmp_path / "folds").rglob("*.json"):
        file.write_text("{")
    np.testing.assert_array_equal(choose().scores, plain.scores)
    assert len(runs) == of_all


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    data = make_group_sparse(60, 60, 3, active=2, random_state=0)
    (tmp_path / "file").write_text("")
    task = PathTask(data.X, data.y, data.groups, np.ones(60))
    with pytest.raises(ValueError, match="checkpoint must be a folder that can be written to"):
        network_time.choose_by_folds(task, task.design.folds(3, data.y, None), checkpoint=tmp_path / "file")
