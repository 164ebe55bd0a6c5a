"""The attributes of fitted estimators that come from a file, and the kind that each of them must have.

There is one check per kind: an array with a shape rule, a sparse matrix, a list, or a value of a type. The plain fields
of a path are checked by their annotations. A shape rule names the lengths of the axes, such as ``"outputs columns"``;
``one`` in front of it means that a single output has no axis.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from types import UnionType
from typing import get_type_hints

import numpy as np
import pandas as pd
import scipy.sparse as sp

from covey.groups import Groups
from covey.losses import Loss
from covey.path import Path
from covey.search.held_out import HeldOut
from covey.terms import Expansion
from covey.validation import Array

Lengths = Mapping[str, int]
PAIR = {"pair": 2}
Check = Callable[[object, Lengths], bool]


def _array(*shapes: str, least: float = -np.inf, integer: bool = False) -> Check:
    """Finite real numbers in an array of one of these shapes; ``""`` is a single number."""

    def holds(value: object, lengths: Lengths) -> bool:
        if isinstance(value, bool) or not isinstance(value, np.ndarray | np.number | numbers.Real):
            return False
        array = np.asarray(value)
        if array.dtype.kind not in ("iu" if integer else "fiu") or not _is_ordinary(array):
            return False
        fits = any(_fits(array.shape, shape.split(), lengths) for shape in shapes)
        return fits and bool(np.isfinite(array).all()) and bool((array >= least).all())

    return holds


def _sparse(n_times: str, width: str) -> Check:
    """A `scipy.sparse.csr_array` of finite numbers; the lengths of a side are multiplied."""

    def holds(value: object, lengths: Lengths) -> bool:
        shape = tuple(int(np.prod([lengths[name] for name in side.split()])) for side in (n_times, width))
        if not isinstance(value, sp.csr_array) or value.shape != shape or value.dtype.kind != "f":
            return False
        return _is_ordinary(value) and bool(np.isfinite(value.data).all())

    return holds


def _each(entry: Check, length: str = "") -> Check:
    """A list or array with entries of one kind, and of the given length, if any."""

    def holds(value: object, lengths: Lengths) -> bool:
        if isinstance(value, np.ndarray):
            value = value.tolist() if value.ndim == 1 else None
        if not isinstance(value, list | tuple) or (length and len(value) != (PAIR | dict(lengths))[length]):
            return False
        return all(entry(item, lengths) for item in value)

    return holds


def _is(kind: type | UnionType) -> Check:
    """A value of a type."""
    return lambda value, lengths: isinstance(value, kind)


def _or_none(check: Check) -> Check:
    return lambda value, lengths: value is None or check(value, lengths)


def _is_event(value: object, lengths: Lengths) -> bool:
    """Whether a value is a pair of a group index and a time."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        return False
    return _array("", integer=True)(value[0], lengths) and _array("")(value[1], lengths)


def _are_constraints(value: object, lengths: Lengths) -> bool:
    """A table of constraints, and whether each of them binds."""
    names = ["name", "constraint", "selected", "binds", "pressure"]
    if not isinstance(value, pd.DataFrame) or list(value.columns) != names:
        return False
    numbers_of = value["pressure"].to_numpy()
    return (
        all(value[name].dtype.kind == "b" for name in ("selected", "binds"))
        and numbers_of.dtype.kind == "f" and bool(np.isfinite(numbers_of).all())
    )  # fmt: skip


def _are_rivals(value: object, lengths: Lengths) -> bool:
    """Whether a value is a table of sets of groups and of what they differ in."""
    if not isinstance(value, pd.DataFrame) or not {"groups", "without", "instead"} <= set(value.columns):
        return False
    return all(isinstance(item, list) for name in ("groups", "without", "instead") for item in value[name])


def _is_ordinary(array: Array | sp.csr_array) -> bool:
    """Whether floats have single or double precision, in the machine's byte order."""
    return bool(array.dtype.isnative) and (array.dtype.kind != "f" or array.dtype in (np.float32, np.float64))


def _fits(shape: tuple[int, ...], wanted: list[str], lengths: Lengths) -> bool:
    """Whether a shape follows a rule; a length that the model does not have is not checked."""
    if wanted[:1] == ["one"]:
        return lengths["outputs"] == 1 and _fits(shape, wanted[1:], lengths)
    known = PAIR | dict(lengths)
    return len(shape) == len(wanted) and all(known.get(name, n) == n for name, n in zip(wanted, shape, strict=True))


