"""`make demo`: the paper's first problem, which groups wake up and when, and a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from covey.datasets import make_group_sparse
from covey.dynamics import normalized_descent
from covey.plots import TrajectoryDisplay

OUT = Path("demo-output")


def main(out: Path = OUT) -> None:
    """Simulate, run Algorithm 2, print and draw."""
    console = Console()
    data = make_group_sparse(150, 300, 3, values=np.arange(5.0, 14.0), sigma=0.5, random_state=0)
    console.print(
        "[bold]covey[/bold]: 150 rows, 300 columns in 100 groups of 3; three groups carry signal (entries 5 to 13)."
    )
    path = normalized_descent(
        data.X, data.y, data.groups, direction_step="auto", switch=0.01, n_steps=1500, w_star=data.w_star
    )
    truth, oracle = data.groups.norms(data.w_star), data.oracle()
    table = Table("group", "woke up at", "norm found", "true norm", title="Groups in the order in which they woke up")
    for l, t in path.woke():
        table.add_row(str(l), f"{t:g}", f"{path.group_norms[-1, l]:.2f}", f"{truth[l]:.2f}")
    console.print(table)
    assert path.error is not None
    console.print(f"Directions settled at iteration {path.switch}; the smaller direction step took over (Algorithm 2).")
    console.print(f"Squared error at the last iterate:        {path.error[-1]:.4f}")
    console.print(f"Least squares on the true groups:         {np.sum((oracle - data.w_star) ** 2):.4f}")
    console.print(f"Least squares on all columns (min. norm): {_minimum_norm_error(data.X, data.y, data.w_star):.1f}")
    out.mkdir(parents=True, exist_ok=True)
    picture = out / "trajectory.png"
    TrajectoryDisplay.from_path(path, w_star=data.w_star).figure_.savefig(picture, dpi=150)
    console.print(f"Picture: {picture}")


def _minimum_norm_error(X: np.ndarray, y: np.ndarray, w_star: np.ndarray) -> float:
    return float(np.sum((np.linalg.lstsq(X, y, rcond=None)[0] - w_star) ** 2))


if __name__ == "__main__":
    main()
