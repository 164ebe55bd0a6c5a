"""Kill -9 and Ctrl-C at random moments of long work: a rerun goes on, and ends where an undisturbed one does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
@pytest.mark.parametrize("work", ["reproduction", "overwriting"])
def test_killed_work_is_taken_up_again(work, tmp_path):
    seed = 0  # tools/robustness.py has others
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("interrupts.py")), work, str(tmp_path), str(seed)],
        env={**os.environ, **threads, "PYTHONPATH": os.pathsep.join(sys.path), "MPLBACKEND": "Agg"},
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, f"seed {seed}\n{done.stdout}\n{done.stderr}"
    assert "the same to the last bit" in done.stdout
