"""The HTML page of a fit, section by section."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.report.along import along_plot
from covey.report.axis import Axis
from covey.report.class_section import class_section
from covey.report.effect_section import effect_section
from covey.report.group_table import MOST_SHOWN, group_table, short_name
from covey.report.held_out import HeldOut
from covey.report.nested_section import nested_section
from covey.report.numbers import shown, time
from covey.report.page import escape, fill, page, script_json
from covey.report.plot import LEVEL_END, MOST_NAMED, judged_plot, path_plot, positions, strength_axis, time_axis
from covey.report.remarks import Remark
from covey.report.residuals import residual_section
from covey.report.response_section import response_section
from covey.report.stability_section import stability_section
from covey.report.survival_section import survival_section
from covey.report.timeline import timeline

if TYPE_CHECKING:
    from covey.report.fit import FitReport

__all__ = ["render_page"]

LIMIT = (
    "Groups wake up one after another, strongest first, and all groups that are awake are fitted by {how}. The "
    "fitted model is shown separately at the right, without the groups that turned out not to be needed."
)

# The most characters of column and group names that a page holds for the file of groups.
MOST_LETTERS = 150_000


def render_page(report: FitReport) -> str:
    """The page."""
    frames = report.frames
    times, strengths = time_axis(frames), strength_axis(frames)
    told = _readouts(report)
    unit = "time"
    label = "moves the prediction by" if report.moves else "strength"
    body = fill(
        "fit.html",
        title=escape(report.title),
        estimator=escape(report.estimator),
        lead=_lead(report),
        figures=_figures(report),
        notice=_notice(report.remarks),
        strength_label=escape(report.strength_label),
        strength_unit=_unit(report),
        how_groups_rise=LIMIT.format(how=escape(report.unpenalised)),
        path_plot=path_plot(frames, times, strengths),
        xlabel=f"{unit} (log scale)" if times.log else unit,
        readout=escape(told[frames.chosen]),
        last=str(frames.chosen),
        path_note=_path_note(report),
        timeline=timeline(frames, positions(frames, times), LEVEL_END if frames.apart else 1.0)
        if frames.stepwise and frames.groups
        else "",
        strength_words=_strength_words(report),
        strength_head=label,
        folds_words=f" Folds: in how many of the {report.n_folds} folds the chosen recipe selects the group."
        if report.n_folds
        else "",
        folds_heading='<th scope="col">folds</th>' if report.n_folds else "",
        ratio_words=_ratio_words(report),
        table=group_table(frames, report.effect, report.n_folds, label),
        along=_along(report, times, f"{unit} (log scale)" if times.log else unit),
        effects=_section("effects", "What each term does", effect_section(report.effects, _unit(report)))
        if report.effects
        else "",
        residuals=_section("residuals", "Observed and predicted", residual_section(report.residuals))
        if report.residuals is not None
        else "",
        command=_command(report),
        nested=_nested(report),
        classes=_classes(report),
        responses=_responses(report),
        survival=_survival(report),
        stability=_stability(report),
        choice=_choice(report),
        remarks="".join(_remark(remark) for remark in report.remarks) or "<p>Nothing stands out.</p>",
        settings=_settings(report.settings),
        versions=_settings(report.versions),
        data=script_json(_data(report, times, strengths, told)),
    )
    return page(report.title, body, styles=("fit.css",), script="fit.js")


def _lead(report: FitReport) -> str:
    rows = "" if report.n_rows is None else f"{report.n_rows} rows and "
    what = f"{rows}{report.n_columns} columns in {report.n_groups} groups"
    found = f"<b>{report.n_selected} of {report.n_groups} groups</b>"
    if report.always:
        n = len(report.always)
        what += f", and {n} more that {'is' if n == 1 else 'are'} always in"
        found += f", plus <bdi>{escape(_listed(report.always))}</bdi>"
    verb = "are" if report.responses else "is"
    return (
        f"From {what}, <bdi>{escape(report.target)}</bdi> {verb} predicted with {found}. The model is "
        f"<b>{escape(report.model)}</b>, chosen by {escape(report.how_chosen)}."
    )


def _listed(names: tuple[str, ...]) -> str:
    """The first few names."""
    return ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")


def _unit(report: FitReport) -> str:
    return escape(report.strength_unit) or f"units of <bdi>{escape(report.target)}</bdi>"


def _strength_words(report: FitReport) -> str:
    """An explanation of strength, with the strongest group as the example."""
    first = report.frames.groups[0] if report.frames.groups else None
    strength = 0.0 if first is None else first.strength(report.frames.chosen)
    if first is None or strength == 0 or not report.moves:
        return "Strongest group first; strengths are comparable between groups."
    number = shown(strength)
    unit = f"on the scale of {_unit(report)}" if report.effect else _unit(report)
    return (
        f"Strongest group first. <b><bdi>{short_name(first.name)}</bdi> moves the prediction by {number} {unit}, "
        "one standard deviation</b>: this is how far the group alone moves a typical row from the mean. We call it the "
        "group's strength; it is comparable between groups."
    )


def _ratio_words(report: FitReport) -> str:
    """An explanation of the exponentials of coefficients."""
    if report.effect is None:
        return ""
    if report.frames.outputs:
        return (
            f" Coefficients are shown as {escape(report.effect)}s of each class against the geometric mean of all: "
            "the factor that multiplies its odds when the column increases by one."
        )
    grown = {"odds ratio": "odds", "rate ratio": "rate", "hazard ratio": "hazard"}.get(report.effect, "mean")
    if report.classes:
        grown = f"odds of <bdi>{escape(report.classes[-1])}</bdi> against <bdi>{escape(report.classes[0])}</bdi>"
    return f" The {escape(report.effect)} is the factor that multiplies the {grown} when the column increases by one."


def _along(report: FitReport, times: Axis, xlabel: str) -> str:
    if report.along is None:
        return ""
    return (
        '<figure><p class="note">On the training rows, where later models always look better:</p>'
        f'{along_plot(report.frames, times, report.along)}<p class="xlabel">{xlabel}</p></figure>'
    )


def _nested(report: FitReport) -> str:
    if report.nested is not None:
        body = nested_section(report.nested)
    elif report.no_nested:
        body = f"<p>There is no held-out score: {escape(report.no_nested)}.</p>"
    else:
        return ""
    return _section("nested", "Score on held-out rows", body)


def _classes(report: FitReport) -> str:
    held_out = HeldOut.from_nested(report.nested)
    if held_out is None:
        return ""
    return _section("classes", "Held-out class predictions", class_section(held_out))


def _responses(report: FitReport) -> str:
    return _section("responses", "Each response", response_section(report.responses)) if report.responses else ""


def _stability(report: FitReport) -> str:
    if report.stability is None:
        return ""
    return _section("stability", "Which groups to believe", stability_section(report.stability))


def _survival(report: FitReport) -> str:
    if report.survival is None:
        return ""
    body = survival_section(report.survival, report.nested, report.target)
    return _section("survival", "Survival by predicted risk", body)


def _section(id: str, heading: str, body: str) -> str:
    return f'<section id="{id}" aria-labelledby="{id}-heading"><h2 id="{id}-heading">{heading}</h2>{body}</section>'


def _choice(report: FitReport) -> str:
    """The section on the candidates and their errors."""
    chosen_by = report.judged
    if chosen_by is None:
        return "<p>There was nothing to choose from.</p>"
    told = (
        f"The model was chosen from {chosen_by.n_candidates} candidates by {escape(report.how_chosen)}. The line shows "
        "the best candidate for each number of groups"
    )
    if chosen_by.band is not None:
        told += "; the band is one standard error of the difference from the best candidate"
    label = f"{chosen_by.label[:1].upper()}{chosen_by.label[1:]}"
    return (
        f'<p>{told}.</p><figure><p class="ylabel">{escape(label)}</p>{judged_plot(chosen_by)}'
        '<p class="xlabel">number of groups</p></figure>'
    )


def _figures(report: FitReport) -> str:
    tiles = [(score.label, shown(score.value), score.note) for score in report.scores]
    tiles.append(("Groups selected", str(report.n_selected), _out_of(report)))
    return "".join(
        f"<div><dt>{escape(label)}</dt><dd><span>{escape(value)}</span><small>{escape(note)}</small></dd></div>"
        for label, value, note in tiles
    )


def _out_of(report: FitReport) -> str:
    beside = f", plus {len(report.always)} always in" if report.always else ""
    return f"Of {report.n_groups}{beside}; the model has {report.n_selected_columns} of {report.n_columns} columns."


def _notice(remarks: tuple[Remark, ...]) -> str:
    serious = [remark.heading for remark in remarks if remark.serious]
    if not serious:
        return ""
    return (
        f'<p class="problem">Before you conclude: {escape("; ".join(serious))}. <a href="#mind">What that means</a></p>'
    )


def _readouts(report: FitReport) -> list[str]:
    """The text for each frame."""
    frames, of = report.frames, f"of {report.n_groups + len(report.always)} groups"
    if frames.stepwise:
        told = [
            f"Time {time(t)}: {report.unpenalised} on {awake} {of}" if awake else f"Time {time(t)}: no group"
            for t, awake in zip(frames.times, frames.awake, strict=True)
        ]
    else:
        told = [f"Iteration {time(t)}: {awake} {of}" for t, awake in zip(frames.times, frames.awake, strict=True)]
    told[-1] = f"The fitted model: {report.model}"
    if report.along is not None:
        told = [f"{text}; {report.along.words(i)}" for i, text in enumerate(told)]
    return told


def _path_note(report: FitReport) -> str:
    left_out = report.frames.n_left_out
    if not left_out:
        return ""
    return f'<p class="note">To keep this page small, the {left_out} weakest groups that woke up are not listed.</p>'


def _remark(remark: Remark) -> str:
    remedy = f"<p><b>What to do.</b> {escape(remark.remedy)}</p>" if remark.remedy else ""
    kind = "serious" if remark.serious else "mild"
    return f'<div class="remark {kind}"><h3>{escape(remark.heading)}</h3><p>{escape(remark.meaning)}</p>{remedy}</div>'


def _command(report: FitReport) -> str:
    told = ""
    if report.command:
        told = f'<h3>Command line</h3><pre id="command"><code>{escape(report.command)}</code></pre>'
    if _membership(report):
        instead = ", in case files or names change; pass it as <code>--groups groups-as-they-were.csv</code>"
        told += (
            '<p class="tools paperless live"><button type="button" id="save-groups">Download the groups as CSV</button>'
            f"<span>All columns with their groups{instead if report.command else ''}.</span></p>"
        )
    return told


def _settings(values: Mapping[str, str]) -> str:
    return "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>' for name, value in values.items()
    )


def _data(report: FitReport, times: Axis, strengths: Axis, told: list[str]) -> dict[str, object]:
    """The numbers and sentences that fit.js reads."""
    frames = report.frames
    return {
        "x": positions(frames, times).round(5).tolist(),
        "told": told,
        "top": strengths.high,
        "limit": MOST_SHOWN,
        "groups": [[group.first, group.size, len(group.columns)] for group in frames.groups],
        "series": _series(report),
        "bytes": _dtype(report).itemsize,
        "outputs": max(len(frames.outputs), 1),
        "effect": report.effect,
        "rows": _rows(report),
        "columns": _membership(report),
    }


def _membership(report: FitReport) -> list[list[str]]:
    """One list per group: its name, then its columns. Empty if that would be too large for the page."""
    columns_of: dict[str, list[str]] = {}
    for column, group in report.membership:
        columns_of.setdefault(group, [group]).append(column)
    rows = list(columns_of.values())
    return rows if sum(len(name) for row in rows for name in row) <= MOST_LETTERS else []


def _rows(report: FitReport) -> list[list[object]]:
    """The constant facts of each group for the downloaded table, starting with its name."""
    return [
        [group.name, group.size, None if np.isnan(group.woke) else group.woke, group.folds]
        for group in report.frames.groups
    ]


def _series(report: FitReport) -> str:
    """The numbers of all groups as base64 floats: per group and frame, its facts and then its coefficients."""
    parts = [np.concatenate([group.facts, group.coefs], axis=1).ravel() for group in report.frames.groups]
    dtype = _dtype(report)
    flat = np.concatenate([np.empty(0, dtype), *parts]).astype(dtype.newbyteorder("<"))
    return base64.b64encode(flat.tobytes()).decode()


def _dtype(report: FitReport) -> np.dtype[Any]:
    return report.frames.groups[0].facts.dtype if report.frames.groups else np.dtype(np.float32)
