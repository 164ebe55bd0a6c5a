"""The attributes of fitted estimators that come from a file, and the kind that each of them must have.

There is one check per kind: an array with a shape rule, a sparse matrix, a list, or a value of a type. A shape rule
names the lengths of the axes, such as ``"outputs columns"``, or attributes of this length; ``one`` in front of it means
that a single output has no axis. The types of paths and held-out scores are those of their annotations.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from covey.groups import Groups
from covey.losses import Loss
from covey.path import Path
from covey.persistence.annotations import is_ordinary
from covey.search.held_out import HeldOut
from covey.terms import Expansion

Lengths = Mapping[str, int]
Check = Callable[[Any, Lengths], bool]


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
        "strata_": _or_none(_each(_is(object))),
        "baseline_times_": _array("baseline_times_"),
        "baseline_strata_": _array("baseline_times_", integer=True, least=0),
        "baseline_hazards_": _array("baseline_times_", least=0),
        "event_times_": _array("event_times_"),
        "censoring_times_": _array("censoring_times_"),
        "censoring_survival_": _array("censoring_times_", least=0),
        "fold_hazards_": _or_none(_array("folds baseline_times_", least=0)),
    },
}
