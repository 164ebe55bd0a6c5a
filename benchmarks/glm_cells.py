"""Problems that join the suite: classes, counts and several responses, simulated; and the variants of abess.

    .venv-bench/bin/python benchmarks/run_suite.py --join benchmarks/glm_cells.py --only --problems binomial

The error is the excess of the expected deviance over the true model's on 4000 fresh rows (several responses: mean
squared error of the means). Settings were decided on seeds 0 to 4. What they print is in `results/glm.md`.

Groups of five columns, five of them active, coefficients standard normal times the signal; columns are independent or
autoregressive with 0.8 between neighbours. Counts have linear predictors of standard deviation 1 or 0.5 instead, for
exp(5) would be a count of hundreds; several responses have noise of variance 5 around a signal of variance 25.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from suite.families import FAMILIES
from suite.paths import abess_model, abess_sizes, adelie, by
from suite.problem import Fit, Problem, folds
from suite.problems import autoregressive

N_TEST = 4000
SIZE, ACTIVE = 5, 5


@dataclass(frozen=True)
class Cell:
    """One kind of simulated problem."""

    family: str
    n: int
    p: int
    rho: float
    signal: float

    def __str__(self) -> str:
        return f"{self.family} {self.n}x{self.p} {f'AR({self.rho:g})' if self.rho else 'iid'} signal {self.signal:g}"


SHAPES = (
    ("binomial", 500, 2000), ("binomial", 500, 10_000), ("poisson", 500, 2000), ("multinomial", 500, 2000),
    ("several", 300, 1000),
)  # fmt: skip
CELLS = {
    str(cell): cell
    for cell in (Cell(*shape, rho, signal) for shape in SHAPES for rho in (0.0, 0.8) for signal in (1.0, 0.5))
}
OUTPUTS = {"multinomial": 3, "several": 5}


def drawn(rng: np.random.Generator, cell: Cell, eta: np.ndarray) -> np.ndarray:
    """Responses, given true linear predictors."""
    mean = FAMILIES[cell.family].mean(eta)
    if cell.family == "binomial":
        return (rng.random(len(eta)) < mean[:, 0]).astype(float)
    if cell.family == "multinomial":
        return np.minimum((rng.random((len(eta), 1)) > np.cumsum(mean, axis=1)).sum(axis=1), eta.shape[1] - 1)
    if cell.family == "poisson":
        return rng.poisson(mean[:, 0]).astype(float)
    return eta + np.sqrt(5.0) * rng.standard_normal(eta.shape)


def make_simulated(cell: Cell, seed: int) -> Problem:
    """Draw a problem of a cell; its error is the excess of the expected deviance over that of the true means."""
    rng = np.random.default_rng([seed, *str(cell).encode()])
    family, outputs = FAMILIES[cell.family], OUTPUTS.get(cell.family, 1)
    labels = np.repeat(np.arange(cell.p // SIZE), SIZE)
    X = autoregressive(rng, cell.n + N_TEST, cell.p, cell.rho)
    active = np.sort(rng.permutation(labels[-1] + 1)[:ACTIVE])
    columns = np.flatnonzero(np.isin(labels, active))
    eta = X[:, columns] @ rng.standard_normal((columns.size, outputs))
    eta *= cell.signal / eta.std() if cell.family == "poisson" else cell.signal
    y = drawn(rng, cell, eta)[: cell.n]
    error, fold_of = partial(family.excess, family.mean(eta[cell.n :])), folds(family, y, rng)
    return Problem(family, X[: cell.n], y, labels, X[cell.n :], error, fold_of, outputs=outputs, active=active)


def abess_itself(problem: Problem, **choice: Any) -> Fit:
    """Best subset of groups; abess chooses how many, by a criterion or, with `cv`, by everyone's folds."""
    used = problem.independent
    _, inside = np.unique(problem.labels[used], return_inverse=True)
    if "cv" in choice:
        choice["cv_score"] = "test_loss"  # its default for binary classes is the area under the curve
    sizes = abess_sizes(problem, len(problem.y))
    model = abess_model(problem)(support_size=sizes, group=inside, thread=1, **choice)
    folds = {"cv_fold_id": problem.fold_of} if "cv" in choice else {}
    model.fit(problem.X[:, used], problem.y, **folds)
    coef = np.zeros((problem.labels.size, problem.outputs))
    coef[used] = model.coef_.reshape(used.size, -1)
    return problem.linear(coef, model.intercept_)


PROBLEMS = {name: partial(make_simulated, cell) for name, cell in CELLS.items()}
METHODS = {
    "adelie raw": by(adelie),
    "abess cv": partial(abess_itself, cv=5),
    "abess gic": partial(abess_itself, ic_type="gic"),
    "abess ebic": partial(abess_itself, ic_type="ebic"),
}
