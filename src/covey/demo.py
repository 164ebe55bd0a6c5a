"""`covey demo` and `make demo`: what is LDL cholesterol computed from? A raw table of nine variables.

In these blood samples LDL was not measured but computed by Friedewald's formula (1972): total cholesterol minus HDL
minus a fifth of the triglycerides. The table has the logarithm of triglycerides, so the effect is not linear, and covey
does not know which measurements enter.
"""

from __future__ import annotations

from pathlib import Path

from sklearn.datasets import load_diabetes

from covey.files import write_atomically
from covey.settings import FitSettings
from covey.workflow import Fit, check_out, fit_table, write_fit
from covey.workflow.problem import Show, show_nothing

__all__ = ["COMMAND", "TRUTH", "run"]

# Names of the columns, from scikit-learn's description of the table.
NAMES = {
    "bp": "blood_pressure",
    "s1": "cholesterol",
    "s2": "ldl",
    "s3": "hdl",
    "s4": "cholesterol_ratio",
    "s5": "log_triglycerides",
    "s6": "glucose",
}
# The table calls them 1 and 2, without saying which is which.
SEXES = {1.0: "first", 2.0: "second"}
TRUTH = "The truth: LDL was computed, by Friedewald's formula, as cholesterol - hdl - exp(log_triglycerides) / 5."
COMMAND = "covey fit {out}/blood.csv --target ldl"


def run(out: Path, show: Show = show_nothing) -> Fit:
    """Write the table to ``out/blood.csv`` and its fit to ``out/fit``."""
    check_out(out / "fit", overwrite=True)
    table = load_diabetes(as_frame=True, scaled=False).data.rename(columns=NAMES)
    file, content = out / "blood.csv", table.assign(sex=table["sex"].map(SEXES)).to_csv(index=False).encode()
    if file.exists() and file.read_bytes() != content:
        raise FileExistsError(f"{file} is another table; choose another folder with --out.")
    write_atomically(file, content)
    fit = fit_table(FitSettings((str(file),), ("ldl",)), show)
    show("writing")
    write_fit(fit, out / "fit", overwrite=True)
    return fit
