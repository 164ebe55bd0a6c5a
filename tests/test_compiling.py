"""An installation that cannot be written to, without a cache of the user's own: everything works, nothing is said."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
from covey.compiling import njit

@njit(cache=True)
def twice(x):
    return 2 * x

if __name__ == "__main__":
    print(twice(21.0), type(twice._cache).__name__)
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a folder is needed in which nothing can be made")
@pytest.mark.parametrize(("writable", "cache"), [(False, "NullCache"), (True, "FunctionCache")])
def test_functions_are_compiled_without_a_place_to_keep_them(tmp_path, writable, cache):
    (tmp_path / "module.py").write_text(CODE)
    if not writable:
        (tmp_path / "__pycache__").touch()  # a file where numba would make its folder
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME"), "/proc/none")
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | nowhere
    done = subprocess.run(
        [sys.executable, "-W", "error", str(tmp_path / "module.py")], capture_output=True, text=True,
        env={**environment, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (f"42.0 {cache}\n", "")
