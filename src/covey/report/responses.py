"""Several responses: how well each is predicted, and how much each group contributes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from covey.report.quality import in_memory

__all__ = ["Response", "responses"]


class Response(NamedTuple):
    """One of several responses, with R^2 on the training rows.

    Its groups are in decreasing order of the norm of their coefficients for this response: name, norm, the column with
    the largest coefficient, and that coefficient.
    """

    name: str
    r2: float | None
    groups: tuple[tuple[str, float, str, float], ...]


def responses(model: Any, X: Any, y: Any, outputs: tuple[str, ...]) -> tuple[Response, ...]:
    """The responses of a model; empty for a single response or classes."""
    if np.ndim(model.coef_) == 1 or hasattr(model, "classes_"):
        return ()
    groups, coefs = model.groups_, model.coef_
    r2: list[float | None] = [None] * len(coefs)
    if X is not None:
        observed, predicted = in_memory(y), in_memory(model.predict(X))
        left, total = ((observed - predicted) ** 2).sum(axis=0), ((observed - observed.mean(axis=0)) ** 2).sum(axis=0)
        r2 = (1 - left / np.where(total > 0, total, 1.0)).tolist()
    found = []
    for name, coef, value in zip(outputs, coefs, r2, strict=True):
        parts = []
        for l in np.flatnonzero(model.group_norms_):
            columns = groups.members[groups.starts[l] : groups.starts[l + 1]]
            most = columns[np.argmax(np.abs(coef[columns]))]
            norm = float(np.linalg.norm(coef[columns]))
            parts.append((str(groups.names[l]), norm, groups.column_name(int(most)), float(coef[most])))
        found.append(Response(name, value, tuple(sorted(parts, key=lambda part: -part[1]))))
    return tuple(found)
