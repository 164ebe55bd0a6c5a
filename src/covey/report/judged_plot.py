"""The errors of the candidates, as the report draws them."""

from __future__ import annotations

import numpy as np

from covey.report.axis import Axis
from covey.report.drawing import Plot
from covey.report.numbers import shown
from covey.search.chosen import Judged

__all__ = ["judged_plot"]

# The most numbers below the axis.
MOST_TICKS = 12


def judged_plot(judged: Judged) -> Plot:
    """The candidates' errors against their number of groups, with the chosen model marked.

    Numbers of groups are evenly spaced, since 300 may follow 12.
    """
    x = np.linspace(0, 1, judged.x.size) if judged.x.size > 1 else np.array([0.5])
    step = -(-x.size // MOST_TICKS)
    ticks = [(float(at), f"{k:g}") for at, k in zip(x[::step], judged.x[::step], strict=True)]
    best = float(judged.x[int(np.argmin(judged.values))])
    description = (
        f"Line plot: {judged.label} against the number of groups; it is lowest at {best:g}, and the model has "
        f"{judged.at:g} at {shown(judged.value, 4)}."
    )
    plot = Plot("judged-plot", description, Axis(0.0, 1.0), _range(judged), ticks=ticks)
    if judged.band is not None:
        plot.band(x, judged.values - judged.band, judged.values + judged.band)
    plot.line("curve", (x, judged.values))
    model = float(np.interp(judged.at, judged.x, x))
    plot.mark_model(model)
    plot.dot("chosen", model, judged.value)
    return plot


def _range(judged: Judged) -> Axis:
    """The range of the values; errors far above the best candidate's are cut off."""
    values = judged.values
    band = np.zeros_like(values) if judged.band is None else judged.band
    upper, best = values + band, int(np.argmin(values))
    low, high = float((values - band).min()), float(upper.max())
    if best > 0:
        high = min(high, max(upper[0], upper[best], values[best] + 1.8 * (values[0] - values[best])))
    low, high = min(low, judged.value), max(high, judged.value)
    margin = 0.06 * (high - low) or max(abs(high), 1.0)
    return Axis(low - margin, high + margin)
