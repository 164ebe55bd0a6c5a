"""Several responses: how well each is predicted, and how much each group contributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.report.group_table import short_name
from covey.report.numbers import shown
from covey.report.quality import in_memory

__all__ = ["ResponsePart", "response_parts", "response_section"]

# The most responses with their own table, and the most groups in each table.
MOST_RESPONSES, MOST_GROUPS = 50, 30


@dataclass(frozen=True)
class ResponsePart:
    """One of several responses.

    Attributes
    ----------
    name : str
    r2 : float or None
        On the training rows.
    groups : tuple of (str, float, str, float)
        The groups in decreasing order of the norm of their coefficients for this response: name, norm, the column with
        the largest coefficient, and that coefficient.
    """

    name: str
    r2: float | None
    groups: tuple[tuple[str, float, str, float], ...]


def response_parts(model: Any, X: Any, y: Any, outputs: tuple[str, ...]) -> tuple[ResponsePart, ...]:
    """The responses of a model; empty for a single response or classes."""
    if np.ndim(model.coef_) == 1 or hasattr(model, "classes_"):
        return ()
    groups, coefs = model.groups_, model.coef_
    r2: list[float | None] = [None] * len(coefs)
    if X is not None:
        truth, made = in_memory(y), in_memory(model.predict(X))
        left, whole = ((truth - made) ** 2).sum(axis=0), ((truth - truth.mean(axis=0)) ** 2).sum(axis=0)
        r2 = (1 - left / np.where(whole > 0, whole, 1.0)).tolist()
    found = []
    for name, coef, value in zip(outputs, coefs, r2, strict=True):
        rows = []
        for l in np.flatnonzero(model.group_norms_):
            columns = groups.members[groups.starts[l] : groups.starts[l + 1]]
            own = coef[columns]
            most = int(np.argmax(np.abs(own)))
            column = groups.column_name(int(columns[most]))
            rows.append((str(groups.names[l]), float(np.linalg.norm(own)), column, float(own[most])))
        found.append(ResponsePart(name, value, tuple(sorted(rows, key=lambda row: -row[1]))))
    return tuple(found)


def response_section(parts: tuple[ResponsePart, ...]) -> str:
    """The section, without its heading."""
    told = (
        "<p>A group is in the model for all responses or for none, with separate coefficients for each response. R² is "
        "measured on the training rows.</p>"
    )
    more = f"<p>And {len(parts) - MOST_RESPONSES} more responses.</p>" if len(parts) > MOST_RESPONSES else ""
    return told + "".join(_part(part, i == 0) for i, part in enumerate(parts[:MOST_RESPONSES])) + more


def _part(part: ResponsePart, first: bool) -> str:
    r2 = "" if part.r2 is None else f" · R² {shown(part.r2)}"
    rows = "".join(
        f'<tr><th scope="row"><bdi>{short_name(name)}</bdi></th><td>{shown(norm)}</td>'
        f"<td><bdi>{short_name(column)}</bdi></td><td>{shown(value, 4)}</td></tr>"
        for name, norm, column, value in part.groups[:MOST_GROUPS]
    )
    left_out = len(part.groups) - MOST_GROUPS
    more = f'<p class="note">And {left_out} more groups.</p>' if left_out > 0 else ""
    return (
        f'<details class="response"{" open" if first else ""}><summary><bdi>{short_name(part.name)}</bdi>{r2}</summary>'
        '<div class="scroll"><table><thead><tr><th scope="col">group</th><th scope="col">norm</th>'
        '<th scope="col">largest coefficient: column</th><th scope="col">value</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{more}</details>"
    )
