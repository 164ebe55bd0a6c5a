"""Designs at scale: `python benchmarks/scale.py --case sparse|memmap|dask|torch [--gib 1] [--save]`.

Each case is a file of its own, `benchmarks/scale_CASE.py`, with its goals, and has a function `run` that returns what
it measured. With --save the figures, and the machine they came from, go into `benchmarks/results/scale-CASE.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from importlib import import_module
from pathlib import Path

import numpy as np

from covey import __version__

CASES = ("sparse", "memmap", "dask", "torch")
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", choices=CASES, required=True)
    parser.add_argument("--save", action="store_true", help="keep the figures in benchmarks/results/")
    parser.add_argument("--gib", type=float, help="size of X, for memmap (by default 8) and dask (4)")
    args = parser.parse_args()
    size = {} if args.gib is None else {"gib": args.gib}
    measured = import_module(f"scale_{args.case}").run(**size)
    record = {
        "case": args.case, "covey": __version__, "numpy": np.__version__, "python": platform.python_version(),
        "cores": os.cpu_count(), "load average at the end": round(os.getloadavg()[0], 1), "measured": measured,
    }  # fmt: skip
    text = json.dumps(record, indent=1)
    print(text)
    if args.save:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"scale-{args.case}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
