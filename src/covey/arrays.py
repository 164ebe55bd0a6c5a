"""Arrays where X lives: numpy, or torch tensors on a device. Small results always come back as numpy arrays."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.validation import ArrayOrTensor, FloatArray, on_host

__all__ = ["below", "beside", "doubles", "host", "index", "like", "namespace", "spread", "stack", "zeros"]


def namespace(values: object) -> ModuleType:
    """The module of functions that take these values: numpy, or torch for a tensor."""
    return sys.modules["torch"] if type(values).__module__ == "torch" else np


def doubles(*values: Any) -> tuple[FloatArray, ...]:
    """Arrays of float64; tensors are left as they are."""
    found = []  # a loop, because this is called at every step of every fit
    for one in values:
        found.append(one if type(one).__module__ == "torch" else np.asarray(one, dtype=np.float64))
    return tuple(found)


def spread(values: FloatArray, y: FloatArray) -> FloatArray:
    """Values that do not depend on y, broadcast against it."""
    if np.broadcast_shapes(y.shape, values.shape) == tuple(values.shape):
        return values
    return values + namespace(y).zeros_like(y)


def host(values: ArrayOrTensor) -> FloatArray:
    """An array as numpy."""
    return values if isinstance(values, np.ndarray) else np.asarray(on_host(values))


def like(values: FloatArray, model: ArrayOrTensor) -> ArrayOrTensor:
    """An array as an array of the kind, precision and device of another one; tensors are left as they are."""
    return model.new_tensor(values) if isinstance(values, np.ndarray) and not isinstance(model, np.ndarray) else values


def index(which: NDArray[np.intp], model: ArrayOrTensor) -> ArrayOrTensor:
    """Positions, for arrays of the kind and device of another one."""
    return which if isinstance(model, np.ndarray) else model.new_tensor(which, dtype=namespace(model).int64)


def zeros(shape: tuple[int, ...], model: ArrayOrTensor) -> ArrayOrTensor:
    """Zeros of the kind, precision and device of another array."""
    return np.zeros(shape) if isinstance(model, np.ndarray) else model.new_zeros(shape)


def beside(left: ArrayOrTensor, right: ArrayOrTensor) -> ArrayOrTensor:
    """Two tables of columns as one, column by column in memory."""
    out = _empty((left.shape[0], left.shape[1] + right.shape[1]), left)
    out[:, : left.shape[1]], out[:, left.shape[1] :] = left, right
    return out


def below(top: ArrayOrTensor, bottom: ArrayOrTensor) -> ArrayOrTensor:
    """Two tables of rows as one, where the first is."""
    out = _empty((top.shape[0] + bottom.shape[0], top.shape[1]), top)
    out[: top.shape[0]], out[top.shape[0] :] = top, like(host(bottom), top)
    return out


def stack(arrays: Sequence[ArrayOrTensor], axis: int) -> ArrayOrTensor:
    """Arrays of one kind along a new axis."""
    return namespace(arrays[0]).stack(arrays, axis)


def _empty(shape: tuple[int, int], model: ArrayOrTensor) -> ArrayOrTensor:
    return np.empty(shape, order="F") if isinstance(model, np.ndarray) else model.new_empty(shape)
