"""The table of groups: one row per group that wakes up, hidden if the group is not in the fitted model.

fit.js changes the numbers in these rows and their order, never their structure.
"""

from __future__ import annotations

import numpy as np

from covey.report.numbers import shown, time
from covey.report.page import escape
from covey.report.plot import swatch
from covey.report.traces import Frames, GroupTrace
from covey.validation import FloatArray

__all__ = ["MOST_SHOWN", "group_table", "ratio", "short_name"]

# Rows shown before "show all". fit.css hides the rest by position, under `tr:nth-child`.
MOST_SHOWN = 40

# Longer names are shortened.
LONGEST_NAME = 120

# Exponentials of larger numbers overflow.
LARGEST_POWER = 700.0


def group_table(frames: Frames, effect: str | None = None, n_folds: int = 0, label: str = "strength") -> str:
    """The body of the table, strongest group first.

    Parameters
    ----------
    frames : Frames
    effect : str, optional
        The name of a coefficient's exponential.
    n_folds : int
        The number of folds.
    label : str
        The heading of the column of strengths.
    """
    strongest = max((group.strength(frames.chosen) for group in frames.groups), default=0.0) or 1.0
    return "".join(_row(i, group, frames, strongest, effect, n_folds, label) for i, group in enumerate(frames.groups))


def _row(
    i: int, group: GroupTrace, frames: Frames, strongest: float, effect: str | None, n_folds: int, label: str
) -> str:
    facts, coefs = group.at(frames.chosen)
    strength, norm, plus, minus = facts.tolist()
    hidden = "" if strength > 0 else " hidden"
    signs = " ".join(part for part in (f"+{plus:g}" if plus else "", f"−{minus:g}" if minus else "") if part)
    if group.columns and group.size == 1 and not frames.outputs:
        signs = _single(float(coefs[0]), effect)
    elif group.columns:
        signs = _details(group, coefs, signs, frames.outputs, effect)
    always = ' <small class="always">always in</small>' if group.always else ""
    return (
        f'<tr{hidden}><td class="rank">{i + 1}</td>'
        f'<th scope="row">{swatch(i)}<bdi>{short_name(group.name)}</bdi>{always}</th>'
        f'<td class="strength" data-label="{label}"><b>{shown(strength)}</b>'
        f'<i class="bar" style="transform:scaleX({strength / strongest:.3f})"></i></td>'
        f'<td class="norm" data-label="norm">{shown(norm)}</td>'
        f'<td data-label="columns">{group.size}</td><td data-label="woke up at">{time(group.woke)}</td>'
        f"{_folds(group, n_folds)}"
        f'<td class="signs" data-label="coefficients">{signs}</td></tr>'
    )


def _folds(group: GroupTrace, n_folds: int) -> str:
    return "" if group.folds is None else f'<td data-label="folds">{group.folds} of {n_folds}</td>'


def ratio(value: float) -> float:
    """The exponential of a coefficient, without overflow; `ratio` in fit.js gives the same."""
    return float(np.exp(np.clip(value, -LARGEST_POWER, LARGEST_POWER)))


def _single(value: float, effect: str | None) -> str:
    return shown(value, 4) if effect is None else f"{shown(value, 4)} ({escape(effect)} {shown(ratio(value), 4)})"


def _details(group: GroupTrace, coefs: FloatArray, signs: str, outputs: tuple[str, ...], effect: str | None) -> str:
    if outputs:
        table = _many(group, coefs.reshape(len(group.columns), len(outputs)), outputs, effect)
    else:
        table = _one(group, coefs, effect)
    rest = group.size - len(group.columns)
    note = f"<p>The {rest} smallest coefficients are not listed.</p>" if rest else ""
    return f"<details><summary>{signs}</summary>{table}{note}</details>"


def _one(group: GroupTrace, coefs: FloatArray, effect: str | None) -> str:
    """One line per column: its coefficient, its exponential if that has a name, and a bar."""
    largest = float(np.abs(coefs).max(initial=0)) or 1.0
    rows = "".join(
        f'<tr><th scope="row"><bdi>{short_name(column)}</bdi></th><td>{shown(value, 4)}</td>'
        f"{'' if effect is None else f'<td>{shown(ratio(value), 4)}</td>'}"
        f'<td><i class="{_side(value)}" style="width:{50 * abs(value) / largest:.1f}%"></i></td></tr>'
        for column, value in zip(group.columns, coefs.tolist(), strict=True)
    )
    if effect is None:
        return f'<table class="coefs">{rows}</table>'
    head = f'<tr><td></td><th scope="col">coefficient</th><th scope="col">{escape(effect)}</th><td></td></tr>'
    return f'<table class="coefs rated"><thead>{head}</thead><tbody>{rows}</tbody></table>'


def _many(group: GroupTrace, coefs: FloatArray, outputs: tuple[str, ...], effect: str | None) -> str:
    """One line per column and one number per output: the coefficient, or its exponential if that has a name."""
    values = coefs.tolist() if effect is None else [[ratio(v) for v in row] for row in coefs.tolist()]
    head = "".join(f'<th scope="col"><bdi>{short_name(name)}</bdi></th>' for name in outputs)
    cells = ["".join(f"<td>{shown(v, 4)}</td>" for v in row) for row in values]
    rows = "".join(
        f'<tr><th scope="row"><bdi>{short_name(column)}</bdi></th>{row}</tr>'
        for column, row in zip(group.columns, cells, strict=True)
    )
    caption = f"<caption>{escape(effect.capitalize())}s</caption>" if effect else ""
    table = f"{caption}<thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody>"
    return f'<div class="scroll"><table class="coefs many">{table}</table></div>'


def _side(value: float) -> str:
    return "minus" if value < 0 else "plus"


def short_name(name: str) -> str:
    """A name as HTML; the middle of a very long name is left out."""
    if len(name) > LONGEST_NAME:
        name = f"{name[: LONGEST_NAME // 2]}…{name[-LONGEST_NAME // 2 :]}"
    return escape(name)
