"""The page of a fit: every section, in order."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.report.axis import Axis
from covey.report.group_table import MOST_SHOWN, group_table
from covey.report.numbers import iteration, shown
from covey.report.page import escape, fill, page, script_json
from covey.report.plot import curve_axis, curve_plot, path_plot, strength_axis, time_axis
from covey.report.remarks import Remark

if TYPE_CHECKING:
    from covey.report.fit import FitReport

__all__ = ["render_page"]

SPARSE = "Groups wake up one after another, the strongest first, and the time of stopping decides how many there are."
DENSE = "In this dense network all groups grow together, and the time of stopping decides how far."


def render_page(report: FitReport) -> str:
    """The page."""
    frames, curve = report.frames, report.curve
    times, strengths = time_axis(frames, curve), strength_axis(frames)
    scores = None if curve is None else curve_axis(curve, times)
    label = f"The model was stopped at iteration {iteration(report.time)}"
    mark = float(times.position(report.time))
    body = fill(
        "fit.html",
        title=escape(report.title),
        estimator=escape(report.estimator),
        lead=_lead(report),
        figures=_figures(report),
        notice=_notice(report.remarks),
        strength_label=escape(report.strength_label),
        target=escape(report.target),
        how_groups_rise=DENSE if report.dense else SPARSE,
        path_plot=path_plot(frames, times, strengths, label, report.restarted),
        curve_section=""
        if curve is None or scores is None
        else f'<p class="ylabel">{_capital(escape(curve.label))}{_band_words(report)}</p>'
        + curve_plot(curve, times, scores, mark, report.time, report.restarted),
        xlabel="iteration (log scale)" if times.log else "iteration",
        slider=f"{1000 * mark:.3f}",
        readout=escape(_readouts(report)[frames.chosen]),
        jumps=_jumps(report),
        path_note=_path_note(report),
        table=group_table(frames),
        remarks="".join(_remark(remark) for remark in report.remarks) or "<p>Nothing stands out.</p>",
        settings=_settings(report.settings),
        versions=_settings(report.versions),
        data=script_json(_data(report, times, strengths, scores)),
    )
    return page(report.title, body, styles=("fit.css",), script="fit.js")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lead(report: FitReport) -> str:
    rows = "" if report.n_rows is None else f"{report.n_rows} rows and "
    what = f"{rows}{report.n_columns} columns in {report.n_groups} groups"
    found = f"<b>{report.n_selected} of {report.n_groups} groups</b>"
    return (
        f"From {what}, <bdi>{escape(report.target)}</bdi> is predicted with {found}. The path was stopped at iteration "
        f"{iteration(report.time)}, chosen by {escape(report.how_chosen)}."
    )


def _figures(report: FitReport) -> str:
    tiles = [(score.label, shown(score.value), score.note) for score in report.scores]
    tiles.append(("Groups selected", str(report.n_selected), _out_of(report)))
    return "".join(
        f"<div><dt>{escape(label)}</dt><dd><span>{escape(value)}</span><small>{escape(note)}</small></dd></div>"
        for label, value, note in tiles
    )


def _out_of(report: FitReport) -> str:
    return f"Of {report.n_groups}; they hold {report.n_selected_columns} of {report.n_columns} columns."


def _notice(remarks: tuple[Remark, ...]) -> str:
    serious = [remark.heading for remark in remarks if remark.serious]
    if not serious:
        return ""
    return (
        f'<p class="problem">Before you conclude: {escape("; ".join(serious))}. <a href="#mind">What that means</a></p>'
    )


def _band_words(report: FitReport) -> str:
    assert report.curve is not None
    return "; the band is one standard error" if report.curve.band is not None else ""


def _readouts(report: FitReport) -> list[str]:
    """What is said of each frame: the same words as fit.js puts together."""
    frames, told = report.frames, _curve_words(report)
    return [
        f"Iteration {iteration(t)}: {awake} of {report.n_groups} groups" + (f"; {told[i]}" if told else "")
        for i, (t, awake) in enumerate(zip(frames.times, frames.awake, strict=True))
    ]


def _curve_words(report: FitReport) -> list[str]:
    curve = report.curve
    if curve is None:
        return []
    values, r2 = curve.values[curve.position(report.frames.times)], curve.r2(report.frames.times)
    if r2 is not None:
        return [f"held-out error {shown(v, 4)}, R² {shown(r)}" for v, r in zip(values, r2, strict=True)]
    return [f"{curve.label} {shown(v, 5)}" for v in values]


def _jumps(report: FitReport) -> str:
    """Buttons for the times that matter."""
    frames, curve = report.frames, report.curve
    wanted: dict[str, float] = {} if curve is None else dict(curve.rules)
    if report.time not in wanted.values():
        wanted = {"chosen": report.time, **wanted}
    buttons = []
    for name, time in sorted(wanted.items(), key=lambda item: item[1]):
        frame = int(np.searchsorted(frames.times, time, side="right")) - 1
        used = " (chosen)" if time == report.time and name != "chosen" else ""
        pressed = "true" if frame == frames.chosen else "false"
        rule = "" if name == "chosen" else " rule"
        label = f"{escape(name)}{rule}: {iteration(time)}{used}"
        buttons.append(f'<button type="button" data-frame="{frame}" aria-pressed="{pressed}">{label}</button>')
    return "".join(buttons)


def _path_note(report: FitReport) -> str:
    notes = []
    if report.restarted:
        when = " and ".join(iteration(time) for time in report.restarted)
        notes.append(
            f"At iteration {when}, where a dotted line stands, the path was restarted: groups that the model can do "
            "without were dropped, the others were fitted again, and the network ran on from there. So the lines jump, "
            "and a group that was dropped may wake up again."
        )
    if report.curve is not None and report.curve.times[-1] > 1.02 * report.frames.times[-1]:
        notes.append(
            f"The model was fitted up to iteration {iteration(report.frames.times[-1])} and no further, so the lines "
            "and the slider end there."
        )
    if report.frames.n_left_out:
        left_out = report.frames.n_left_out
        notes.append(f"To keep this page small, the {left_out} weakest groups that woke up are not listed here.")
    return f'<p class="note">{" ".join(notes)}</p>' if notes else ""


def _remark(remark: Remark) -> str:
    remedy = f"<p><b>What to do.</b> {escape(remark.remedy)}</p>" if remark.remedy else ""
    kind = "serious" if remark.serious else "mild"
    return f'<div class="remark {kind}"><h3>{escape(remark.heading)}</h3><p>{escape(remark.meaning)}</p>{remedy}</div>'


def _settings(values: Mapping[str, str]) -> str:
    return "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>' for name, value in values.items()
    )


def _data(report: FitReport, times: Axis, strengths: Axis, scores: Axis | None) -> dict[str, object]:
    """What fit.js reads: numbers, and sentences made of numbers."""
    frames, curve = report.frames, report.curve
    data: dict[str, object] = {
        "times": frames.times.tolist(),
        "x": times.position(frames.times).round(5).tolist(),
        "chosen": frames.chosen,
        "awake": frames.awake.tolist(),
        "total": report.n_groups,
        "top": strengths.high,
        "limit": MOST_SHOWN,
        "groups": [[group.first, group.size, len(group.columns)] for group in frames.groups],
        "series": _series(report),
        "bytes": _dtype(report).itemsize,
    }
    if curve is not None and scores is not None:
        at = curve.position(frames.times)
        y = 1 - scores.position(curve.values[at])
        data["curve"] = {"y": y.round(4).tolist(), "told": _curve_words(report)}
    return data


def _series(report: FitReport) -> str:
    """Every group's numbers, frame after frame: its facts, then its coefficients; floats in base64."""
    parts = [np.concatenate([group.facts, group.coefs], axis=1).ravel() for group in report.frames.groups]
    dtype = _dtype(report)
    flat = np.concatenate([np.empty(0, dtype), *parts]).astype(dtype.newbyteorder("<"))
    return base64.b64encode(flat.tobytes()).decode()


def _dtype(report: FitReport) -> np.dtype[Any]:
    return report.frames.groups[0].facts.dtype if report.frames.groups else np.dtype(np.float32)
