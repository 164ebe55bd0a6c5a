"""``covey demo`` and ``make demo``: what is LDL cholesterol computed from? A raw table of nine variables.

In these blood samples LDL was not measured but computed by Friedewald's formula (1972): total cholesterol minus HDL
minus a fifth of the triglycerides. The table has the logarithm of triglycerides, so the effect is not linear, and covey
does not know which measurements enter.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from covey.cli.console import complaints, progress_bar
from covey.cli.options import to
from covey.settings import FitSettings

# Names of the columns, from scikit-learn's description of the table.
NAMES = {
    "bp": "blood_pressure", "s1": "cholesterol", "s2": "ldl", "s3": "hdl", "s4": "cholesterol_ratio",
    "s5": "log_triglycerides", "s6": "glucose",
}  # fmt: skip
# The table calls them 1 and 2, without saying which is which.
SEXES = {1.0: "first", 2.0: "second"}
TRUTH = "The truth: LDL was computed, by Friedewald's formula, as cholesterol - hdl - exp(log_triglycerides) / 5."


def demo(
    out: Annotated[Path, to("DIR", "The folder to write.")] = Path("covey-demo"),
) -> None:
    """Show what covey does, on bundled data: what is LDL cholesterol computed from?

    The table has nine other variables of 442 people. LDL was computed from three
    of them, one of them curved, but covey does not know which. Writes the table,
    fits it as it is, prints what matters and how well the model predicts next to
    a lasso and a ridge, and shows the command that does the same. It works
    offline and takes a few seconds.

    \b
    Examples:
      covey demo
      covey demo --out somewhere
    """
    with complaints():
        from covey.cli.fit import print_fit
        from covey.workflow.fit import fit_table
        from covey.workflow.folder import check_out, write_fit

        file = out / "blood.csv"
        check_out(out / "fit", overwrite=True)
        _write_table(file)
        with progress_bar():
            result = fit_table(FitSettings((str(file),), ("ldl",)))
            write_fit(result, out / "fit", overwrite=True)
        print_fit(result, out / "fit")
        typer.echo(f"{TRUTH}\nThe table: {file}. To do the same by hand:\n  covey fit {file} --target ldl")


def _write_table(file: Path) -> None:
    from sklearn.datasets import load_diabetes

    from covey.files import write_atomically

    table = load_diabetes(as_frame=True, scaled=False).data.rename(columns=NAMES)
    content = table.assign(sex=table["sex"].map(SEXES)).to_csv(index=False).encode()
    if file.exists() and file.read_bytes() != content:
        raise FileExistsError(f"{file} is another table; choose another folder with --out.")
    write_atomically(file, content)
