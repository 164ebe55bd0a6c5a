"""The section on survival times: curves by predicted risk with numbers at risk, hazard ratios, and the baseline."""

from __future__ import annotations

import numpy as np

from covey.evidence import NestedScore
from covey.evidence.nested_result import ALONE
from covey.report.axis import Axis
from covey.report.drawing import Ticks, grid, plot, points, tick_labels
from covey.report.group_table import ratio, short_name
from covey.report.numbers import shown
from covey.report.page import escape
from covey.report.plot import MOST_NAMED, end_labels, swatch
from covey.report.survival_curves import Curve, Ratio, SurvivalPart

__all__ = ["survival_section"]

# The most hazard ratios in this table; the table of groups has all of them.
MOST_RATIOS = 20

# The most strata in the baseline plot.
MOST_STRATA = 60

SURVIVAL, MOST_TICKS = Axis(0.0, 1.0), 6


def survival_section(part: SurvivalPart, nested: NestedScore | None, target: str) -> str:
    """The section, without its heading."""
    return (
        f"<p>{_told(part)}{_concordance(nested)}</p>{_by_risk(part, target)}"
        f"<h3>Hazard ratios</h3>{_ratios(part)}<h3>Baseline</h3>{_baseline(part, target)}"
    )


def _told(part: SurvivalPart) -> str:
    half = (
        "the Kaplan-Meier estimate stays above one half"
        if part.median is None
        else f"the Kaplan-Meier median is {shown(part.median)}"
    )
    return f"The event happened in {part.n_events} of {part.n_rows} rows; {half}."


def _concordance(nested: NestedScore | None) -> str:
    """The held-out concordance, next to chance and the groups that are always in."""
    if nested is None or nested.measure != "concordance":
        return ""
    alone = nested.references.get(ALONE)
    beside = "" if alone is None else f", and {alone.mean:.{nested.digits}f} for the groups that are always in alone"
    return (
        f" Held-out concordance is <b>{nested.mean:.{nested.digits}f} ± {nested.std_error:.{nested.digits}f}</b>, "
        f"compared with 0.5 by chance{beside}."
    )


def _by_risk(part: SurvivalPart, target: str) -> str:
    curves, times = part.thirds, _time_axis(part.thirds)
    if len(curves) == 1:
        told = "The predicted risk is the same for every row, so there are no thirds to compare."
    elif part.n_folds:
        told = (
            f"Rows are ordered by held-out risk: in {part.n_folds} outer folds, each row's risk is predicted by a "
            "model that was chosen and fitted without it. If the model were useless, the curves would differ only by "
            "chance."
        )
    else:
        told = (
            "Rows are ordered by the risk predicted by the model that was fitted to these very rows, so the curves lie "
            "further apart than they would on new rows."
        )
    if part.has_strata:
        told += " Risks are relative to the stratum; the curves pool the strata."
    if part.has_entries:
        told += " Rows are at risk only after their entry, so the early parts of the curves rest on few rows."
    ticks = _ticks(times)
    left = ", ".join(f"{curve.name} {_last(curve):.2f}" for curve in curves)
    description = f"Line plot: Kaplan-Meier curves of {len(curves)} sets of rows by predicted risk; at the end: {left}."
    drawn = plot(
        "survival-plot",
        description,
        f"{grid(ticks, SURVIVAL, MOST_TICKS)}{_lines(curves, times)}",
        f"{tick_labels(ticks, SURVIVAL, MOST_TICKS)}{_names(curves)}",
    )
    return (
        f'<p>{told}</p><figure class="survival"><p class="ylabel">Share of rows without the event '
        f"(Kaplan-Meier), by predicted risk</p>{drawn}"
        f'<p class="xlabel"><bdi>{escape(target)}</bdi></p>{_at_risk(curves, ticks, times)}</figure>'
    )


