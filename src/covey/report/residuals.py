"""Observed against predicted values, and residuals: two plots and a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.evidence import NestedScore
from covey.report.axis import Axis
from covey.report.drawing import Ticks, Vector, grid, plot, tick_labels
from covey.report.numbers import shown
from covey.report.quality import in_memory
from covey.validation import FloatArray

__all__ = ["Residuals", "residual_section", "residuals"]

# The most rows to draw, evenly spaced in the order of the table.
MOST_POINTS = 600

# A mean below this share of the largest residual is round-off error.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Residuals:
    """A numeric response and its predictions.

    Attributes
    ----------
    observed, fitted : ndarray, shape (n_rows,)
        The response, and the model's predictions on the training rows.
    held_out : ndarray, shape (n_rows,), or None
        Predictions by refits without the row; NaN if there is none.
    """

    observed: FloatArray
    fitted: FloatArray
    held_out: FloatArray | None


def residuals(model: Any, X: Any, y: Any, offset: Any, nested: NestedScore | None) -> Residuals | None:
    """Predictions of a numeric response; None for classes, survival times and several responses."""
    if X is None or hasattr(model, "classes_") or model.loss_.coupled or model.loss_.vector:
        return None
    shift = {} if offset is None else {"offset": offset}
    held_out = None if nested is None or nested.predictions is None else np.ravel(nested.predictions)
    observed = np.ravel(in_memory(y))
    if held_out is not None and (held_out.shape != observed.shape or np.isnan(held_out).all()):
        held_out = None
    return Residuals(observed, np.ravel(in_memory(model.predict(X, **shift))), held_out)


def residual_section(found: Residuals) -> str:
    """The section, without its heading."""
    held = found.held_out is not None
    predicted = found.held_out if found.held_out is not None else found.fitted
    whose = "by refits that did not see the row" if held else "by the model on its training rows, so optimistic"
    rows = np.flatnonzero(~np.isnan(predicted))
    drawn = rows[np.unique(np.linspace(0, rows.size - 1, min(rows.size, MOST_POINTS)).astype(int))]
    x, y = predicted[drawn], found.observed[drawn]
    few = f" {drawn.size} of {rows.size} rows are drawn." if drawn.size < rows.size else ""
    both = _axis(np.r_[x, y])
    line = f"M{_point(both, both, both.low, both.low)}L{_point(both, both, both.high, both.high)}"
    across, left = _axis(x), _axis(np.r_[y - x, 0.0])
    zero = f"M{_point(across, left, across.low, 0.0)}L{_point(across, left, across.high, 0.0)}"
    return (
        f"<p>Predictions are {whose}. A residual is the observed minus the predicted value.{few}</p>"
        '<div class="effects">'
        f"{_scatter('observed', 'Observed against predicted', x, y, both, both, line)}"
        f"{_scatter('left-over', 'Residual against predicted', x, y - x, across, left, zero)}"
        f"</div>{_numbers(found)}"
    )


def _axis(values: Vector) -> Axis:
    low, high = float(values.min()), float(values.max())
    margin = 0.04 * (high - low) or max(abs(high), 1.0)
    return Axis(low - margin, high + margin)


def _point(across: Axis, values: Axis, x: float, y: float) -> str:
    return f"{1000 * float(across.position(x)):.0f} {1000 * (1 - float(values.position(y))):.0f}"


def _scatter(id: str, title: str, x: Vector, y: Vector, across: Axis, values: Axis, line: str) -> str:
    ticks: Ticks = [(float(across.position(t)), f"{t:g}") for t in across.ticks(6)]
    left, top = 1000 * across.position(x), 1000 * (1 - values.position(y))
    # a dot is a zero-length line with round ends, which keeps its size when the plot is stretched
    dots = "".join(f"M{a:.0f} {b:.0f}h0" for a, b in zip(left, top, strict=True))
    drawing = f'{grid(ticks, values)}<path class="dots" d="{dots}"/><path class="rule" d="{line}"/>'
    return (
        f'<figure class="effect"><h3>{title}</h3>'
        f"{plot(f'{id}-plot', f'Scatter plot: {title.lower()}, {len(x)} rows.', drawing, tick_labels(ticks, values))}"
        '<p class="xlabel">predicted</p></figure>'
    )


def _numbers(found: Residuals) -> str:
    heads, columns = ["training rows"], [_summary(found.observed, found.fitted)]
    if found.held_out is not None:
        heads, columns = ["held-out rows", *heads], [_summary(found.observed, found.held_out), *columns]
    names = "".join(f'<th scope="col">{head}</th>' for head in heads)
    rows = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{column[name]}</td>" for column in columns)}</tr>'
        for name in columns[0]
    )
    return (
        '<div class="scroll"><table class="contrasts" id="residual-table"><thead><tr><th scope="col">residual</th>'
        f"{names}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _summary(observed: FloatArray, predicted: FloatArray) -> dict[str, str]:
    known = ~np.isnan(predicted)
    left = observed[known] - predicted[known]
    most = int(np.argmax(np.abs(left)))
    low, quarter, middle, three, high = np.quantile(left, [0.05, 0.25, 0.5, 0.75, 0.95])
    return {
        "mean": shown(float(left.mean()) if abs(left.mean()) > ROUNDING * np.abs(left).max() else 0.0),
        "standard deviation": shown(float(left.std())),
        "median": shown(float(middle)),
        "middle half": f"{shown(float(quarter))} to {shown(float(three))}",
        "90 % of rows": f"{shown(float(low))} to {shown(float(high))}",
        "largest": f"{shown(float(left[most]))} (row {int(np.flatnonzero(known)[most]) + 1})",
    }
