"""Cases for the fuzzer: a plain dictionary says what is built, so that a case can be kept, printed and shrunk.

Every field is chosen from a list; a case has only a few fields that are not harmless, so that most cases get past the
first check that could refuse them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from covey import (
    Groups,
    GroupSparseClassifier,
    GroupSparseRegressor,
    limit_path,
    stability_selection,
)
from covey.losses import Huber
from covey.selection import Discrepancy, Folds, HoldOut, InformationCriterion, Size

Case = dict[str, Any]
Choose = Callable[[list[Any]], Any]

SCALES = [1.0, 1e-150, 1e-100, 1e-30, 1e-8, 1e8, 1e30, 1e100, 1e150, "mixed"]

# field: harmless values (always drawn from), and odd ones (drawn for a few fields of a case)
FIELDS: dict[str, tuple[list[Any], list[Any]]] = {
    "call": (
        ["regressor", "regressor", "regressor", "regressor", "limit", "stability", "loss", "loss",
         "classifier", "classifier"],
        [],
    ),
    "n": ([20, 35, 50], [0, 1, 2, 3, 4, 7, 12]),
    "p": ([6, 12, 24], [1, 2, 3, 60, 150]),
    "x_kind": (
        ["array"],
        ["float32", "fortran", "strided", "frame", "list", "int", "bool", "object", "text", "complex", "sparse",
         "one-dimensional", "three-dimensional", "float16", "longdouble", "empty frame", "masked"],
    ),
    "x_scale": ([1.0], SCALES[1:]),
    "x_flaw": (
        ["none"],
        ["nan", "inf", "-inf", "constant", "all constant", "zero", "all zero", "duplicate", "all duplicate",
         "rank one groups", "equal rows", "large mean", "tiny spread", "nearly duplicate", "binary", "one-hot",
         "subnormal"],
    ),
    "y_kind": (
        ["signal"],
        ["noise", "exact", "constant", "zero", "integers", "booleans", "one value differs", "column", "two columns",
         "short", "nan", "inf", "text", "none", "list", "series", "orthogonal"],
    ),
    "y_scale": ([1.0], SCALES[1:-1]),
    "y_mean": ([0.0], [1e8, 1e-8]),
    "groups": (
        [3, "labels", "sizes"],
        [None, 1, 0, -2, 5, 10**9, True, 2.0, "text", "text labels", "shuffled labels", "mixed labels", "missing label",
         "float labels", "bool labels", "short labels", "lists", "overlapping lists", "lists with a gap", "far lists",
         "negative lists", "empty list", "overlap", "overlap all", "dictionary", "named dictionary", "one group",
         "series", "callable", "tuple labels", "numpy labels", "unequal"],
    ),
    "weight": (["none"], ["ones", "integers", "zero", "one row", "negative", "nan", "short", "huge", "tiny", "scalar"]),
    "selection": (
        [3, 5, "holdout", "ebic"],
        ["bic", "gcv", "discrepancy", 2, 40, 10**4, 0, -5, 1, 1.5, "never", None, "split", "odd split",
         "validation", "bad validation", "criterion", "odd criterion", "sigma", "odd sigma", "folds",
         "empty fold", "size", "size 0", "size 99", "odd size", True],
    ),
    "rule": (["select"], ["predict", "best", None]),
    "always": (["none"], ["first", "two", "all", "unknown", "text", "number"]),
    "group_weights": (["noise"], ["sqrt", None, "ones", "uneven", "zero", "short", "nan", "huge", "text", 2.0]),
    "standardize": (["group"], ["column", "block", False, True, None, "rows"]),
    "fit_intercept": ([True], [False]),
    "factors": (["auto"], [0, 1, 3, 40, -1, 1.5, "many"]),
    "loss": (
        ["poisson", "gamma", "huber", "binomial", "several"],
        ["squared", "multi-squared", "multinomial", "nonsense", None, "wide huber", "narrow huber", 3, "a class"],
    ),
    "domain": (["fitting"], ["as it is", "all zero", "all one", "rare"]),
    "labels": (
        ["two", "three"],
        ["text", "booleans", "floats", "one class", "one row of a class", "two rows of a class", "many", "separable",
         "a category", "none", "mixed"],
    ),
    "class_weight": (["none"], ["balanced", "dictionary", "zero", "unknown", "text"]),
    "offset": (["none"], ["zeros", "noise", "large", "huge", "nan", "short", "text", "columns", "scalar", "inf"]),
}  # fmt: skip


def make_case(choose: Choose, seed: int) -> Case:
    """A case of a few odd fields; `choose` picks one of a list."""
    odd_ones = {choose(sorted(FIELDS)) for _ in range(choose([0, 1, 1, 2, 2, 3, 4]))}
    return {"seed": seed} | {
        field: choose(odd if field in odd_ones and odd else plain) for field, (plain, odd) in FIELDS.items()
    }


# ---------------------------------------------------------------------- from words to data


def number(word: Any) -> Any:
    """JSON has no NaN to rely on."""
    return {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}.get(word, word) if isinstance(word, str) else word


def design(case: Case, rng: np.random.Generator) -> Any:
    """X before it is stored in its kind."""
    n, p, flaw = case["n"], case["p"], case["x_flaw"]
    X = rng.standard_normal((n, p))
    if n and p:
        j = int(rng.integers(p))
        if flaw in ("nan", "inf", "-inf"):
            X[rng.integers(n), j] = number(flaw)
        elif flaw == "constant":
            X[:, j] = 3.7
        elif flaw == "zero":
            X[:, j] = 0.0
        elif flaw.startswith("all "):
            X[:] = {"all constant": 3.7, "all zero": 0.0, "all duplicate": X[:, :1]}[flaw]
        elif flaw == "duplicate":
            X[:, j] = X[:, 0]
        elif flaw == "nearly duplicate":
            X[:, j] = X[:, 0] * (1 + 1e-13) + 1e-12 * X[:, -1]
        elif flaw == "rank one groups":
            X = np.repeat(X[:, ::3], 3, axis=1)[:, :p]
        elif flaw == "equal rows":
            X[:] = X[:1]
        elif flaw == "large mean":
            X += 1e12
        elif flaw == "tiny spread":
            X[:, j] = 1.0 + 1e-15 * X[:, j]
        elif flaw == "binary":
            X = (X > 0).astype(float)
        elif flaw == "one-hot":
            X = np.eye(p)[rng.integers(0, p, n)]
        elif flaw == "subnormal":
            X[:, j] = 5e-324
    scale = case["x_scale"]
    return X * (10.0 ** rng.integers(-150, 151, p) if scale == "mixed" else scale)


def stored(X: np.ndarray, kind: str) -> Any:
    """X in its kind of storage."""
    if kind == "strided":
        return np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
    if kind == "frame":
        return pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    if kind == "sparse":
        return sp.csr_array(X)
    if kind == "one-dimensional":
        return X.ravel()
    if kind == "three-dimensional":
        return X[None]
    if kind == "empty frame":
        return pd.DataFrame()
    if kind == "masked":
        return np.ma.masked_array(X, mask=X > 1)
    if kind == "list":
        return X.tolist()
    if kind == "fortran":
        return np.asfortranarray(X)
    kinds: dict[str, Any] = {"object": object, "text": str, "complex": complex, "int": np.int64}
    with np.errstate(all="ignore"):
        return X if kind == "array" else X.astype(kinds.get(kind, kind))


def response(case: Case, X: np.ndarray, rng: np.random.Generator) -> Any:
    """Y for the unscaled design."""
    n, kind = case["n"], case["y_kind"]
    with np.errstate(all="ignore"):
        size = np.abs(X).max(axis=0, initial=0.0)
        Z = np.nan_to_num(X / np.where(size > 0, size, 1.0))
    y = Z[:, : min(3, case["p"])].sum(axis=1)
    if kind != "exact":
        y = y + 0.3 * rng.standard_normal(n)
    if kind in ("noise", "two columns"):
        y = rng.standard_normal(n)
    y = {"constant": np.full(n, 2.5), "zero": np.zeros(n), "one value differs": np.eye(1, n)[0]}.get(kind, y)
    if kind == "orthogonal" and n:
        y = y - Z @ np.linalg.lstsq(Z, y, rcond=None)[0]
    y = (y + case["y_mean"]) * case["y_scale"]
    if kind in ("nan", "inf") and n:
        y[-1] = number(kind)
    with np.errstate(all="ignore"):
        return {
            "integers": lambda: np.round(np.clip(y, -1e9, 1e9)).astype(int), "booleans": lambda: y > 0,
            "column": lambda: y[:, None], "two columns": lambda: np.stack([y, y], axis=1), "short": lambda: y[:-1],
            "text": lambda: [f"y{v}" for v in y], "none": lambda: None, "list": y.tolist,
            "series": lambda: pd.Series(y),
        }.get(kind, lambda: y)()  # fmt: skip


def in_domain(case: Case, y: Any, rng: np.random.Generator) -> Any:
    """The response as the loss wants it, or nearly so."""
    if case["domain"] == "as it is" or not isinstance(y, np.ndarray) or y.dtype != float or y.ndim != 1 or not y.size:
        return y
    if case["domain"] in ("all zero", "all one"):
        return np.full(y.size, float(case["domain"] == "all one"))
    with np.errstate(all="ignore"):
        shown = np.clip(y / case["y_scale"], -20, 20)
        made: dict[Any, Callable[[], Any]] = {
            "poisson": lambda: np.floor(np.exp(shown) * max(case["y_scale"], 1.0)),
            "gamma": lambda: np.exp(shown) * case["y_scale"], "binomial": lambda: (shown > 0.3).astype(float),
            "several": lambda: np.stack([y, y[::-1], rng.standard_normal(y.size) * case["y_scale"]], axis=1),
            "multi-squared": lambda: np.stack([y, y[::-1]], axis=1),
        }  # fmt: skip
        found = made.get(case["loss"], lambda: y)()
    if case["domain"] == "rare" and found.ndim == 1:
        found[: found.size - 2] = found.min()
    return found


def labels_of(case: Case, y: Any, rng: np.random.Generator) -> Any:
    """Classes from a response."""
    word = case["labels"]
    if word == "none" or not isinstance(y, np.ndarray) or y.dtype != float or y.ndim != 1 or not y.size:
        return y
    n = y.size
    with np.errstate(all="ignore"):
        score = np.argsort(np.argsort(y + rng.standard_normal(n) * np.nanstd(y)))
    two, three = (score > n // 2).astype(int), np.minimum(3 * score // max(n, 1), 2)
    made: dict[str, Callable[[], Any]] = {
        "two": lambda: two, "three": lambda: three, "text": lambda: np.array(["a", "b", "c"])[three],
        "booleans": lambda: two > 0, "floats": lambda: 1.5 * three, "one class": lambda: np.zeros(n, dtype=int),
        "one row of a class": lambda: np.arange(n) // max(n - 1, 1),
        "two rows of a class": lambda: np.where(np.arange(n) < 2, 2, two),
        "many": lambda: np.arange(n) // 2, "separable": lambda: (np.argsort(np.argsort(y)) > n // 2).astype(int),
        "a category": lambda: pd.Categorical(np.array(["x", "y"])[two]),
        "mixed": lambda: np.array([0, "one"] * n, dtype=object)[:n],
    }  # fmt: skip
    return made[word]()


def offset_of(case: Case) -> Any:
    """What is passed as ``offset=``."""
    n, rng = case["n"], np.random.default_rng(case["seed"])
    shifts: dict[str, Any] = {
        "none": None, "zeros": np.zeros(n), "noise": 0.3 * rng.standard_normal(n), "large": np.linspace(-30, 30, n),
        "huge": np.full(n, 1e200), "nan": np.full(n, np.nan), "short": np.zeros(max(n - 1, 0)), "text": ["a"] * n,
        "columns": np.zeros((n, 3)), "scalar": 1.0, "inf": np.full(n, -np.inf),
    }  # fmt: skip
    return shifts[case["offset"]]


def groups_of(case: Case) -> Any:
    """What is passed as ``groups=``."""
    word, p = case["groups"], case["p"]
    if not isinstance(word, str):
        return word
    by_three = [int(j) // 3 for j in range(p)]
    lists = [list(range(a, min(a + 3, p))) for a in range(0, p, 3)]
    shuffled = np.random.default_rng(case["seed"]).permutation(by_three)
    made: dict[str, Callable[[], Any]] = {
        "text": lambda: "labels", "labels": lambda: by_three,
        "sizes": lambda: Groups.from_sizes([len(m) for m in lists]),
        "text labels": lambda: [f"g{l}" for l in by_three], "shuffled labels": shuffled.tolist,
        "numpy labels": lambda: shuffled, "mixed labels": lambda: [l if l % 2 else f"g{l}" for l in by_three],
        "missing label": lambda: [None, *by_three[1:]], "float labels": lambda: [float(l) for l in by_three],
        "bool labels": lambda: [l % 2 == 0 for l in by_three], "short labels": lambda: by_three[:-1],
        "tuple labels": lambda: tuple(by_three),
        "series": lambda: pd.Series(by_three, index=[f"c{j}" for j in range(p)]),
        "lists": lambda: lists, "overlapping lists": lambda: [*lists, [0]], "lists with a gap": lambda: lists[:-1],
        "far lists": lambda: [*lists, [p + 5]], "negative lists": lambda: [[-1], *lists],
        "empty list": lambda: [*lists, []],
        "overlap": lambda: Groups.from_lists([*lists, [0]], overlap=True),
        "overlap all": lambda: Groups.from_lists([list(range(p))] * 3, overlap=True),
        "dictionary": lambda: {f"g{l}": m for l, m in enumerate(lists)},
        "named dictionary": lambda: {f"g{l}": [f"c{j}" for j in m] for l, m in enumerate(lists)},
        "one group": lambda: [list(range(p))], "callable": lambda: lambda columns: [c[:2] for c in columns],
        "unequal": lambda: Groups.from_sizes([1, p - 1]),
    }  # fmt: skip
    return made[word]()


def weight_of(case: Case) -> Any:
    """What is passed as ``sample_weight=``."""
    n, word = case["n"], case["weight"]
    rng = np.random.default_rng(case["seed"])
    one = np.zeros(n)
    one[:1] = 1.0
    return {
        "none": None, "ones": np.ones(n), "integers": rng.integers(0, 4, n), "zero": np.zeros(n), "one row": one,
        "negative": -np.ones(n), "nan": np.full(n, np.nan), "short": np.ones(max(n - 1, 0)), "huge": np.full(n, 1e300),
        "tiny": np.full(n, 1e-300), "scalar": 2.0,
    }[word]  # fmt: skip


def weights_of(case: Case) -> Any:
    """What is passed as ``group_weights=``."""
    word, L = case["group_weights"], -(-case["p"] // 3)
    arrays = {"ones": np.ones(L), "uneven": np.geomspace(1e-3, 1e3, L), "zero": np.zeros(L), "short": np.ones(L + 1)}
    arrays |= {"nan": np.full(L, np.nan), "huge": np.full(L, 1e300)}
    return arrays.get(word, word) if isinstance(word, str) else word


def always_of(case: Case, groups: Any) -> Any:
    """What is passed as ``always=``."""
    word = case["always"]
    if word in ("none", "unknown", "text", "number"):
        return {"none": (), "unknown": ["no such group"], "text": "g1", "number": 3}[word]
    names = getattr(groups, "names", None) or list(range(-(-case["p"] // 3)))
    return {"first": names[:1], "two": names[:2], "all": names}[word]


def selection_of(case: Case, X: Any, y: Any) -> Any:
    """What is passed as ``selection=``."""
    n, word = case["n"], case["selection"]
    half = np.arange(n) % 2 == 0
    two = [(np.flatnonzero(half), np.flatnonzero(~half)), (np.flatnonzero(~half), np.flatnonzero(half))]
    made: dict[str, Callable[[], Any]] = {
        "split": lambda: HoldOut(0.4, random_state=0), "odd split": lambda: HoldOut(np.nan),
        "validation": lambda: HoldOut(validation=(X, y)),
        "bad validation": lambda: HoldOut(validation=([[1.0]], [1.0])),
        "criterion": lambda: InformationCriterion("ebic", gamma=0.5),
        "odd criterion": lambda: InformationCriterion("aic"),
        "sigma": lambda: Discrepancy(0.3, factor=1.2), "odd sigma": lambda: Discrepancy(-1.0),
        "folds": lambda: Folds(two),
        "empty fold": lambda: [(np.arange(n), np.empty(0, dtype=int))],
        "size": lambda: Size(2), "size 0": lambda: Size(0), "size 99": lambda: Size(99), "odd size": lambda: Size(-1),
    }  # fmt: skip
    return made[word]() if isinstance(word, str) and word in made else word


def run(case: Case) -> dict[str, Any]:
    """Build the case and make the call; arrays that must be finite, by name."""
    rng = np.random.default_rng(case["seed"])
    values = design(case, rng)
    X, y = stored(values, case["x_kind"]), response(case, values, rng)
    groups, weight = groups_of(case), weight_of(case)
    posed = {"standardize": number(case["standardize"]), "fit_intercept": case["fit_intercept"]}
    posed |= {"group_weights": weights_of(case)}
    if case["call"] == "limit":
        forced = {"always": always_of(case, groups), "factors": number(case["factors"])}
        path = limit_path(X, y, groups, sample_weight=weight, **posed, **forced)
        return {"coefs": path.coefs.data, "intercepts": path.intercepts, "norms": path.group_norms}
    if case["call"] == "stability":
        forced = {"always": always_of(case, groups), "factors": number(case["factors"])}
        found = stability_selection(X, y, groups, sample_weight=weight, n_pairs=2, random_state=0, **posed, **forced)
        return {"frequencies": found.frequencies, "bound": found.expected_false}
    options = {"selection": selection_of(case, X, y), "rule": case["rule"], **posed}
    options |= {"always": always_of(case, groups), "factors": number(case["factors"])}
    if case["call"] == "classifier":
        weights = {"none": None, "dictionary": {0: 2.0}, "zero": {0: 0.0, 1: 0.0}, "unknown": {"no such": 2.0}}
        word = case["class_weight"]
        y = labels_of(case, y, rng)
        options["selection"] = selection_of(case, X, y)
        model: Any = GroupSparseClassifier(groups, class_weight=weights.get(word, word), **options)
    else:
        if case["call"] == "loss":
            losses = {"several": "squared", "wide huber": Huber(1e9), "narrow huber": Huber(1e-9), "a class": Huber}
            word = case["loss"]
            options["loss"] = losses.get(word, word) if isinstance(word, str) else word
            y = in_domain(case, y, rng)
            options["selection"] = selection_of(case, X, y)
        model = GroupSparseRegressor(groups, **options)
    offset = offset_of(case) if case["call"] in ("loss", "classifier", "regressor") else None
    model.fit(X, y, weight, offset)
    coef = np.atleast_2d(model.coef_)
    assert coef.shape[1] == model.n_features_in_
    assert set(model.selected_groups_) == {model.groups_.names[l] for l in np.flatnonzero(model.group_norms_)}
    end = np.atleast_2d(model.path_.model(len(model.path_) - 1)[0])
    np.testing.assert_array_equal(end.astype(coef.dtype), coef)
    model.group_table()
    out = {"coef_": coef, "intercept_": model.intercept_, "group_norms_": model.group_norms_}
    if case["call"] == "classifier":
        assert set(model.predict(X)) <= set(model.classes_.tolist())
        chances = model.predict_proba(X, offset)
        np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-6)
        return out | {"chances": chances, "logarithms": model.predict_log_proba(X), "score": model.score(X, y)}
    return out | {"prediction": model.predict(X, offset), "score": model.score(X, y, offset=offset)}
