"""Kill -9 and Ctrl-C at random moments of long work: a rerun goes on, and ends where an undisturbed one does."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from covey import GroupSparseRegressorCV
from covey.datasets import make_group_sparse


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
@pytest.mark.parametrize("work", ["cross-validation", "stability", "reproduction"])
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
    from covey.stopping import folds

    data = make_group_sparse(60, 60, 3, active=2, random_state=0)
    honest, runs = folds._run_fold, []
    monkeypatch.setattr(folds, "_run_fold", lambda *args: runs.append(1) or honest(*args))

    def fit(y=data.y, **settings):
        runs.clear()
        settings = {"cv": 3, "checkpoint": tmp_path / "folds", **settings}
        return GroupSparseRegressorCV(3, **settings).fit(data.X, y)

    plain = fit(checkpoint=None)
    first, of_all = fit(), len(runs)
    assert of_all >= 3
    again = fit()
    assert not runs
    for model in (first, again):
        np.testing.assert_array_equal(model.coef_, plain.coef_)
        np.testing.assert_array_equal(model.mse_path_, plain.mse_path_)
    # other data and other settings are other work; which rule reads the errors is not
    fit(y=data.y * (1 + 1e-12))
    assert runs
    fit(init_scale=1e-5)
    assert runs
    fit(rule="1se")
    assert not runs
    next((tmp_path / "folds").rglob("*.json")).write_text("{")
    fit()
    fit(y=data.y * (1 + 1e-12))
    assert fit(init_scale=1e-5).coef_ is not None


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    data = make_group_sparse(60, 60, 3, active=2, random_state=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="checkpoint must be a folder that can be written to"):
        GroupSparseRegressorCV(3, checkpoint=tmp_path / "file").fit(data.X, data.y)