# Plain values, by their annotations.
PLAIN = {int: numbers.Integral, float: numbers.Real, str: str, bool: bool, Groups: Groups}

PATH: dict[str, Check] = {
    **{name: _is(PLAIN[hint]) for name, hint in get_type_hints(Path).items() if hint in PLAIN},
    "n_outputs": _array("", integer=True, least=1),
    "times": _array("times"),
    "coefs": _sparse("times", "outputs columns"),
    "intercepts": _array("one times", "times outputs"),
    "entered": _each(_is_event),
    "penalties": _or_none(_array("times")),
    "strengths": _or_none(_sparse("times", "groups")),
    "parts": _or_none(_sparse("times", "outputs members")),
}

HELD_OUT: dict[str, Check] = {
    "coefs": _sparse("folds", "outputs columns"),
    "intercepts": _array("folds outputs"),
    "scores": _array("scores responses", least=0),
    "weights": _array("scores responses", least=0),
    "starts": _array("ends", integer=True, least=0),
    "n_rows": _array("", least=0),
    "whole": _is(bool),
}

MODEL: dict[str, Check] = {
    "path_": _is(Path),
    "groups_": _is(Groups),
    "loss_": _is(Loss),
    "coef_": _array("one columns", "outputs columns"),
    "intercept_": _array("one", "outputs"),
    "group_norms_": _array("groups", least=0),
    "group_strengths_": _array("groups", least=0),
    "response_strengths_": _array("outputs groups", least=0),
    "response_deviations_": _array("outputs", least=0),
    "response_names_": _each(_is(str), "outputs"),
    "selected_groups_": _each(_is(object)),
    "term_means_": _array("outputs selected"),
    "always_groups_": _each(_is(object)),
    "recipe_": _is(str),
    "shrunk_": _is(bool),
    "candidates_": _is(pd.DataFrame),
    "fold_frequencies_": _or_none(_array("groups", least=0)),
    "n_splits_": _array("", integer=True, least=0),
    "n_deals_": _array("", integer=True, least=0),
    "rivals_": _or_none(_are_rivals),
    "constraints_": _are_constraints,
    "predictor_range_": _or_none(_array("pair outputs")),
    "held_out_": _or_none(_is(HeldOut)),
    "price_": _or_none(_each(_array(""), "pair")),
    "n_features_in_": lambda value, lengths: _array("", integer=True)(value, lengths) and value == lengths["features"],
    "feature_names_in_": _each(_is(str), "features"),
    "expansion_": _is(Expansion),
    # parameters used to describe the fitted model; `fit` reads and checks the others
    "rule": lambda value, lengths: isinstance(value, str) and value in ("select", "predict"),
}

# Attributes that a fitted model may lack.
ABSENT = frozenset(
    {
        "constraints_", "expansion_", "feature_names_in_", "response_deviations_", "response_names_",
        "response_strengths_", "term_means_",
    }
)  # fmt: skip

FITTED: dict[str, dict[str, Check]] = {
    "covey.estimators.regressor.GroupSparseRegressor": MODEL,
    "covey.estimators.classifier.GroupSparseClassifier": MODEL
    | {
        "classes_": _each(_is(object), "classes"),
        "fold_thresholds_": _or_none(_array("folds thresholds")),
        "coef_": _array("outputs columns"),
        "intercept_": _array("outputs"),
    },
    "covey.estimators.cox.GroupSparseCox": MODEL
    | {
        "strata_": _or_none(_each(_is(object), "strata")),
        "baseline_times_": _array("events"),
        "baseline_strata_": _array("events", integer=True, least=0),
        "baseline_hazards_": _array("events", least=0),
        "event_times_": _array("event_times"),
        "censoring_times_": _array("censorings"),
        "censoring_survival_": _array("censorings", least=0),
        "fold_hazards_": _or_none(_array("folds events", least=0)),
    },
}

# Lengths that one attribute determines for the others.
LENGTHS = {
    "classes": "classes_",
    "selected": "selected_groups_",
    "strata": "strata_",
    "events": "baseline_times_",
    "event_times": "event_times_",
    "censorings": "censoring_times_",
}
