"""The path in the report: the times and groups that a page keeps, and their plots, with those of training errors."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from covey.designs import as_design
from covey.path import Path
from covey.report.drawing import Axis, Plot, Ticks, Vector, steps
from covey.report.fitted import Fitted
from covey.report.page import MOST_COLOURS, colour
from covey.validation import FloatArray, IntArray

# The most positions of the slider, and how many it has even if coefficients are many.
MOST_FRAMES, FEWEST_FRAMES = 200, 30

# Where the time axis begins, relative to the time at which the first group wakes up.
LEAD_IN = 0.85

# The most numbers in a page of 1.5 MB. A number takes 5.3 bytes (4-byte floats in base64), a group's table row about
# 600, a column's row 100 plus its name.
MOST_NUMBERS = 100_000
MOST_GROUPS = 500
MOST_COLUMNS = 2_000
MOST_COLUMNS_OF_A_GROUP = 200

# With more outputs than this, a table of coefficients would be unreadable.
MOST_OUTPUTS = 12

# float32 overflows at 1e38 and loses digits below 1e-38.
SAFE = 1e30

# Numbers per group and frame besides the coefficients: strength, norm, and counts of positive and negative ones.
N_FACTS = 4

# The most lines that a plot can hold and stay readable, and the most lines of the timeline.
MOST_DRAWN, MOST_LINES = 120, 30

# The ratio of times from which the axis is logarithmic: on a linear one the first groups would be squeezed together.
WIDE_RANGE = 25.0

# The width of the path, how far its last level extends, and the position of the fitted model.
PATH_END, LEVEL_END, MODEL = 0.9, 0.94, 1.0

# The top of the plot, relative to the strongest group of the fitted model.
MOST_OUTGROWN = 2.0

# The least distance of the numbers along the top, relative to the width.
COUNT_GAP = 0.045

WIDTH = Axis(0.0, 1.0)


@dataclass(frozen=True)
class GroupTrace:
    """One group along the path, from the first frame in which it is awake."""

    name: str
    size: int  # its number of columns
    columns: tuple[str, ...]  # those whose coefficients are stored: all, the largest of a wide group, or none
    woke: float  # the time at which it woke up; NaN for a group of a dense model that never did
    folds: int | None  # the number of folds in which it was selected
    first: int  # the first frame in which it is awake
    facts: FloatArray  # per frame: strength, norm of the coefficients, how many are positive, how many negative
    coefs: FloatArray  # per frame: coefficients in the user's columns and units, column by column, output by output
    always: bool = False  # whether it is in every model

    @property
    def strengths(self) -> FloatArray:
        """The strength at each frame from `first` on."""
        return self.facts[:, 0]

    def at(self, frame: int) -> tuple[FloatArray, FloatArray]:
        """Facts and coefficients at a frame; zeros while the group is asleep."""
        if frame < self.first:
            return np.zeros(N_FACTS), np.zeros(self.coefs.shape[1])
        return self.facts[frame - self.first], self.coefs[frame - self.first]

    def strength(self, frame: int) -> float:
        """The strength at a frame."""
        return float(self.at(frame)[0][0])


@dataclass(frozen=True)
class Frames:
    """The stored times, and the groups in order of their strength in the fitted model.

    Models are constant between the times, and the last one is the fitted model.
    """

    times: NDArray[np.float64]
    groups: tuple[GroupTrace, ...]
    awake: NDArray[np.intp]  # the number of groups awake at each frame, including those left out
    n_left_out: int  # groups that woke up but were left out to keep the page small, weakest first
    outputs: tuple[str, ...] = ()  # the names of responses or classes, if a column has several coefficients

    @property
    def chosen(self) -> int:
        """The frame of the fitted model: the last."""
        return len(self.times) - 1


def keep_frames(
    path: Path, folds: IntArray | None = None, *, always: Collection[int] = (), outputs: Sequence[str] = ()
) -> Frames:
    """Choose the times and groups of a path to store; `folds` says in how many folds each group was selected."""
    assert path.strengths is not None
    strengths = path.strengths.toarray()
    order = {l: i for i, (l, _) in enumerate(path.entered)}
    ever = np.flatnonzero(strengths.any(axis=0)).tolist()
    # by strength in the fitted model, and then by the order in which they woke up
    ranked = sorted(ever, key=lambda l: (-strengths[-1, l], order.get(l, len(order)), l))
    kept = ranked[:MOST_GROUPS]
    tables = _by_output(path)
    places = _places(path, tables, kept)
    n_numbers = len(tables) * sum(map(len, places)) + N_FACTS * len(kept)
    n_frames = int(np.clip(MOST_NUMBERS / max(n_numbers, 1), FEWEST_FRAMES, MOST_FRAMES))
    index = _positions(path, n_frames)
    largest = [float(np.abs(values).max(initial=0.0)) for values in (path.coefs.data, strengths)]
    in_range = all(size == 0 or 1 / SAFE <= size <= SAFE for size in largest)
    precision = np.float32 if in_range else np.float64
    woke = dict(path.entered)
    traces = []
    for l, listed in zip(kept, places, strict=True):
        awake = np.flatnonzero(strengths[index, l])
        first = int(awake[0]) if awake.size else len(index)
        begin, end = path.groups.starts[l : l + 2]
        coefs = np.stack([table[index[first:], begin:end].toarray() for table in tables], axis=2)
        norms = np.linalg.norm(coefs.reshape(len(coefs), -1), axis=1)
        facts = (strengths[index[first:], l], norms, (coefs > 0).sum(axis=(1, 2)), (coefs < 0).sum(axis=(1, 2)))
        traces.append(
            GroupTrace(
                name=str(path.groups.names[l]),
                size=int(end - begin),
                columns=tuple(path.groups.column_name(int(path.groups.members[j])) for j in listed),
                woke=float(woke.get(l, np.nan)),
                folds=None if folds is None else int(folds[l]),
                first=first,
                facts=np.column_stack(facts).astype(precision),
                coefs=coefs[:, listed - begin].reshape(len(coefs), listed.size * len(tables)).astype(precision),
                always=l in always,
            )
        )
    return Frames(
        times=np.asarray(path.times, dtype=float)[index],
        groups=tuple(traces),
        awake=np.count_nonzero(strengths[index], axis=1),
        n_left_out=len(ranked) - len(kept),
        outputs=tuple(outputs) if len(tables) > 1 else (),
    )


def _by_output(path: Path) -> list[sp.csr_array]:
    """The coefficients of each output, ordered by group."""
    groups, m = path.groups, path.n_outputs
    if path.parts is not None:
        width = groups.members.size
        return [sp.csr_array(path.parts[:, k * width : (k + 1) * width]) for k in range(m)]
    return [sp.csr_array(path.coefs[:, k * groups.n_columns + groups.members]) for k in range(m)]


def _places(path: Path, tables: list[sp.csr_array], kept: list[int]) -> list[NDArray[np.intp]]:
    """The indices of the columns stored for each group: in a wide group, those with the largest coefficients."""
    last = np.max([np.abs(table[[-1]]).toarray().ravel() for table in tables], axis=0)
    largest = np.max([np.abs(table).max(axis=0).toarray().ravel() for table in tables], axis=0)
    found, room = [], MOST_COLUMNS // len(tables) if len(tables) <= MOST_OUTPUTS else 0
    for l in kept:
        begin, end = path.groups.starts[l : l + 2]
        places = np.arange(begin, end)
        if places.size > MOST_COLUMNS_OF_A_GROUP:
            size = last[begin:end] if last[begin:end].any() else largest[begin:end]
            places = begin + np.sort(np.argsort(-size, kind="stable")[:MOST_COLUMNS_OF_A_GROUP])
        if places.size > room:
            places = places[:0]
        room -= places.size
        found.append(places)
    return found


def _positions(path: Path, n_frames: int) -> NDArray[np.intp]:
    """Indices of recorded times: all, or if there are too many some of them, evenly spaced, and the last two."""
    last = len(path) - 1
    if last < n_frames:
        return np.arange(last + 1)
    return np.unique(np.append(np.linspace(0, last, n_frames - 1).round(), last - 1).astype(np.intp))


def time_axis(frames: Frames) -> Axis:
    """From shortly before the first event to the end of the path, with room for the fitted model."""
    end = float(frames.times[-2]) or 1.0
    first_wake = min((group.woke for group in frames.groups if group.woke > 0), default=end)
    low = min(max(float(frames.times[0]), LEAD_IN * first_wake), 0.9 * end)
    return Axis(low, end, log=low > 0 and end > WIDE_RANGE * low, end=PATH_END)


def positions(frames: Frames, times: Axis) -> Vector:
    """Positions of the frames on the time axis; the fitted model lies at the right edge."""
    x = times.position(frames.times)
    x[-1] = MODEL
    return x


def strength_axis(frames: Frames) -> Axis:
    """From zero to slightly above the strongest group; strengths far above the fitted model are cut off.

    Least squares on many similar groups can make their strengths arbitrarily large.
    """
    top = max((float(group.strengths.max(initial=0)) for group in frames.groups), default=0.0)
    in_model = max((group.strength(frames.chosen) for group in frames.groups), default=0.0)
    top = min(top, MOST_OUTGROWN * in_model) if in_model > 0 else top
    return Axis(0.0, 1.05 * top if top > 0 else 1.0)


def path_view(frames: Frames, along: Along | None) -> dict[str, object]:
    """The plot of the path and what lies around it: counts, crosses, timeline, and the plot of training errors."""
    times, strengths = time_axis(frames), strength_axis(frames)
    x, shown = positions(frames, times), list(enumerate(frames.groups[:MOST_DRAWN]))
    n, named = len(shown), [(i, group, group.strength(frames.chosen)) for i, group in shown[:MOST_COLOURS]]
    description = (
        f"Line plot: strength of {n} group{'s' if n != 1 else ''} against time; the fitted model is at the right edge. "
        "The values are in the table of selected groups below."
    )
    ticks = [(float(times.position(t)), f"{t:g}") for t in times.ticks()]
    plot = Plot("path-plot", description, WIDTH, strengths, ticks=ticks)
    for i, group in reversed(shown):
        plot.line(f"line {colour(i)}", *_levels(group, x, frames), group=i)
    plot.mark_model(MODEL)
    plot.name_ends((group.name, strength, i) for i, group, strength in named if strength > 0)
    drawn = [(i, group) for i, group in enumerate(frames.groups) if group.strengths.any()][:MOST_LINES]
    drawn.sort(key=lambda one: (one[1].first, one[0]))
    return {
        "plot": plot,
        "dots": [(i, float(plot.top(strength)), strength > 0) for i, _, strength in named],
        "counts": count_ticks(frames, x),
        "crosses": [float(plot.top(group.strength(frames.chosen - 1))) for _, group, strength in named if not strength],
        "path_end": LEVEL_END,
        "xlabel": "time (log scale)" if times.log else "time",
        "timeline": [(group, colour(i), float(x[group.first]), frames.times[group.first]) for i, group in drawn],
        "n_undrawn": len(frames.groups) - len(drawn),
        "along": None if along is None else _along_plot(along, x, ticks),
    }


def count_ticks(frames: Frames, x: Vector) -> Ticks:
    """The number of groups in the model wherever it changes, thinned out to stay readable."""
    changes = np.flatnonzero(np.diff(frames.awake, prepend=-1))
    found: Ticks = []
    for i in sorted({*changes.tolist(), len(x) - 1}, reverse=True):
        if not found or found[-1][0] - x[i] >= COUNT_GAP:
            found.append((float(x[i]), str(frames.awake[i])))
    return found[::-1]


def _levels(group: GroupTrace, x: Vector, frames: Frames) -> list[tuple[Vector, Vector]]:
    """The steps of a group on the path, up from zero where it enters; none if only the fitted model has it."""
    if group.first >= frames.chosen:
        return []
    across, up = steps(x[group.first : -1], group.strengths[:-1], LEVEL_END)
    return [(np.r_[across[0], across], np.r_[0.0, up])]


@dataclass(frozen=True)
class Along:
    """Errors on the training rows, at every frame."""

    deviance: FloatArray  # relative to the deviance of the best constant
    wrong: FloatArray | None  # for classes: the share of misclassified rows

    def words(self, frame: int) -> str:
        """The text for a frame."""
        text = f"deviance {self.deviance[frame]:.0%} of the constant's"
        return text if self.wrong is None else f"{text}, {self.wrong[frame]:.1%} of rows misclassified"


def along_the_path(fit: Fitted, frames: Frames) -> Along | None:
    """The training errors at the frames' times.

    None for squared loss, where the strengths already show the plateaus, and for survival times, where no constant
    gives a deviance to compare with.
    """
    model, loss, path = fit.model, fit.model.loss_, fit.model.path_
    if fit.X is None or loss.quadratic or loss.survival:
        return None
    design = model.expansion_.design(fit.X) if hasattr(model, "expansion_") else as_design(fit.X)
    y, q = fit.response.y, fit.row_weight / fit.row_weight.sum()
    counts = np.ones(len(y)) if fit.weight is None else np.asarray(fit.weight, dtype=float)
    counts = counts / counts.sum()
    deviance, wrong = [], []
    for time in frames.times:
        coef, intercept = path.model(path.index(time))
        coef = np.atleast_2d(coef)
        used = np.flatnonzero(coef.any(axis=0))
        eta = np.asarray(design.predict(used, coef[:, used], np.atleast_1d(intercept)))
        eta = (eta if loss.vector else eta[:, 0]) + fit.shift
        deviance.append(float(loss.on(y, q).deviance(eta)))
        if hasattr(model, "classes_"):
            fitted = loss.with_thresholds(y, eta, q) if loss.coupled else loss
            likeliest = fitted.probabilities(eta.reshape(len(q), -1)).argmax(axis=1)
            wrong.append(float(counts @ (likeliest != loss.classes(y))))
    share = np.array(deviance) / (fit.null_error or 1.0)
    return Along(share, np.array(wrong) if hasattr(model, "classes_") else None)


def _along_plot(along: Along, x: Vector, ticks: Ticks) -> Plot:
    """The training errors against time, on the axis of the path."""
    errors = [along.deviance] if along.wrong is None else [along.deviance, along.wrong]
    what = "deviance" if along.wrong is None else "deviance and share of misclassified rows"
    end = ", ".join(f"{error[-1]:.3g}" for error in errors)
    description = f"Line plot: {what} on the training rows against time; {end} at the fitted model."
    values = Axis(0.0, 1.05 * float(max(error.max() for error in errors)))
    plot = Plot("along-plot", description, WIDTH, values, ticks=ticks)
    for i, error in enumerate(errors):
        plot.line(f"line {colour(i)}", steps(x[:-1], error[:-1], LEVEL_END))
        plot.dot(colour(i), MODEL, error[-1])
    plot.mark_model(MODEL)
    return plot
