"""One script of R on some tables: what people in R would run is run by R, and its own clock times it.

Packages are looked for where R keeps them and in the folder that R_LIBS names.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from .problem import CannotRunError

LIMIT = 240  # seconds


def run_r(script: str, tables: dict[str, pd.DataFrame], limit: float = LIMIT) -> np.ndarray:
    """Run a script that reads NAME.csv for every table and writes numbers, one a line, to out.txt."""
    if shutil.which("Rscript") is None:
        raise CannotRunError("R is not on this machine")
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        for name, table in tables.items():
            table.to_csv(at / f"{name}.csv", index=False)
        (at / "script.R").write_text(script)
        command = ["Rscript", "script.R"]
        try:
            done = subprocess.run(command, cwd=at, capture_output=True, text=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            raise CannotRunError(f"more than {limit:.0f} seconds") from None
        if done.returncode:
            raise CannotRunError((done.stderr.strip().splitlines() or ["no message"])[-1])
        return np.loadtxt(at / "out.txt", ndmin=1)
