"""The attributes of fitted estimators that come from a file, and the kind that each of them must have.

There is one check per kind: an array with a shape rule, a sparse matrix, a list, or a value of a type. A shape rule
names the lengths of the axes, such as ``"outputs columns"``, or attributes of this length; ``one`` in front of it means
that a single output has no axis. Dataclasses, such as paths and held-out scores, are checked by their annotations.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

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
Check = Callable[[Any, Lengths], bool]


def require(holds: object, problem: str) -> None:
    """Refuse a model, with the problem in words, unless a condition holds."""
    if not holds:
        raise ValueError(problem)


_hints = cache(get_type_hints)  # for a table of thousands of variables


def check_fields(part: Any) -> None:
    """Refuse a dataclass without one of its fields, or with one that has not its annotated type."""
    hints: dict[str, Any] = _hints(type(part))  # type: ignore[arg-type]
    for field in fields(part):
        holds = hasattr(part, field.name) and has_type(getattr(part, field.name), hints[field.name])
        require(holds, f"{field.name} of {type(part).__name__} is not as it was written")


def has_type(value: Any, annotation: Any) -> bool:
    """Whether a value has the annotated type; numbers are finite, and whole numbers are counts or positions.

    >>> has_type((1, 2.5), tuple[int, float]), has_type(("a", 1), tuple[str, ...]), has_type(-1, int | None)
    (True, False, False)
    """
    kind, inner = get_origin(annotation) or annotation, get_args(annotation)
    if kind in (Union, UnionType):
        return any(has_type(value, one) for one in inner)
    if kind is np.ndarray:
        return isinstance(value, np.ndarray) and is_ordinary(value)
    if kind is tuple and inner[-1] is not ...:
        return isinstance(value, tuple) and len(value) == len(inner) and all(map(has_type, value, inner))
    if kind in (tuple, list, frozenset):
        return isinstance(value, kind) and all(has_type(one, inner[0]) for one in value)
    if kind is int:
        return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 0)
    if kind is float:
        return isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(np.isfinite(value))
    return isinstance(value, kind)


def is_ordinary(array: Array | sp.csr_array) -> bool:
    """Whether an array has finite real numbers, of single or double precision, in the machine's byte order."""
    precise = array.dtype.kind != "f" or array.dtype in (np.float32, np.float64)
    values = array.data if sp.issparse(array) else array
    return array.dtype.kind in "fiu" and array.dtype.isnative and precise and bool(np.isfinite(values).all())


def _array(*shapes: str, least: float = -np.inf, integer: bool = False) -> Check:
    """Finite real numbers in an array of one of these shapes; ``""`` is a single number."""

    def holds(value: Any, lengths: Lengths) -> bool:
        if isinstance(value, bool) or not isinstance(value, np.ndarray | np.number | numbers.Real):
            return False
        array = np.asarray(value)
        if not is_ordinary(array) or (integer and array.dtype.kind == "f"):
            return False
        return any(_fits(array.shape, shape.split(), lengths) for shape in shapes) and bool((array >= least).all())

    return holds


def _fits(shape: tuple[int, ...], wanted: list[str], lengths: Lengths) -> bool:
    """Whether a shape follows a rule; a length that the model does not have is not checked."""
    if wanted[:1] == ["one"]:
        return lengths["outputs"] == 1 and _fits(shape, wanted[1:], lengths)
    return len(shape) == len(wanted) and all(lengths.get(name, n) == n for name, n in zip(wanted, shape, strict=True))


def _sparse(n_rows: str, width: str) -> Check:
    """A `scipy.sparse.csr_array` of finite numbers; the lengths of a side are multiplied."""

    def holds(value: Any, lengths: Lengths) -> bool:
        shape = tuple(int(np.prod([lengths[name] for name in side.split()])) for side in (n_rows, width))
        return (
            isinstance(value, sp.csr_array) and value.shape == shape and value.dtype.kind == "f" and is_ordinary(value)
        )

    return holds