def _at_risk(curves: tuple[Curve, ...], ticks: Ticks, times: Axis) -> str:
    """The numbers at risk, each below the tick of its time, and the same as a table for screen readers."""
    marks = times.ticks()
    counts = [[curve.at_risk(t) for t in marks] for curve in curves]
    names = [f"{curve.name} ({len(curve.stop)} rows, {curve.n_events} events)" for curve in curves]
    rows = "".join(
        f"<p>{swatch(curve.place)}{name}</p><div>"
        + "".join(f'<b style="left:{100 * x:.2f}%">{n}</b>' for (x, _), n in zip(ticks, own, strict=True))
        + "</div>"
        for curve, name, own in zip(curves, names, counts, strict=True)
    )
    head = "".join(f'<th scope="col">{t:g}</th>' for t in marks)
    body = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{n}</td>" for n in own)}</tr>'
        for name, own in zip(names, counts, strict=True)
    )
    table = (
        '<div class="sr"><table id="at-risk"><caption>Rows at risk</caption><thead><tr><th scope="col">time</th>'
        f"{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
    return f'<div class="at-risk" aria-hidden="true"><p class="head">Rows at risk</p>{rows}</div>{table}'


def _baseline(part: SurvivalPart, target: str) -> str:
    curves = part.baseline[:MOST_STRATA]
    times = _time_axis(curves)
    ticks = _ticks(times)
    left = ", ".join(f"{curve.name} {_last(curve):.2f}" for curve in curves[:MOST_NAMED])
    drawn = plot(
        "baseline-plot",
        f"Line plot: survival of a row at the means of all columns; at the end: {left}.",
        f"{grid(ticks, SURVIVAL, MOST_TICKS)}{_lines(curves, times)}",
        f"{tick_labels(ticks, SURVIVAL, MOST_TICKS)}{_names(curves) if part.has_strata else ''}",
    )
    legend = ""
    if part.has_strata:
        named = "".join(
            f"<span>{swatch(curve.place)}<bdi>{short_name(curve.name)}</bdi></span> " for curve in curves[:MOST_NAMED]
        )
        more = len(part.baseline) - MOST_NAMED
        legend = f'<p class="ylabel legend">{named}{f"and {more} more strata in grey" if more > 0 else ""}</p>'
    strata = " Each stratum has its own baseline." if part.has_strata else ""
    return (
        "<p>The model's survival curve for a row at the means of all columns (Breslow's estimate). For a row with log "
        f"risk r, raise it to the power exp(r).{strata}</p>"
        f'<figure class="survival"><p class="ylabel">Survival at the means</p>{drawn}'
        f'<p class="xlabel"><bdi>{escape(target)}</bdi></p>{legend}</figure>'
    )


def _ratios(part: SurvivalPart) -> str:
    if not part.ratios:
        return "<p>No column is in the model: every row has the same hazard.</p>"
    shown_ratios = part.ratios[:MOST_RATIOS]
    largest = max((abs(_size(one)) for one in shown_ratios), default=0.0) or 1.0
    rows = "".join(_ratio_row(one, largest) for one in shown_ratios)
    rest = len(part.ratios) - len(shown_ratios)
    more = f'<p class="note">And {rest} more columns in weaker groups.</p>' if rest else ""
    return (
        "<p>The factor that multiplies the hazard when a column increases by one, or by one standard deviation, with "
        "all other columns held fixed. Above one, the event comes sooner. Strongest group first. These are estimates "
        "after selection, without confidence intervals.</p>"
        '<div class="scroll"><table class="ratios" id="hazard-ratios"><thead><tr><th scope="col">column</th>'
        '<th scope="col">per unit</th><th scope="col">per standard deviation</th><td></td></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{more}"
    )


def _ratio_row(one: Ratio, largest: float) -> str:
    group = "" if one.group == one.column else f" <small><bdi>{short_name(one.group)}</bdi></small>"
    deviation = "–" if one.per_deviation is None else shown(ratio(one.per_deviation), 3)
    size = _size(one)
    side = "minus" if size < 0 else "plus"
    return (
        f'<tr><th scope="row"><bdi>{short_name(one.column)}</bdi>{group}</th><td>{shown(ratio(one.per_unit), 4)}</td>'
        f'<td>{deviation}</td><td><i class="{side}" style="width:{50 * abs(size) / largest:.1f}%"></i></td></tr>'
    )


def _size(one: Ratio) -> float:
    return one.per_unit if one.per_deviation is None else one.per_deviation


def _time_axis(curves: tuple[Curve, ...]) -> Axis:
    return Axis(0.0, max((curve.end for curve in curves), default=1.0) or 1.0)


def _ticks(times: Axis) -> Ticks:
    return [(float(times.position(t)), f"{t:g}") for t in times.ticks()]


def _last(curve: Curve) -> float:
    return float(curve.y[-1]) if len(curve.y) else 1.0


def _lines(curves: tuple[Curve, ...], times: Axis) -> str:
    return "".join(_line(curve, times) for curve in reversed(curves))


def _line(curve: Curve, times: Axis) -> str:
    """A step curve from one at time zero to the end of the follow-up."""
    x = np.concatenate([[0.0], np.repeat(curve.x, 2), [curve.end]])
    y = np.concatenate([[1.0], np.repeat(np.concatenate([[1.0], curve.y]), 2)[1:]])
    style = f"c{curve.place + 1}" if curve.place < MOST_NAMED else "grey"
    return f'<path class="line {style}" d="{points(times.position(x), 1 - SURVIVAL.position(y))}"/>'


def _names(curves: tuple[Curve, ...]) -> str:
    return end_labels([(curve.name, _last(curve), curve.place) for curve in curves[:MOST_NAMED]], SURVIVAL)
