"""The arguments of stability selection and knockoffs as a Problem."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from covey.designs import as_design
from covey.groups import Groups
from covey.losses import Loss, get_loss
from covey.search.limit_path import read_rows
from covey.search.problem import Problem
from covey.validation import on_host

__all__ = ["encode_classes", "read_problem"]


def read_problem(
    X: Any,
    y: Any,
    groups: Any,
    always: Iterable[Any],
    loss: str | Loss,
    offset: Any,
    sample_weight: Any,
    **options: Any,
) -> Problem:
    """Validate the data; `options` are those of the search."""
    design, loss = as_design(X), get_loss(loss)
    groups = Groups.coerce(groups, design.shape[1], design.columns)
    loss, response, weight, offset = read_rows(design, encode_classes(y, loss), sample_weight, loss, offset)
    return Problem(design, response, weight, groups, groups.positions(always, "always"), options, loss, offset)


def encode_classes(y: Any, loss: Loss) -> Any:
    """Convert labels to 0 and 1, or to one column per class; other responses are returned unchanged.

    >>> encode_classes(["no", "yes", "no"], get_loss("binomial")).tolist()
    [0.0, 1.0, 0.0]
    >>> encode_classes(["a", "c", "b"], get_loss("multinomial")).argmax(axis=1).tolist()
    [0, 2, 1]
    """
    if not loss.labelled or np.ndim(y) != 1:
        return y
    values = np.asarray(on_host(y))
    if not loss.vector and values.dtype.kind in "fiub" and np.all((values >= 0) & (values <= 1)):
        # proportions between 0 and 1 are valid for this loss too
        return y
    classes, codes = np.unique(values, return_inverse=True)
    if loss.vector:
        return np.eye(classes.size)[codes]
    if classes.size != 2:
        raise ValueError(f"y has {classes.size} classes, and the binomial loss takes 2: use loss='multinomial'.")
    return codes.astype(float)
