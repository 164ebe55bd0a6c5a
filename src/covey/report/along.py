"""Training errors along the path: the deviance, and the share of misclassified rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.designs import as_design
from covey.report.axis import Axis
from covey.report.drawing import Ticks, Vector, grid, mark_label, plot, points, rule, tick_labels
from covey.report.plot import LEVEL_END, positions, swatch
from covey.report.quality import coded, null_error
from covey.report.traces import Frames
from covey.validation import FloatArray

__all__ = ["Along", "along_plot", "along_the_path"]

DEVIANCE, WRONG = "deviance, relative to the best constant", "share of misclassified rows"


@dataclass(frozen=True)
class Along:
    """Errors on the training rows, at every frame.

    Attributes
    ----------
    deviance : ndarray, shape (n_frames,)
        Relative to the deviance of the best constant.
    wrong : ndarray, shape (n_frames,), or None
        For classes: the share of misclassified rows.
    """

    deviance: FloatArray
    wrong: FloatArray | None

    def words(self, frame: int) -> str:
        """The text for a frame."""
        text = f"deviance {self.deviance[frame]:.0%} of the constant's"
        return text if self.wrong is None else f"{text}, {self.wrong[frame]:.1%} of rows misclassified"


def along_the_path(model: Any, X: Any, y: Any, weight: Any, offset: Any, frames: Frames) -> Along | None:
    """The training errors at the frames' times.

    None for squared loss, where the strengths already show the plateaus, and for survival times, where no constant
    gives a deviance to compare with.
    """
    loss, path = model.loss_, model.path_
    if loss.quadratic or loss.coupled:
        return None
    design, response = as_design(X), coded(model, y)
    q = np.ones(len(response)) if weight is None else np.asarray(weight, dtype=float)
    q = q / q.sum()
    shift = 0.0 if offset is None else np.reshape(np.asarray(offset, dtype=float), response.shape)
    right = response.argmax(axis=1) if loss.vector else response
    deviance, wrong = [], []
    for time in frames.times:
        coef, intercept = path.model(path.index(time))
        coef = np.atleast_2d(coef)
        used = np.flatnonzero(coef.any(axis=0))
        eta = np.asarray(design.predict(used, coef[:, used], np.atleast_1d(intercept)))
        eta = (eta if loss.vector else eta[:, 0]) + shift
        deviance.append(float(q @ loss.deviance(response, eta)))
        wrong.append(float(q @ ((eta.argmax(axis=1) if loss.vector else eta > 0) != right)))
    share = np.array(deviance) / (null_error(model, y, weight, offset) or 1.0)
    return Along(share, np.array(wrong) if hasattr(model, "classes_") else None)


def along_plot(frames: Frames, times: Axis, along: Along) -> str:
    """Both errors against time, on the axis of the path."""
    x = positions(frames, times)
    errors = [along.deviance] if along.wrong is None else [along.deviance, along.wrong]
    values = Axis(0.0, 1.05 * float(max(error.max() for error in errors)))
    ticks: Ticks = [(float(times.position(t)), f"{t:g}") for t in times.ticks()]
    lines = "".join(_line(i, error, x, values, frames) for i, error in enumerate(errors))
    end = ", ".join(f"{error[-1]:.3g}" for error in errors)
    what = "deviance" if along.wrong is None else "deviance and share of misclassified rows"
    description = f"Line plot: {what} on the training rows against time; {end} at the fitted model."
    names = (DEVIANCE, WRONG)[: len(errors)]
    legend = "".join(f"<span>{swatch(i)}{name}</span> " for i, name in enumerate(names))
    drawn = plot(
        "along-plot",
        description,
        f"{grid(ticks, values)}{lines}{rule(1.0)}",
        f"{tick_labels(ticks, values)}{mark_label(1.0, 'the model')}{_ends(errors, values)}",
    )
    return f'<p class="ylabel legend">{legend}</p>{drawn}'


def _line(i: int, error: FloatArray, x: Vector, values: Axis, frames: Frames) -> str:
    end = len(x) - 1 if frames.apart else len(x)
    across, down = x[:end], 1 - values.position(error[:end])
    if frames.stepwise:
        across = np.append(np.repeat(across, 2)[1:], LEVEL_END if frames.apart else 1.0)[: 2 * len(down)]
        down = np.repeat(down, 2)
    return f'<path class="line c{i + 1}" d="{points(across, down)}"/>'


def _ends(errors: list[FloatArray], values: Axis) -> str:
    """Dots at the fitted model."""
    return "".join(
        f'<i class="dot c{i + 1}" style="left:100%;top:{100 * (1 - float(values.position(error[-1]))):.2f}%"></i>'
        for i, error in enumerate(errors)
    )
