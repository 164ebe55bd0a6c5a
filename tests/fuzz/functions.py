"""The fuzzer of functions: calls that work, with one or two arguments replaced by hostile ones.

Every public function of groups, baselines, theory, datasets and dynamics takes part that can be called with data alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from covey import Groups, datasets
from covey.paper import baselines, dynamics, theory
from covey.paper import datasets as paper_datasets
from fuzz.check import DOCUMENTED, from_below, limited, where

__all__ = ["CALLS", "HOSTILE", "make_call", "outcome"]

Case = dict[str, Any]
N, P = 24, 9


def _data() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P))
    w = np.r_[np.ones(3), np.zeros(P - 3)]
    return {"X": X, "y": X @ w + 0.1 * rng.standard_normal(N), "groups": Groups.from_size(3, P), "w": w}


DATA = _data()
X, Y, GROUPS, W = DATA["X"], DATA["y"], DATA["groups"], DATA["w"]
SHORT = {"n_steps": 15}


def _fit(kind: Any, y: Any = Y, X: Any = X, **options: Any) -> Any:
    return kind(**options).fit(X, y).coef_


# name: the function, and arguments with which it works
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "Groups.from_size": (Groups.from_size, {"size": 3, "n_columns": 9}),
    "Groups.from_sizes": (Groups.from_sizes, {"sizes": [3, 6], "n_columns": 9}),
    "Groups.from_labels": (Groups.from_labels, {"labels": [0, 0, 1, 1], "columns": ["a", "b", "c", "d"]}),
    "Groups.from_lists": (
        Groups.from_lists,
        {"lists": [[0, 1], [2]], "n_columns": 3, "names": ["a", "b"], "columns": ["x", "y", "z"], "overlap": False},
    ),
    "Groups.from_names": (
        Groups.from_names, {"groups": {"a": ["x"], "b": ["y", "z"]}, "columns": ["x", "y", "z"], "overlap": False},
    ),
    "Groups.coerce": (Groups.coerce, {"groups": 3, "n_columns": 9, "columns": None}),
    "Groups.norms": (GROUPS.norms, {"w": W}),
    "Groups.position": (GROUPS.position, {"name": 1}),
    "Groups.positions": (lambda names: GROUPS.positions(names, "names"), {"names": [0, 2]}),
    "Groups.to_contiguous": (lambda values: GROUPS.to_contiguous(values), {"values": W}),
    "Groups.from_contiguous": (lambda values: GROUPS.from_contiguous(values), {"values": W}),
    "Groups.with_columns": (GROUPS.with_columns, {"columns": [f"c{j}" for j in range(P)]}),
    "GroupLasso": (
        lambda **options: _fit(baselines.GroupLasso, **options),
        {"X": X, "y": Y, "groups": 3, "penalty": 0.1, "group_weights": "sqrt", "fit_intercept": True,
         "standardize": False, "tol": 1e-8, "max_iter": 200},
    ),
    "PrimalDual": (
        lambda **options: _fit(baselines.PrimalDual, **options),
        {"X": X, "y": Y, "groups": 3, "n_steps": 20, "ratio": "data", "ratio_scale": 1.0, "group_weights": "unit",
         "fit_intercept": True, "standardize": False, "record_every": 1},
    ),
    "certify": (
        baselines.certify, {"X": X, "y": Y, "groups": 3, "w": W, "penalty": 0.1, "group_weights": "sqrt"},
    ),
    "convolve_kernels": (baselines.convolve_kernels, {"Z": np.ones((6, 3))}),
    "diagonal_cost": (baselines.diagonal_cost, {"w": W, "depth": 2}),
    "group_quasi_norm": (baselines.group_quasi_norm, {"w": W, "groups": 3, "power": 1.0}),
    "grouped_cost": (baselines.grouped_cost, {"w": W, "groups": 3, "depth": 2}),
    "least_nuclear_norm": (baselines.least_nuclear_norm, {"w": W, "kernel_size": 3, "tol": 1e-3, "max_iter": 50}),
    "nuclear_regression": (
        baselines.nuclear_regression,
        {"X": X, "y": Y, "kernel_size": 3, "penalty": 0.1, "tol": 1e-3, "max_iter": 50},
    ),
    "bounds": (
        theory.bounds,
        {"u_star": [2.0, 1.0], "n": 100, "p": 30, "L": 10, "s": 2, "sigma": 0.1, "epsilon": None, "noise": None,
         "group_noise": None, "init_scale": 1e-6, "step_size": 1e-3, "group_size": 3},
    ),
    "power_bounds": (
        theory.power_bounds,
        {"norms": [2.0, 1.0], "L": 10, "epsilon": 0.1, "depth": 3, "group_noise": 0.0, "init_scale": 1e-4,
         "step_size": 1e-3},
    ),
    "check_assumptions": (
        theory.check_assumptions,
        {"X": X, "y": Y, "groups": 3, "coef": W, "sigma": 0.1, "epsilon": None, "algorithm": 2, "init_scale": 1e-6,
         "step_size": 1e-3, "direction_step": None},
    ),
    "coherence": (theory.coherence, {"X": X, "groups": 3, "block_columns": 4}),
    "coherence_matrix": (theory.coherence_matrix, {"X": X, "groups": 3, "block_columns": 4}),
    "diagonal_mirror": (theory.diagonal_mirror, {"w": W, "scale": 0.1}),
    "diagonal_potential": (theory.diagonal_potential, {"w": W, "scale": 0.1}),
    "drift_against_step": (
        theory.drift_against_step,
        {"X": X, "y": Y, "groups": 3, "steps": (0.02, 0.01), "total_time": 0.2, "init_scale": 0.1, "start": "aligned"},
    ),
    "group_noise_bound": (
        theory.group_noise_bound, {"sigma": 0.1, "n": 100.0, "p": 30, "L": 10, "trace": 3.0, "largest": 1.0},
    ),
    "lie_bracket": (
        theory.lie_bracket,
        {"word": (0, 1), "u": np.ones(3), "v": np.full(P, 0.5), "groups": 3, "depth": 2},
    ),
    "balance": (theory.balance, {"u": np.ones(3), "v": np.full(P, 0.5), "groups": GROUPS, "depth": 2}),
    "balance_increment": (
        theory.balance_increment,
        {"u": np.ones(3), "v": np.full(P, 0.5), "g": np.ones(P), "groups": GROUPS, "step": 0.1},
    ),
    "limit_events": (theory.limit_events, {"X": X, "y": Y, "groups": 3, "weights": None, "n_events": 2}),
    "margins": (theory.margins, {"X": X, "y": (Y > 0) * 1.0, "groups": 3, "coef": W, "power": 1.0}),
    "mirror_limit": (theory.mirror_limit, {"X": X[:5], "y": Y[:5], "scale": 0.1}),
    "opening_scale": (
        theory.opening_scale, {"level": 1.0, "noise": 0.1, "step_size": 1e-3, "noise_step": 1e-3, "precision": 0.1},
    ),
    "rest_time": (theory.rest_time, {"noise": 0.1, "init_scale": 1e-6, "step_size": 1e-3}),
    "settle_time": (theory.settle_time, {"level": 1.0, "init_scale": 1e-6, "step_size": 1e-3, "precision": 0.1}),
    "pilot_fit": (theory.pilot_fit, {"X": X, "y": Y, "groups": GROUPS, "max_groups": 2}),
    "words": (theory.words, {"columns": [0, 1], "order": 2}),
    "DiagonalNetwork": (theory.DiagonalNetwork, {"size": 3, "depth": 2}),
    "GroupedNetwork": (theory.GroupedNetwork, {"groups": GROUPS, "depth": 2}),
    "legacy_paper_data": (
        paper_datasets.legacy_paper_data,
        {"n_rows": 20, "n_columns": 12, "group_size": 3, "support": (1.0, 1.0, 1.0), "sigma": 0.5, "seed": 6,
         "design": "rademacher"},
    ),
    "load_diabetes_splines": (datasets.load_diabetes_splines, {"n_knots": 5}),
    "make_digits": (paper_datasets.make_digits, {"n_train": 3, "n_test": 2, "seed": 0}),
    "make_group_sparse": (
        datasets.make_group_sparse,
        {"n_rows": 20, "n_columns": 12, "groups": 3, "design": "rademacher", "rho": 0.5, "active": 2, "values": 10.0,
         "sigma": None, "snr": None, "noise": "gaussian", "noise_df": 3.0, "random_state": 0},
    ),
    "diagonal_descent": (
        dynamics.diagonal_descent,
        {"X": X, "y": Y, "init_scale": 1e-2, "step_size": 0.01, "positive_only": False, "weight_decay": 0.0,
         "n_steps": 15, "record_every": 1, "depth": 2, "w_star": W, "stop": None, "gradient_scale": 1.0,
         "reference": True},
    ),
    "gradient_flow": (
        dynamics.gradient_flow,
        {"X": X, "y": Y, "groups": 3, "init_scale": 0.1, "t_end": 0.5, "times": None, "start": "aligned", "depth": 2,
         "w_star": W, "method": "LSODA", "rtol": 1e-6, "atol": 1e-9},
    ),
    "normalized_descent": (
        dynamics.normalized_descent,
        {"X": X, "y": Y, "groups": 3, "init_scale": 1e-2, "step_size": 1e-3, "direction_step": "large", "switch": None,
         "n_steps": 15, "start": None, "record_every": 1, "depth": 2, "w_star": W, "stop": None, "gradient_scale": 1.0,
         "magnitude_at": "new", "loss": "squared", "offset": None, "clock": "steps", "reference": True},
    ),
    "plain_descent": (
        dynamics.plain_descent,
        {"X": X, "y": Y, "groups": 3, "init_scale": 1e-2, "step_size": 1e-3, "start": "zero", "weight_decay": 0.0,
         "n_steps": 15, "record_every": 1, "depth": 2, "w_star": W, "stop": None, "gradient_scale": 1.0,
         "loss": "squared", "offset": None, "clock": "steps", "reference": True},
    ),
    "SwitchAt": (dynamics.SwitchAt, {"step": 3}),
    "SwitchSettled": (dynamics.SwitchSettled, {"tol": 0.01, "epsilon": 1e-12}),
    "SwitchOracle": (dynamics.SwitchOracle, {"u_star": np.ones(3)}),
}  # fmt: skip

HOSTILE: dict[str, Any] = {
    "None": None, "nan": np.nan, "inf": np.inf, "-inf": -np.inf, "zero": 0, "minus one": -1, "minus": -0.5, "one": 1,
    "half": 0.5, "1e-300": 1e-300, "1e300": 1e300, "1e30": 10**30, "True": True, "text": "nonsense", "empty text": "",
    "bytes": b"x", "complex": 1j, "empty list": [], "a list": [1.0], "nested": [[1], [2, 3]], "texts": ["a", "b"],
    "nones": [None] * 9, "nans": np.full(9, np.nan), "infs": np.full(24, np.inf), "complexes": np.ones(9) * 1j,
    "masked": np.ma.masked_array(np.ones(9), mask=np.arange(9) < 2), "zeros": np.zeros(9), "negatives": -np.ones(9),
    "short": np.ones(2), "long": np.ones(50), "matrix": np.ones((3, 3)), "wide": np.ones((24, 9)),
    "wide complex": np.ones((24, 9)) * 1j, "wide masked": np.ma.masked_array(np.ones((24, 9)), mask=True),
    "wide nan": np.full((24, 9), np.nan), "wide tiny": np.full((24, 9), 1e-300), "wide huge": np.full((24, 9), 1e200),
    "three dimensions": np.ones((2, 2, 2)), "empty": np.empty((0, 9)), "no columns": np.empty((24, 0)),
    "objects": np.array([object()] * 9), "dict": {"a": [0]}, "set": {0, 1}, "function": len, "class": dict,
    "frame": pd.DataFrame({"a": [1.0, 2.0]}), "text frame": pd.DataFrame({"a": ["u", "v"]}), "sparse": sp.eye_array(9),
    "series": pd.Series(np.ones(24)), "integers": np.arange(9), "generator": (i for i in range(3)),
    "0-d": np.array(1.0), "dates": np.array(["2020-01-01"] * 9, dtype="datetime64[D]"), "slice": slice(3),
    "float32": np.float32(1e38), "tiny vector": np.full(24, 1e-200), "huge vector": np.full(24, 1e160),
}  # fmt: skip

# Errors that are clear about an argument without its name, by what they say.
CLEAR = ("unexpected keyword", "missing", "not hashable", "unhashable")


def make_call(choose: Callable[[list[Any]], Any], names: list[str] | None = None) -> Case:
    """A call with one or two hostile arguments."""
    name = choose(names or sorted(CALLS))
    parameters = sorted(CALLS[name][1])
    odd = {choose(parameters): choose(sorted(HOSTILE)) for _ in range(choose([1, 1, 1, 2]))}
    return {"function": name, "odd": odd}


def outcome(case: Case) -> str:
    """Empty where a call gives an answer or an error that names the argument; otherwise what is wrong."""
    function, plain = CALLS[case["function"]]
    odd = case["odd"]
    given = plain | {name: HOSTILE[word] for name, word in odd.items()}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with limited():
                function(**given)
        except DOCUMENTED as error:
            text = str(error).strip()
            if from_below(error):
                return f"{type(error).__name__} from the depths: {text}\n{where(error)}"
            known = [*plain, "column", "row", "group", "label", "size", "number", "entries", *CLEAR]
            if not any(word.lower() in text.lower() for word in known):
                return f"{type(error).__name__} without the name of an argument: {text}\n{where(error)}"
            return ""
        except Exception as error:
            if isinstance(error, KeyError) and case["function"] == "Groups.position":
                return ""  # as of a dictionary
            return f"{type(error).__name__}: {error}\n{where(error)}"
    leaked = [w for w in caught if issubclass(w.category, RuntimeWarning | DeprecationWarning | FutureWarning)
              or w.category.__name__ == "ComplexWarning"]  # fmt: skip
    if leaked:
        return f"{leaked[0].category.__name__} leaked: {leaked[0].message} ({leaked[0].filename}:{leaked[0].lineno})"
    return ""
