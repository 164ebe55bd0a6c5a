"""Held-out class predictions: a confusion table and a calibration plot."""

from __future__ import annotations

import numpy as np

from covey.report.axis import Axis
from covey.report.drawing import from_top, grid, place, plot, tick_labels
from covey.report.group_table import short_name
from covey.report.held_out import HeldOut
from covey.report.numbers import shown

__all__ = ["class_section"]

# The most classes of a full confusion table; beyond it, the most common mistakes are listed.
MOST_CLASSES = 12
MOST_MISTAKES = 20


def class_section(held_out: HeldOut) -> str:
    """The section, without its heading."""
    n = held_out.n_folds
    told = (
        f"From the same {n} outer folds: each row is predicted by a model that was chosen and fitted without it. "
        f"{held_out.accuracy:.1%} of the rows are classified correctly; the log loss is {shown(held_out.log_loss, 4)}."
    )
    mistakes = _confusion(held_out) if len(held_out.classes) <= MOST_CLASSES else _mistakes(held_out)
    return f'<p>{told}</p><div class="classes"><div>{mistakes}</div><div>{_calibration(held_out)}</div></div>'


def _confusion(held_out: HeldOut) -> str:
    counts = held_out.confusion()
    head = "".join(f'<th scope="col"><bdi>{short_name(name)}</bdi></th>' for name in held_out.classes)
    rows = "".join(_row(name, row, k) for k, (name, row) in enumerate(zip(held_out.classes, counts, strict=True)))
    return (
        '<div class="scroll"><table class="confusion" id="confusion"><caption>Number of rows by true class (down) '
        'and predicted class (across)</caption><thead><tr><th scope="col">true class</th>'
        f'{head}<th scope="col">correct</th></tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _row(name: str, row: np.ndarray, k: int) -> str:
    total = max(int(row.sum()), 1)
    cells = "".join(
        f'<td class="{"hit" if j == k else "miss"}" style="--share:{count / total:.3f}">{count}</td>'
        for j, count in enumerate(row.tolist())
    )
    return f'<tr><th scope="row"><bdi>{short_name(name)}</bdi></th>{cells}<td>{row[k] / total:.0%}</td></tr>'


def _mistakes(held_out: HeldOut) -> str:
    """The most common mistakes, for more classes than a table can show."""
    counts = held_out.confusion()
    np.fill_diagonal(counts, 0)
    order = np.argsort(-counts, axis=None, kind="stable")[:MOST_MISTAKES]
    rows = "".join(
        f"<tr><td><bdi>{short_name(held_out.classes[a])}</bdi></td><td><bdi>{short_name(held_out.classes[b])}</bdi></td>"
        f"<td>{counts[a, b]}</td></tr>"
        for a, b in zip(*np.unravel_index(order, counts.shape), strict=True)
        if counts[a, b]
    )
    return (
        '<div class="scroll"><table class="confusion" id="confusion"><caption>The most common mistakes</caption>'
        '<thead><tr><th scope="col">true class</th><th scope="col">predicted</th><th scope="col">rows</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _calibration(held_out: HeldOut) -> str:
    """Observed shares against predicted probabilities; calibrated probabilities lie on the diagonal."""
    bins, unit = held_out.calibration(), Axis(0.0, 1.0)
    ticks = [(t, f"{t:g}") for t in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)]
    bars = "".join(
        f"M{1000 * b.predicted:.0f} {1000 * from_top(min(b.observed + 2 * b.error, 1.0), unit):.0f}"
        f"V{1000 * from_top(max(b.observed - 2 * b.error, 0.0), unit):.0f}"
        for b in bins
    )
    dots = "".join(f'<i class="dot" style="{place(b.predicted, from_top(b.observed, unit))}"></i>' for b in bins)
    worst = max(bins, key=lambda b: abs(b.observed - b.predicted))
    of = f"of {held_out.classes[1]}" if len(held_out.classes) == 2 else "of the classes"
    description = (
        f"Calibration plot: observed share {of} against the predicted probability in {len(bins)} bins of rows; they "
        f"differ most at a probability of {worst.predicted:.2f}, where the share is {worst.observed:.2f}."
    )
    drawn = plot(
        "calibration-plot",
        description,
        f'{grid(ticks, unit)}<path class="rule" d="M0 1000L1000 0"/><path class="curve" d="{bars}"/>',
        f"{tick_labels(ticks, unit)}{dots}",
    )
    what = f"of <bdi>{short_name(held_out.classes[1])}</bdi>" if len(held_out.classes) == 2 else "of each class, pooled"
    return (
        f'<figure class="calibration"><p class="ylabel">Observed share {what}</p>{drawn}'
        '<p class="xlabel">predicted probability</p></figure>'
        '<p class="note">Calibrated probabilities lie on the dashed line; bars are two standard errors.</p>'
    )
