"""The committed pictures of README and first page, made again from their example: `python docs/pictures.py`."""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib.pyplot as plt

HERE = Path(__file__).parent


def main() -> None:
    """Run the example and keep its figure."""
    plt.switch_backend("Agg")
    runpy.run_path(str(HERE.parent / "examples" / "plot_point.py"))
    plt.gcf().savefig(HERE / "images" / "point.png", dpi=150)


if __name__ == "__main__":
    main()
