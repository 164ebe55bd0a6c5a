"""Checks of the attributes of fitted estimators that come from a file.

Each estimator has an entry in `FITTED` with its attributes besides those in `MODEL`; lengths of its own are in
`LENGTHS`.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from covey.groups import Groups
from covey.losses import Loss
from covey.path import Path

__all__ = ["FITTED", "LENGTHS", "PATH", "Check", "Each", "Kind", "Numbers", "Sparse"]


@dataclass(frozen=True)
class Check(ABC):
    """A condition on a value; `optional` values may be None, and `absent` ones may be missing."""

    optional: bool = False
    absent: bool = False

    def __call__(self, value: Any, lengths: Mapping[str, int], name: str) -> None:
        """Raise a `ValueError` that names the attribute."""
        if not (self.optional and value is None) and not self.holds(value, lengths):
            raise ValueError(f"{name} is not as it was written")

    @abstractmethod
    def holds(self, value: Any, lengths: Mapping[str, int]) -> bool:
        """Whether the value meets the condition."""


@dataclass(frozen=True)
class Numbers(Check):
    """Real numbers in an array of a shape such as ``"outputs columns"``; ``""`` for one number.

    With several shapes, one of them must match; a length that the model does not have is not checked.
    """

    shapes: tuple[str, ...] = ("",)
    least: float = -np.inf
    finite: bool = True
    whole: bool = False

    def holds(self, value: Any, lengths: Mapping[str, int]) -> bool:
        if isinstance(value, bool) or not isinstance(value, np.ndarray | np.number | numbers.Real):
            return False
        array = np.asarray(value)
        if array.dtype.kind not in ("iu" if self.whole else "fiu") or not _is_ordinary(array):
            return False
        if not any(_fits(array.shape, shape.split(), lengths) for shape in self.shapes):
            return False
        return not (self.finite and not np.isfinite(array).all()) and bool((array >= self.least).all())


@dataclass(frozen=True)
class Sparse(Check):
    """A `scipy.sparse.csr_array` of finite numbers; the lengths of a side are multiplied."""

    rows: str = ""
    columns: str = ""

    def holds(self, value: Any, lengths: Mapping[str, int]) -> bool:
        shape = tuple(int(np.prod([lengths[name] for name in side.split()])) for side in (self.rows, self.columns))
        if (
            not isinstance(value, sp.csr_array)
            or value.shape != shape
            or value.dtype.kind != "f"
            or not _is_ordinary(value)
        ):
            return False
        return bool(np.isfinite(value.data).all())


@dataclass(frozen=True)
class Each(Check):
    """A list or array with entries of one kind, and of the given length, if any."""

    kind: Any = object
    length: str = ""

    def holds(self, value: Any, lengths: Mapping[str, int]) -> bool:
        if isinstance(value, np.ndarray):
            value = value.tolist() if value.ndim == 1 else None
        if not isinstance(value, list | tuple) or (self.length and len(value) != lengths[self.length]):
            return False
        return all(
            self.kind.holds(v, lengths) if isinstance(self.kind, Check) else isinstance(v, self.kind) for v in value
        )


@dataclass(frozen=True)
class Event(Check):
    """A pair of a group index and a time."""

    def holds(self, value: Any, lengths: Mapping[str, int]) -> bool:
        return (
            isinstance(value, tuple | list)
            and len(value) == 2
            and Numbers(whole=True).holds(value[0], lengths)
            and Numbers().holds(value[1], lengths)
        )


@dataclass(frozen=True)
class Kind(Check):
    """A value of a type."""

    kind: Any = object

    def holds(self, value: Any, lengths: Mapping[str, int]) -> bool:
        return isinstance(value, self.kind)


@dataclass(frozen=True)
class OneOf(Check):
    """One of a few values."""

    values: tuple[Any, ...] = ()

    def holds(self, value: Any, lengths: Mapping[str, int]) -> bool:
        return any(type(value) is type(own) and value == own for own in self.values)


@dataclass(frozen=True)
class Length(Check):
    """A number that is one of the lengths."""

    length: str = ""

    def holds(self, value: Any, lengths: Mapping[str, int]) -> bool:
        return Numbers(whole=True).holds(value, lengths) and value == lengths[self.length]


def _is_ordinary(array: Any) -> bool:
    """Whether floats have single or double precision, in the machine's byte order."""
    return bool(array.dtype.isnative) and (array.dtype.kind != "f" or array.dtype in (np.float32, np.float64))


