"""Labels of classes as the numbers that a loss takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from covey.losses import Loss
from covey.validation import on_host

__all__ = ["as_numbers"]


def as_numbers(y: Any, loss: Loss) -> Any:
    """Convert labels to 0 and 1, or to one column per class; other responses are returned unchanged.

    >>> from covey.losses import Binomial, Multinomial
    >>> as_numbers(["no", "yes", "no"], Binomial()).tolist()
    [0.0, 1.0, 0.0]
    >>> as_numbers(["a", "c", "b"], Multinomial()).argmax(axis=1).tolist()
    [0, 2, 1]
    """
    if not loss.labelled or np.ndim(y) != 1:
        return y
    values = np.asarray(on_host(y))
    if not loss.vector and values.dtype.kind in "fiub" and np.all((values >= 0) & (values <= 1)):
        # proportions between 0 and 1 are valid for this loss too
        return y
    classes, own = np.unique(values, return_inverse=True)
    if loss.vector:
        return np.eye(classes.size)[own]
    if classes.size != 2:
        raise ValueError(f"y has {classes.size} classes, and the binomial loss takes 2: use loss='multinomial'.")
    return own.astype(float)
