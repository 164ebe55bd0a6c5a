"""Whether answers depend on the processor: ``python benchmarks/processors.py --seeds 5``.

The same fits run under several kernels of OpenBLAS and numbers of threads; a fit fails where other groups are selected
or a coefficient differs by more than 1e-6 of the largest. Data have ties, repeated and dependent columns, and no noise,
weak or strong noise.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def main() -> int:
    """Compare; the number of fits that depend on the processor."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from processor_fits import RESPONSES
    from processors import PROCESSORS, largest_differences

    parser = argparse.ArgumentParser(prog="processors", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=100, help="the first seed")
    parser.add_argument("--responses", nargs="*", default=list(RESPONSES), choices=RESPONSES)
    given = parser.parse_args()
    print("processors:", ", ".join(f"{kernel} with {threads} threads" for kernel, threads in PROCESSORS))
    failed = 0
    for response in given.responses:
        found = largest_differences(given.first, given.first + given.seeds, [response], PROCESSORS)
        bad = {fit: apart for fit, apart in found.items() if apart > 1e-6}
        failed += len(bad)
        rest = max((apart for apart in found.values() if apart <= 1e-6), default=0.0)
        print(f"{response}: {len(found)} fits, {len(bad)} depend on the processor, the others by {rest:.1g} at most")
        for fit, apart in bad.items():
            print(f"  {fit}: {'other groups' if apart == float('inf') else f'{apart:.1g}'}")
    return failed


if __name__ == "__main__":
    sys.exit(min(main(), 1))
