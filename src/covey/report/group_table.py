"""The table of groups: one row per group that ever wakes up; those that are not in the fitted model are hidden.

fit.js changes the numbers in these rows and their order, never their structure.
"""

from __future__ import annotations

import numpy as np

from covey.report.numbers import shown, time
from covey.report.page import escape
from covey.report.plot import swatch
from covey.report.traces import Frames, GroupTrace
from covey.validation import FloatArray

__all__ = ["MOST_SHOWN", "group_table"]

# Rows before "show all". The style sheet hides the rest by position, in fit.css under `tr:nth-child`.
MOST_SHOWN = 40

# A name longer than this says nothing more to a reader.
LONGEST_NAME = 120


def group_table(frames: Frames) -> str:
    """The body of the table, the strongest group first."""
    strongest = max((group.strength(frames.chosen) for group in frames.groups), default=0.0) or 1.0
    return "".join(_row(i, group, frames.chosen, strongest) for i, group in enumerate(frames.groups))


def _row(i: int, group: GroupTrace, frame: int, strongest: float) -> str:
    facts, coefs = group.at(frame)
    strength, norm, plus, minus = facts.tolist()
    hidden = "" if strength > 0 else " hidden"
    signs = " ".join(part for part in (f"+{plus:g}" if plus else "", f"−{minus:g}" if minus else "") if part)
    if group.columns:
        signs = shown(float(coefs[0]), 4) if group.size == 1 else _details(group, coefs, signs)
    return (
        f'<tr{hidden}><td class="rank">{i + 1}</td>'
        f'<th scope="row">{swatch(i)}<bdi>{_name(group.name)}</bdi></th>'
        f'<td class="strength" data-label="strength"><b>{shown(strength)}</b>'
        f'<i class="bar" style="transform:scaleX({strength / strongest:.3f})"></i></td>'
        f'<td data-label="norm">{shown(norm)}</td>'
        f'<td data-label="columns">{group.size}</td><td data-label="woke up at">{time(group.woke)}</td>{_folds(group)}'
        f'<td class="signs" data-label="coefficients">{signs}</td></tr>'
    )


def _folds(group: GroupTrace) -> str:
    return "" if group.folds is None else f'<td data-label="folds">{group.folds}</td>'


def _details(group: GroupTrace, coefs: FloatArray, signs: str) -> str:
    largest = float(np.abs(coefs).max(initial=0)) or 1.0
    rows = "".join(
        f'<tr><th scope="row"><bdi>{_name(column)}</bdi></th><td>{shown(value, 4)}</td>'
        f'<td><i class="{_side(value)}" style="width:{50 * abs(value) / largest:.1f}%"></i></td></tr>'
        for column, value in zip(group.columns, coefs.tolist(), strict=True)
    )
    rest = group.size - len(group.columns)
    note = f"<p>The {rest} smallest are not listed.</p>" if rest else ""
    return f'<details><summary>{signs}</summary><table class="coefs">{rows}</table>{note}</details>'


def _side(value: float) -> str:
    return "minus" if value < 0 else "plus"


def _name(name: str) -> str:
    if len(name) > LONGEST_NAME:
        name = f"{name[: LONGEST_NAME // 2]}…{name[-LONGEST_NAME // 2 :]}"
    return escape(name)
