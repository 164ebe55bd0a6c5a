"""Effects beside the published examples of the R package hdm: growth, and the wages of women.

Growth: the effect of the initial income of 90 countries on their growth, with 60 controls. hdm selects the controls of
the response and of the treatment by the lasso with a penalty from theory (Belloni, Chen, Chernozhukov and Hansen,
2012), written here in a few lines, and refits: `lasso's controls` is `covey.evidence.effect` with the controls that
this lasso selects, and nothing to select. Everything but the selection is then the same method, apart from the standard
error: hdm's is HC1, covey's HC3. `effect` selects by itself.

Wages: sixteen effects of being a woman, alone and with other columns, in 29217 rows of 2012's CPS. hdm partials out the
lasso's controls from the response and from each column; covey has no such method: `lasso, partialled out` repeats it
here, and `effect` is asked for the sixteen columns together. With 116 columns on so many rows nothing has to be
selected: `all columns` is the ordinary regression.

    PYTHONPATH=src python benchmarks/hdm_examples.py FOLDER

FOLDER has GrowthData.rda and cps2012.rda, of the folder data of the GitHub repository cran/hdm. pip install rdata.
Nothing was decided on these data.
"""

from __future__ import annotations

import argparse
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.linear_model import Lasso

# The vignette "High-Dimensional Metrics in R": estimates with standard errors.
GROWTH = (-0.05001, 0.01579)
WAGES = {
    "female": (-0.154923, 0.050162), "female:widowed": (0.136095, 0.090663), "female:divorced": (0.136939, 0.022182),
    "female:separated": (0.023303, 0.053212), "female:nevermarried": (0.186853, 0.019942),
    "female:hsd08": (0.027810, 0.120914), "female:hsd911": (-0.119335, 0.051880), "female:hsg": (-0.012890, 0.019223),
    "female:cg": (0.010139, 0.018327), "female:ad": (-0.030464, 0.021806), "female:mw": (-0.001063, 0.019192),
    "female:so": (-0.008183, 0.019357), "female:we": (-0.004226, 0.021168), "female:exp1": (0.004935, 0.007804),
    "female:exp2": (-0.159519, 0.045300), "female:exp3": (0.038451, 0.007861),
}  # fmt: skip


def read(file: Path) -> pd.DataFrame:
    import rdata

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return next(iter(rdata.read_rda(file).values()))


def lasso_controls(X: np.ndarray, y: np.ndarray, slack: float = 1.1, rounds: int = 15) -> np.ndarray:
    """The columns that the lasso selects with a penalty per column that is just larger than the noise of its score."""
    n, p = X.shape
    X, y = X - X.mean(axis=0), y - y.mean()
    penalty = 2 * slack * np.sqrt(n) * stats.norm.ppf(1 - 0.1 / np.log(n) / (2 * p))
    first = np.argsort(-np.abs(np.corrcoef(X, y, rowvar=False)[-1, :-1]), kind="stable")[:5]
    left, chosen = y - X[:, first] @ np.linalg.lstsq(X[:, first], y)[0], np.empty(0, dtype=int)
    for k in range(rounds):
        noise = np.sqrt((X**2).T @ left**2 / n)
        lasso = Lasso(
            penalty / (2 * n) / (2 if k == 0 else 1), fit_intercept=False, precompute=True, tol=1e-10, max_iter=100_000
        )
        chosen = np.flatnonzero(lasso.fit(X / noise, y).coef_)
        before, left = left, y - X[:, chosen] @ np.linalg.lstsq(X[:, chosen], y)[0]
        if abs(left.std(ddof=1) - before.std(ddof=1)) < 1e-5:
            break
    return chosen


def partialled_out(X: np.ndarray, y: np.ndarray, j: int) -> tuple[float, float]:
    """The slope of what the lasso's controls leave of y on what they leave of a column, with its ordinary error."""
    others = np.delete(X, j, axis=1)
    left = []
    for one in (y, X[:, j]):
        A = np.column_stack([np.ones(len(X)), others[:, lasso_controls(others, one)]])
        left.append(one - A @ np.linalg.lstsq(A, one)[0])
    found = stats.linregress(left[1], left[0])
    return found.slope, found.stderr


def line(example: str, method: str, name: str, value: float, error: float, published: tuple[float, float]) -> str:
    away = abs(value - published[0]) / published[1]
    return (
        f"| {example} | {name} | {method} | {value:.5f} | {error:.5f} | {published[0]:.5f} | {published[1]:.5f} "
        f"| {away:.2f} |"
    )


def growth(folder: Path) -> None:
    from covey.evidence import effect

    table = read(folder / "GrowthData.rda").astype(float)
    y = table["Outcome"].to_numpy()
    d = table["gdpsh465"]
    X = table.drop(columns=["Outcome", "intercept", "gdpsh465"])
    chosen = sorted({*lasso_controls(X.to_numpy(), y), *lasso_controls(X.to_numpy(), d.to_numpy())})
    names = list(X.columns[chosen])
    for method, controls, always in (("lasso's controls", X[names], names), ("effect", X, ())):
        found = effect(controls.assign(gdpsh465=d), y, of="gdpsh465", always=always)
        print(line("growth", method, "gdpsh465", found.estimates[0], found.standard_errors[0], GROWTH), flush=True)


def wages(folder: Path) -> None:
    from covey.evidence import effect

    table = read(folder / "cps2012.rda").astype(float)
    others = [name.removeprefix("female:") for name in list(WAGES)[1:]]
    columns = {"female": table["female"], **{name: table[name] for name in others}}
    columns |= {f"female:{name}": table["female"] * table[name] for name in others}
    columns |= {f"{a}:{b}": table[a] * table[b] for a, b in combinations(others, 2)}
    X, y = pd.DataFrame(columns), table["lnw"].to_numpy()
    X = X.loc[:, X.var() > 0]
    A = np.column_stack([X, np.ones(len(X))])
    coef = np.linalg.lstsq(A, y)[0]
    inverse = np.linalg.pinv(A.T @ A)
    scores = (A * (y - A @ coef)[:, None]) @ inverse * np.sqrt(len(A) / (len(A) - A.shape[1]))
    errors = dict(zip(X, np.sqrt((scores**2).sum(axis=0)), strict=False))
    every = dict(zip(X, coef, strict=False))
    found = effect(X, y, of=list(WAGES))
    ours = dict(zip(WAGES, zip(found.estimates, found.standard_errors, strict=True), strict=True))
    for name, published in WAGES.items():
        again = partialled_out(X.to_numpy(), y, X.columns.get_loc(name))
        print(line("wages", "lasso, partialled out", name, *again, published))
        print(line("wages", "effect", name, *ours[name], published))
        print(line("wages", "all columns", name, every[name], errors[name], published))
    away = max(abs(ours[name][0] - every[name]) / errors[name] for name in WAGES)
    print(f"\nWages: effects are at most {away:.2f} standard errors from those of all columns.", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    print("| example | column | method | effect | standard error | published | its error | away, in its errors |")
    print("| --- " * 8 + "|")
    growth(folder)
    wages(folder)


if __name__ == "__main__":
    main()
