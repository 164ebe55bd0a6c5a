"""Fits under random constraints, of every loss and rule, on columns that repeat others or have very different lengths.

Every model that is judged, every model of a path or a fold, and the one that is returned keep them to 1e-12.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from covey import Groups
from covey.losses import MultiQuantile, Quantile
from covey.search.cleaned import Cleaned
from covey.selection import Folds, Size
from fuzz.invariances import DESIGNS, LOSSES, Rng, estimator, response

Array = NDArray[np.float64]
Inequalities = list[tuple[Array, Array]]

KEPT = 1e-12

KINDS = (*(loss for loss in LOSSES if loss != "multinomial"), "quantile 0.9", "two quantiles")

SHAPES = {"increasing": (1, 1.0), "decreasing": (1, -1.0), "convex": (2, 1.0), "concave": (2, -1.0)}


def columns(rng: Rng, n: int, p: int) -> Any:
    """Columns of some kind: with a common factor, copies of others, or lengths between 1e-4 and 1e4."""
    X = DESIGNS[str(rng.choice(["gaussian", "binary", "one-hot", "integers"]))](rng, n, p)
    way = rng.integers(4)
    if way == 1:
        X = X + 3 * rng.standard_normal((n, 1))
    elif way == 2:
        X[:, p // 2 :] = X[:, : p - p // 2] * rng.choice([1.0, -1.0, 1 + 1e-9])
    elif way == 3:
        X = X * 10.0 ** rng.uniform(-4, 4, p)
    return X


def draw(rng: Rng, groups: Groups, several: bool) -> tuple[dict[Any, Any], Inequalities]:
    """Constraints of some groups, and the inequalities ``A b >= low`` on the columns that they mean."""
    given, found, p = dict[Any, Any](), Inequalities(), groups.n_columns
    for l in range(groups.n_groups):
        unit = np.eye(p)[groups.members[groups.starts[l] : groups.starts[l + 1]]]
        wanted: list[Any] = []
        if rng.random() < 0.6:
            wanted.append(str(rng.choice([">=0", "<=0"])))
        elif not several and rng.random() < 0.4:
            low, high = -rng.choice([0.0, 0.3, 1e-6]), rng.choice([0.1, 1.0, 1e-5])
            wanted.append((float(low), float(high)))
        if len(unit) > 2 and rng.random() < 0.4:
            wanted.append(str(rng.choice(list(SHAPES))))
        if wanted:
            given[groups.names[l]] = wanted if len(wanted) > 1 else wanted[0]
        for one in wanted:
            if one in SHAPES:
                times, sign = SHAPES[one]
                A = sign * np.diff(unit, times, axis=0)
                found.append((A, np.zeros(len(A))))
            else:
                low, high = {">=0": (0.0, np.inf), "<=0": (-np.inf, 0.0)}.get(one, one)
                found += [(unit, np.full(len(unit), low))] if np.isfinite(low) else []
                found += [(-unit, np.full(len(unit), -high))] if np.isfinite(high) else []
    return given, found


def broken(coefs: Any, inequalities: Inequalities) -> float:
    """By how much models break an inequality at most, relative to the size of its terms but at least one unit of it."""
    B, worst = np.asarray(coefs, dtype=float), 0.0
    for A, low in inequalities:
        size = np.maximum(np.abs(B) @ np.abs(A).T, np.abs(low))
        off = low - B @ A.T
        worst = max(worst, float((off / np.where(size > 0, size, 1.0)).max(initial=0.0)))
    return worst


@contextmanager
def judged(n_columns: int, models: list[Array]) -> Iterator[None]:
    """Collect the models that are scored."""
    scored = Cleaned.scored.__func__  # type: ignore[attr-defined]

    def watched(cls: Any, recipes: Any, training: Any) -> Any:
        round_ = training.rounds[recipes[0].round]
        for i in {round_.place[recipe] for recipe in recipes}:
            at, coef, _ = training.posed.to_user(round_.groups, round_.W[i], round_.levels[i])
            full = np.zeros((len(coef), n_columns))
            full[:, at] = coef
            models.extend(full)
        return scored(cls, recipes, training)

    with patch.object(Cleaned, "scored", classmethod(watched)):
        yield


def verdict(seed: int) -> str:
    """What is wrong with the fit of a seed; nothing if all its models keep the constraints."""
    rng = np.random.default_rng(seed)
    kind, n, p = str(rng.choice(KINDS)), int(rng.choice([24, 40])), int(rng.choice([6, 12, 30]))
    loss = "quantile" if "quantile" in kind else kind
    X = columns(rng, n, p)
    y = response(loss, X / np.maximum(np.abs(X).max(axis=0), 1e-300), rng)
    groups = Groups.from_size(int(rng.choice([1, 3, 6])), p)
    always = rng.choice(groups.n_groups, int(rng.integers(2) and groups.n_groups > 1), replace=False).tolist()
    given, inequalities = draw(rng, groups, several=loss == "two")
    options: dict[str, Any] = {
        "constraints": given, "rule": str(rng.choice(["select", "predict"])),
        "selection": [Folds(3, deals=1), 3, "holdout", "ebic", Size(2)][rng.integers(5)],
        "always": [groups.names[l] for l in always],
    }  # fmt: skip
    if loss != "cox" and rng.random() < 0.3:
        options["standardize"] = [False, "column"][rng.integers(2)]
    options |= {"ties": "efron"} if loss == "cox" else {}
    words = f"{kind}, {n} rows, {p} columns, groups of {groups.sizes[0]}, {options}"
    model, models = estimator(loss, groups, **options), list[Array]()
    if kind == "quantile 0.9":
        model.set_params(loss=Quantile(0.9))
    elif kind == "two quantiles":
        model.set_params(loss=MultiQuantile([0.2, 0.8]))
    if not given:
        return ""
    weight = rng.integers(1, 4, n) if rng.random() < 0.3 else None
    with warnings.catch_warnings(), judged(p, models):
        warnings.simplefilter("ignore")
        try:
            model.fit(X, y, sample_weight=weight)
        except ValueError as error:
            return "" if "constant" in str(error) or "class" in str(error) else f"{error}\n  {words}"
        parts = {"returned": np.atleast_2d(model.coef_), "judged": np.array(models).reshape(-1, p)}
        parts["path"] = np.asarray(model.path_.coefs.todense()).reshape(-1, p)
        if getattr(model, "held_out_", None) is not None:
            parts["held out"] = np.asarray(model.held_out_.coefs.todense()).reshape(-1, p)
    for what, coefs in parts.items():
        if not np.isfinite(coefs).all():
            return f"{what}: not finite\n  {words}"
        off = broken(coefs, inequalities)
        if off > KEPT:
            return f"{what}: broken by {off:.2g}\n  {words}"
    return ""
