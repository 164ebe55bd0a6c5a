"""`make demo`: which variables drive the progression of diabetes, each allowed any smooth shape."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from covey.datasets import load_diabetes_splines
from covey.estimators import GroupSparseRegressorCV
from covey.plots import CVCurveDisplay, GroupPathDisplay

OUT = Path("demo-output")


def main(out: Path = OUT) -> None:
    """Fit the cross-validated estimator on the diabetes data, print the summary and draw both pictures."""
    console = Console()
    data = load_diabetes_splines()
    console.print(
        f"[bold]covey[/bold]: {len(data.y)} patients, {data.groups.n_groups} variables, each expanded in B-splines "
        f"({data.X.shape[1]} columns). One group a variable: a variable enters whole or not at all."
    )
    model = GroupSparseRegressorCV(groups=data.groups, rule="1se").fit(data.X, data.y)
    model.summary()
    errors = model.mse_path_.mean(axis=1)
    chosen = errors[model.times_ == model.best_time_][0]
    console.print(
        f"Cross-validated R^2 {1 - chosen / errors[0]:.3f} with {len(model.selected_groups_)} variables "
        f"(one-standard-error rule), {1 - errors.min() / errors[0]:.3f} at the least error."
    )
    out.mkdir(parents=True, exist_ok=True)
    for name, display in (("path", GroupPathDisplay), ("cross-validation", CVCurveDisplay)):
        picture = out / f"{name}.png"
        display.from_estimator(model).figure_.savefig(picture, dpi=150)
        console.print(f"Picture: {picture}")


if __name__ == "__main__":
    main()
