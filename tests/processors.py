"""The same fits in processes with other kernels of OpenBLAS and other numbers of threads."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from processor_fits import difference

__all__ = ["PROCESSORS", "largest_differences"]

# Kernels for processors with and without wide registers, and threads; kernels that this processor lacks fall back.
PROCESSORS = (("Haswell", 1), ("Prescott", 1), ("SkylakeX", 2), ("Nehalem", 2))

FITS = Path(__file__).with_name("processor_fits.py")


def largest_differences(first: int, last: int, kinds: Sequence[str], processors: Sequence[Any]) -> dict[str, float]:
    """Per fit the largest difference to the first processor's answer, relative to its largest coefficient."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        runs = []
        for kernel, threads in processors:
            out = Path(folder) / f"{kernel}-{threads}.npz"
            environment = os.environ | {
                "OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads),
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            }  # fmt: skip
            command = [sys.executable, str(FITS), str(out), str(first), str(last), *kinds]
            runs.append((out, subprocess.Popen(command, env=environment)))
        for out, run in runs:
            if run.wait():
                raise RuntimeError(f"The fits of {out.stem} failed.")
            with np.load(out) as answers:
                found.append(dict(answers))
    apart = [difference(found[0], other) for other in found[1:]]
    return {fit: max(own[fit] for own in apart) for fit in apart[0]}
