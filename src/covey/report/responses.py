"""Several responses: how well each is predicted, and how much each group contributes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import r2_score

from covey.evidence import NestedScore
from covey.report.quality import in_memory
from covey.validation import MatrixLike, PerRow

__all__ = ["Response", "responses"]


class Response(NamedTuple):
    """One of several responses, with R^2 on held-out rows, if there are any, and on the training rows.

    Its groups are in decreasing order of their strength for this response, in its units: name, strength, the column
    with the largest coefficient, and that coefficient.
    """

    name: str
    held_out: str
    r2: float | None
    groups: tuple[tuple[str, float, str, float], ...]


def responses(
    model: BaseEstimator, X: MatrixLike | None, y: PerRow, outputs: tuple[str, ...], nested: NestedScore | None = None
) -> tuple[Response, ...]:
    """The responses of a model; empty for a single response or classes."""
    if not model.loss_.several:
        return ()
    groups, coefs = model.groups_, model.coef_
    r2: list[float | None] = [None] * len(coefs)
    if X is not None:
        r2 = np.atleast_1d(r2_score(in_memory(y), in_memory(model.predict(X)), multioutput="raw_values")).tolist()
    scores = [] if nested is None else [*nested.responses.values()]
    found = []
    for k, (name, coef) in enumerate(zip(outputs, coefs, strict=True)):
        strengths, parts = model.response_strengths_[k], []
        for l in np.flatnonzero(model.group_norms_):
            columns = groups.members[groups.starts[l] : groups.starts[l + 1]]
            most = columns[np.argmax(np.abs(coef[columns]))]
            parts.append((str(groups.names[l]), float(strengths[l]), groups.column_name(int(most)), float(coef[most])))
        held_out = f"{scores[k].mean:.3f} ± {scores[k].margin:.3f}" if scores else ""
        found.append(Response(name, held_out, r2[k], tuple(sorted(parts, key=lambda part: -part[1]))))
    return tuple(found)
