"""How the model was chosen: the errors of the candidates, sets of groups that predict as well, and constraints."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from covey.report.drawing import Axis, Plot
from covey.report.page import shown
from covey.search.chosen import Judged

# The most numbers below the axis, and the most rivals of the chosen set of groups that are listed.
MOST_TICKS, MOST_RIVALS = 12, 10


def rivals_of(model: BaseEstimator) -> tuple[dict[Any, Any], ...]:
    """The lines of `rivals_`, with the error, whose name depends on the loss, as a text."""
    if model.rivals_ is None:
        return ()
    table = model.rivals_.head(MOST_RIVALS)
    errors = table.iloc[:, 3].map(lambda error: "" if np.isnan(error) else shown(error, 4))
    return tuple(table.assign(error=errors).to_dict("records"))


def constraints_of(model: BaseEstimator) -> tuple[Any, ...]:
    """The lines of `constraints_`: those that bind first, and of these the ones under the most pressure."""
    table = getattr(model, "constraints_", None)
    if table is None:
        return ()
    ordered = table.sort_values(["binds", "selected", "pressure"], ascending=False, kind="stable")
    return tuple(ordered.itertuples(index=False, name="Constraint"))


def judged_plot(judged: Judged) -> Plot:
    """The candidates' errors against their number of groups, with the chosen model marked.

    Numbers of groups are evenly spaced, since 300 may follow 12.
    """
    x = np.linspace(0, 1, judged.x.size) if judged.x.size > 1 else np.array([0.5])
    step = -(-x.size // MOST_TICKS)
    ticks = [(float(at), f"{k:g}") for at, k in zip(x[::step], judged.x[::step], strict=True)]
    values, best = judged.values, int(np.argmin(judged.values))
    description = (
        f"Line plot: {judged.label} against the number of groups; it is lowest at {judged.x[best]:g}, and the model "
        f"has {judged.at:g} at {shown(judged.value, 4)}."
    )
    band = np.zeros_like(values) if judged.band is None else judged.band
    upper = values + band
    high = upper.max()
    if best > 0:  # errors far above the best candidate's are cut off
        high = min(high, max(upper[0], upper[best], values[best] + 1.8 * (values[0] - values[best])))
    down = Axis.around([(values - band).min(), high, judged.value], 0.06)
    plot = Plot("judged-plot", description, Axis(0.0, 1.0), down, ticks=ticks)
    if judged.band is not None:
        plot.band(x, values - band, upper)
    plot.line("line c1", (x, values))
    model = float(np.interp(judged.at, judged.x, x))
    plot.mark_model(model)
    plot.dot("chosen", model, judged.value)
    return plot
