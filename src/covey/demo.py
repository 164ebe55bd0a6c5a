"""`covey demo` and `make demo`: which variables drive the progression of diabetes, each allowed any smooth shape."""

from __future__ import annotations

from pathlib import Path

from sklearn.datasets import load_diabetes

from covey.files import write_atomically
from covey.workflow import Fit, FitSettings, TableSettings, check_out, fit_table, write_fit
from covey.workflow.settings import Told, silent

__all__ = ["COMMAND", "run"]

SMOOTH = ("age", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6")
COMMAND = (
    "covey fit {out}/diabetes.csv --target progression --onehot sex --spline age --spline 'b*' --spline 's?' --rule 1se"
)


def run(out: Path, told: Told = silent) -> Fit:
    """Write the table to ``out/diabetes.csv`` and its fit to ``out/fit``."""
    check_out(out / "fit", overwrite=True)
    table = load_diabetes(as_frame=True, scaled=False).frame.rename(columns={"target": "progression"})
    file, content = out / "diabetes.csv", table.astype({"sex": int}).to_csv(index=False).encode()
    if file.exists() and file.read_bytes() != content:
        raise FileExistsError(f"{file} is another table; choose another folder with --out.")
    write_atomically(file, content)
    settings = FitSettings(
        TableSettings((str(file),), "progression", spline=SMOOTH, onehot=("sex",)), options={"rule": "1se"}
    )
    fit = fit_table(settings, told)
    told("writing")
    write_fit(fit, out / "fit", overwrite=True)
    return fit