def _each(entry: Check, length: str = "") -> Check:
    """A list or array with entries of one kind, and of the given length, if any."""

    def holds(value: Any, lengths: Lengths) -> bool:
        if isinstance(value, np.ndarray):
            value = value.tolist() if value.ndim == 1 else None
        if not isinstance(value, list | tuple) or (length and len(value) != lengths[length]):
            return False
        return all(entry(item, lengths) for item in value)

    return holds


def _is(kind: type | UnionType) -> Check:
    return lambda value, lengths: isinstance(value, kind)


def _or_none(check: Check) -> Check:
    return lambda value, lengths: value is None or check(value, lengths)


def _table(columns: str = "", flags: str = "", numbers: str = "", lists: str = "") -> Check:
    """A data frame with at least these columns, of which some hold booleans, finite numbers or lists."""

    def holds(value: Any, lengths: Lengths) -> bool:
        needed = " ".join((columns, flags, numbers, lists)).split()
        if not isinstance(value, pd.DataFrame) or not {*needed} <= {*value.columns}:
            return False
        return (
            all(value[name].dtype.kind == "b" for name in flags.split())
            and all(is_ordinary(value[name].to_numpy()) for name in numbers.split())
            and all(isinstance(one, list) for name in lists.split() for one in value[name])
        )

    return holds


PATH: dict[str, Check] = {
    "n_outputs": _array("", integer=True, least=1),
    "times": _array("times"),
    "coefs": _sparse("times", "outputs columns"),
    "intercepts": _array("one times", "times outputs"),
    "penalties": _or_none(_array("times")),
    "strengths": _sparse("times", "groups"),
    "parts": _or_none(_sparse("times", "outputs members")),
}

HELD_OUT: dict[str, Check] = {
    "coefs": _sparse("folds", "outputs columns"),
    "intercepts": _array("folds outputs"),
    "scores": _array("scores responses", least=0),
    "weights": _array("scores responses", least=0),
    "starts": _array("ends", integer=True, least=0),
    "n_rows": _array("", least=0),
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
    "term_means_": _array("outputs selected_groups_"),
    "always_groups_": _each(_is(object)),
    "recipe_": _is(str),
    "shrunk_": _is(bool),
    "candidates_": _table(flags="chosen"),
    "fold_frequencies_": _or_none(_array("groups", least=0)),
    "n_splits_": _array("", integer=True, least=0),
    "n_deals_": _array("", integer=True, least=0),
    "rivals_": _or_none(_table(lists="groups without instead")),
    "constraints_": _table("name constraint", flags="selected binds", numbers="pressure"),
    "predictor_range_": _or_none(_array("pair outputs")),
    "held_out_": _or_none(_is(HeldOut)),
    "price_": _or_none(_each(_array(""), "pair")),
    "n_features_in_": lambda value, lengths: _array("", integer=True)(value, lengths) and value == lengths["features"],
    "feature_names_in_": _each(_is(str), "features"),
    "expansion_": _is(Expansion),
    # parameters used to describe the fitted model; `fit` reads and checks the others
    "rule": lambda value, lengths: value in ("select", "predict"),
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
        "classes_": _each(_is(object)),
        "fold_thresholds_": _or_none(_array("folds thresholds")),
        "coef_": _array("outputs columns"),
        "intercept_": _array("outputs"),
    },
    "covey.estimators.cox.GroupSparseCox": MODEL
    | {
        "strata_": _or_none(
            lambda value, lengths: isinstance(value, np.ndarray) and value.ndim == 1 and value.size > 0
        ),
        "baseline_times_": _array("baseline_times_"),
        "baseline_strata_": _array("baseline_times_", integer=True, least=0),
        "baseline_hazards_": _array("baseline_times_", least=0),
        "event_times_": _array("event_times_"),
        "censoring_times_": _array("censoring_times_"),
        "censoring_survival_": _array("censoring_times_", least=0),
        "fold_hazards_": _or_none(_array("folds baseline_times_", least=0)),
    },
}