def _fits(shape: tuple[int, ...], wanted: list[str], lengths: Mapping[str, int]) -> bool:
    if wanted == ["one"]:  # a single output has no axis
        return lengths["outputs"] == 1 and shape == ()
    if wanted[:1] == ["one"]:
        return lengths["outputs"] == 1 and _fits(shape, wanted[1:], lengths)
    return len(shape) == len(wanted) and all(lengths.get(name, n) == n for name, n in zip(wanted, shape, strict=True))


EVENTS = Each(kind=Event())

PATH: dict[str, Check] = {
    "n_outputs": Numbers(whole=True, least=1),
    "times": Numbers(shapes=("times",)),
    "coefs": Sparse(rows="times", columns="outputs columns"),
    "intercepts": Numbers(shapes=("one times", "times outputs")),
    "groups": Kind(kind=Groups),
    "entered": EVENTS,
    "status": Kind(kind=str),
    "message": Kind(kind=str),
    "penalties": Numbers(shapes=("times",), optional=True),
    "strengths": Sparse(rows="times", columns="groups", optional=True),
    "parts": Sparse(rows="times", columns="outputs members", optional=True),
    "ends_apart": Kind(kind=bool),
    "stepwise": Kind(kind=bool),
}

MODEL: dict[str, Check] = {
    "path_": Kind(kind=Path),
    "groups_": Kind(kind=Groups),
    "loss_": Kind(kind=Loss),
    "coef_": Numbers(shapes=("one columns", "outputs columns")),
    "intercept_": Numbers(shapes=("one", "outputs")),
    "group_norms_": Numbers(shapes=("groups",), least=0),
    "group_strengths_": Numbers(shapes=("groups",), least=0),
    "selected_groups_": Each(),
    "always_groups_": Each(),
    "recipe_": Kind(kind=str),
    "shrunk_": Kind(kind=bool),
    "candidates_": Kind(kind=pd.DataFrame),
    "fold_frequencies_": Numbers(shapes=("groups",), least=0, optional=True),
    "n_splits_": Numbers(whole=True, least=0),
    "n_features_in_": Length(length="columns"),
    "feature_names_in_": Each(kind=str, length="columns", absent=True),
    # parameters used to describe the fitted model; `fit` reads and checks the others
    "rule": OneOf(values=("min", "1se")),
    "average": Kind(kind=bool | np.bool_),
}

FITTED: dict[str, dict[str, Check]] = {
    "covey.estimators.regressor.GroupSparseRegressor": MODEL,
    "covey.estimators.classifier.GroupSparseClassifier": MODEL
    | {
        "classes_": Each(length="classes"),
        "coef_": Numbers(shapes=("outputs columns",)),
        "intercept_": Numbers(shapes=("outputs",)),
    },
    "covey.estimators.cox.GroupSparseCox": MODEL
    | {
        "strata_": Each(length="strata", optional=True),
        "baseline_times_": Numbers(shapes=("events",)),
        "baseline_strata_": Numbers(shapes=("events",), whole=True, least=0),
        "baseline_hazards_": Numbers(shapes=("events",), least=0),
        "event_times_": Numbers(shapes=("event_times",)),
        "censoring_times_": Numbers(shapes=("censorings",)),
        "censoring_survival_": Numbers(shapes=("censorings",), least=0),
    },
}

# Lengths that one attribute determines for the others.
LENGTHS = {
    "classes": "classes_",
    "strata": "strata_",
    "events": "baseline_times_",
    "event_times": "event_times_",
    "censorings": "censoring_times_",
}
