"""Check values from a file by type annotations, and refuse what does not hold."""

from __future__ import annotations

from dataclasses import fields
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
import scipy.sparse as sp

from covey.validation import Array


def require(holds: object, problem: str) -> None:
    """Refuse a model, with the problem in words, unless a condition holds."""
    if not holds:
        raise ValueError(problem)


def check_fields(part: Any) -> None:
    """Refuse a dataclass without one of its fields, or with one that has not its annotated type."""
    hints = get_type_hints(type(part))
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
