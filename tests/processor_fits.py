"""Fits whose answers must not depend on the processor: data with ties and exact dependence, written to a file.

``python tests/processor_fits.py OUT.npz FIRST LAST`` makes the fits of some seeds in a process of its own, so that the
kernels of the linear algebra library can be chosen before it is loaded (`tests/estimators/test_processors.py`,
`tools/robustness.py`).
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from covey import Groups, GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor

__all__ = ["DESIGNS", "difference", "fits", "problem"]

Rng = np.random.Generator


def _product(A: Any, B: Any) -> Any:
    """``A B`` without the library whose kernels are compared: the data are the same to the last bit."""
    return np.einsum("ij,jk->ik", A, B, optimize=False)


def _gaussian(rng: Rng) -> tuple[Any, Groups]:
    return rng.standard_normal((70, 60)), Groups.from_size(3, 60)


def _integers(rng: Rng) -> tuple[Any, Groups]:
    return rng.integers(-1, 2, (70, 60)).astype(float), Groups.from_size(3, 60)


def _factorial(rng: Rng) -> tuple[Any, Groups]:
    """All products of six two-level settings: orthogonal columns, so that ties abound."""
    levels = np.array(np.meshgrid(*[[-1.0, 1.0]] * 6)).reshape(6, -1).T
    products = [levels[:, [j for j in range(6) if i >> j & 1]].prod(axis=1) for i in range(1, 49)]
    return np.array(products).T, Groups.from_size(2, 48)


def _categories(rng: Rng) -> tuple[Any, Groups]:
    """Every level of every category has a column, so that each group has one too many."""
    codes = rng.integers(0, 4, (80, 12))
    return (codes[:, :, None] == np.arange(4)).reshape(80, -1).astype(float), Groups.from_size(4, 48)


def _repeated(rng: Rng) -> tuple[Any, Groups]:
    """Every group twice."""
    X = rng.standard_normal((70, 30))
    return np.hstack([X, X]), Groups.from_size(3, 60)


def _dependent(rng: Rng) -> tuple[Any, Groups]:
    """Groups that are sums of two others."""
    X = rng.integers(-2, 3, (70, 36)).astype(float)
    sums = X[:, :18] + X[:, 18:]
    return np.hstack([X, sums]), Groups.from_size(3, 54)


def _low_rank(rng: Rng) -> tuple[Any, Groups]:
    """Fewer dimensions than a path has columns."""
    return _product(rng.standard_normal((80, 12)), rng.standard_normal((12, 60))), Groups.from_size(3, 60)


def _common(rng: Rng) -> tuple[Any, Groups]:
    """A factor that all columns share."""
    return rng.standard_normal((70, 90)) + 2 * rng.standard_normal((70, 1)), Groups.from_size(3, 90)


def _wide(rng: Rng) -> tuple[Any, Groups]:
    return rng.standard_normal((50, 1200)), Groups.from_size(4, 1200)


def _wide_repeated(rng: Rng) -> tuple[Any, Groups]:
    """Every group twice, and most groups out of sight."""
    X = rng.standard_normal((50, 600))
    return np.hstack([X, X]), Groups.from_size(4, 1200)


DESIGNS: dict[str, Callable[[Rng], tuple[Any, Groups]]] = {
    "gaussian": _gaussian, "integers": _integers, "factorial": _factorial, "categories": _categories,
    "repeated": _repeated, "dependent": _dependent, "low rank": _low_rank, "common": _common, "wide": _wide,
    "wide repeated": _wide_repeated,
}  # fmt: skip

NOISE = {"no noise": 0.0, "weak": 0.1, "strong": 2.0}

WAYS: dict[str, Callable[[], dict[str, Any]]] = {
    "folds": dict, "mean": lambda: {"rule": "predict"},
    "held out": lambda: {"selection": "holdout"}, "ebic": lambda: {"selection": "ebic"},
}  # fmt: skip

# Every estimator and loss; "two" has two responses, "cox" distinct times and "cox tied" few different ones.
RESPONSES: dict[str, Callable[..., Any]] = {
    "squared": GroupSparseRegressor, "binomial": GroupSparseClassifier,
    "poisson": partial(GroupSparseRegressor, loss="poisson"), "two": GroupSparseRegressor,
    "cox": GroupSparseCox, "cox tied": GroupSparseCox, "multinomial": GroupSparseClassifier,
    "ordinal": partial(GroupSparseClassifier, loss="ordinal"), "huber": partial(GroupSparseRegressor, loss="huber"),
    "quantile": partial(GroupSparseRegressor, loss="quantile"), "gamma": partial(GroupSparseRegressor, loss="gamma"),
    "negative-binomial": partial(GroupSparseRegressor, loss="negative-binomial"),
    "tweedie": partial(GroupSparseRegressor, loss="tweedie"),
}  # fmt: skip


def problem(design: str, noise: str, response: str, seed: int) -> tuple[Any, Any, Groups]:
    """X, y and the groups; four groups have an effect, of whole numbers so that exact ties stay exact."""
    rng = np.random.default_rng([seed, *map(ord, design + noise + response)])
    X, groups = DESIGNS[design](rng)
    lists = groups.lists()
    eta = np.zeros(len(X))
    for l in rng.choice(len(lists), 4, replace=False):
        eta += _product(X[:, lists[l]], rng.choice([-1.0, 1.0, 2.0], (len(lists[l]), 1)))[:, 0]
    spread = eta.std() or 1.0
    y = eta + NOISE[noise] * spread * rng.standard_normal(len(X))
    if response == "binomial":
        y = (y - np.median(y) > 0).astype(int)
    elif response in ("multinomial", "ordinal"):
        y = np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))
    elif response in ("poisson", "negative-binomial", "tweedie"):
        y = rng.poisson(np.exp(np.clip(y / spread, -3, 3))).astype(float)
    elif response == "gamma":
        y = np.exp(np.clip(y / spread, -3, 3)) * rng.gamma(2.0, size=len(X))
    elif response == "two":
        y = np.stack([y, eta[::-1] + y], axis=1)
    elif response.startswith("cox"):
        times = np.exp(-np.clip(y / spread, -3, 3)) * rng.exponential(size=len(X))
        y = np.column_stack([np.ceil(4 * times) if response == "cox tied" else times, rng.random(len(X)) < 0.7])
    return X, y, groups


def fits(first: int, last: int, kinds: Sequence[str] = ()) -> Iterator[tuple[str, Any]]:
    """Names and models, one per seed, which decides the response (of `kinds`), design, noise and way to choose."""
    for seed in range(first, last):
        rng = random.Random(seed)
        response, design, noise, way = (rng.choice(list(of)) for of in (kinds or RESPONSES, DESIGNS, NOISE, WAYS))
        X, y, groups = problem(design, noise, response, seed)
        yield f"{response}, {design}, {noise}, {way}, {seed}", RESPONSES[response](groups, **WAYS[way]()).fit(X, y)


def difference(one: dict[str, Any], other: dict[str, Any]) -> dict[str, float]:
    """Per fit how far two sets of answers are apart, relative to the largest coefficient; inf for other groups."""
    out = {}
    for name in one:
        if not name.endswith("|coef"):
            continue
        fit = name.removesuffix("|coef")
        if one[f"{fit}|groups"].tolist() != other[f"{fit}|groups"].tolist():
            out[fit] = np.inf
        else:
            # a null model's intercept may be rounding
            largest = float(np.abs(one[name]).max())
            out[fit] = float(np.abs(one[name] - other[name]).max()) / (largest if largest > 1e-9 else 1.0)
    return out


def main() -> None:
    """Write the answers of all fits to a file."""
    out, first, last, *kinds = sys.argv[1:]
    found = {}
    for name, model in fits(int(first), int(last), kinds):
        found[f"{name}|coef"] = np.concatenate([np.ravel(model.coef_), np.ravel(model.intercept_)])
        found[f"{name}|groups"] = np.array(sorted(model.selected_groups_))
    np.savez(out, **found)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    main()
