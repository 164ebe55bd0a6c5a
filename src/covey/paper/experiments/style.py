"""The common style of all figures, and panels that several share; matplotlib is imported when something is drawn."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pandas as pd

from covey.optional import optional
from covey.paper.experiments.base import where
from covey.paper.experiments.curves import series
from covey.paper.experiments.traces import CODE, OFF, TEXT, TRUTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:
    Axes = Figure = Any

# Okabe and Ito's palette, safe for colour-blind readers, without yellow (too pale for lines)
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#6b6b6b"
MODE_NAMES = {TEXT: "the paper's text", CODE: "the authors' code"}
MODE_COLOURS = {TEXT: COLOURS[0], CODE: COLOURS[1]}
ERROR, EPOCH = r"error $\|w - w^\star\|_2^2$", "epoch of the authors' code"
LABELS = {"entry": "coefficient $w_j$", "magnitude": "magnitude $u_l$", "direction": "direction entry $v_{l,i}$"}

DOUBLE_COLUMN = 7.0  # inches
RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans", "font.size": 8, "axes.titlesize": 8.5, "axes.labelsize": 8, "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5, "legend.fontsize": 7.5, "legend.frameon": False, "legend.handlelength": 1.6,
    "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.7, "axes.grid": True,
    "grid.color": "#e4e4e4", "grid.linewidth": 0.5, "axes.axisbelow": True, "lines.linewidth": 1.3,
    "lines.markersize": 4, "xtick.major.width": 0.7, "ytick.major.width": 0.7, "figure.facecolor": "white",
    "savefig.facecolor": "white", "svg.fonttype": "path", "path.simplify": True, "path.simplify_threshold": 0.3,
}  # fmt: skip


def styled(plot: Callable[[pd.DataFrame], Figure]) -> Callable[[pd.DataFrame], Figure]:
    """Draw in the common style, regardless of the user's settings."""

    @functools.wraps(plot)
    def drawn(frame: pd.DataFrame) -> Figure:
        with optional("Drawing"):
            import matplotlib

        with matplotlib.rc_context():
            matplotlib.rcdefaults()
            matplotlib.rcParams.update(RC)
            return plot(frame)

    return drawn


def panels(
    n_rows: int = 1, n_columns: int = 1, *, height: float = 2.2, width: float = DOUBLE_COLUMN, **options: Any
) -> Callable[[Callable[..., None]], Callable[[pd.DataFrame], Figure]]:
    """Make ``plot(frame) -> Figure`` of a function that draws a table into panels, ``draw(frame, first, second, ...)``.

    The panels are `n_rows` x `n_columns`, row by row, each `height` inches high.
    """

    def decorate(draw: Callable[..., None]) -> Callable[[pd.DataFrame], Figure]:
        @styled
        @functools.wraps(draw)
        def plot(frame: pd.DataFrame) -> Figure:
            figure = empty_figure(width, height * n_rows)
            draw(frame, *figure.subplots(n_rows, n_columns, squeeze=False, **options).flat)
            return figure

        return plot

    return decorate


def empty_figure(width: float, height: float) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)  # without pyplot: nothing global, nothing to close
    return figure


def panel(axes: Axes, name: str, title: str, **properties: Any) -> None:
    """Add the panel's letter and title, and set properties of its axes."""
    axes.set(**properties)
    axes.set_title(f"({name}) {title}", loc="left")


def fill_ticks(axes: Axes, values: Iterable[float]) -> None:
    """Ticks at these values of a logarithmic x axis, and nowhere else."""
    places = list(values)
    axes.set_xticks(places, [f"{place:.4g}" for place in places])
    axes.set_xticks([], minor=True)


def render(figure: Figure, name: str) -> dict[str, bytes]:
    """The figure as SVG and PNG, the same bytes for the same figure; `name` makes ids unique on a page."""
    import matplotlib

    out = {}
    look: dict[Any, Any] = {**RC, "svg.hashsalt": name}
    kinds: dict[str, dict[str, Any]] = {"svg": {"metadata": {"Date": None}}, "png": {"dpi": 220}}
    with matplotlib.rc_context(look):
        for kind, options in kinds.items():
            buffer = io.BytesIO()
            figure.savefig(buffer, format=kind, **options)
            out[kind] = buffer.getvalue()
    return out


def draw_curves(axes: Axes, frame: pd.DataFrame, mode: str, quantity: str, *, group_size: int = 1) -> None:
    """Every curve of one quantity: the support in colour by group, the truth dashed, the rest in grey."""
    chosen = where(frame, mode=mode, quantity=quantity)
    indices = sorted(i for i in chosen["index"].unique() if i != OFF)
    groups = sorted({i // group_size for i in indices})
    for i in indices:
        colour = COLOURS[groups.index(i // group_size) % len(COLOURS)]
        label = f"group {i // group_size + 1}" if i % group_size == 0 else None
        axes.plot(*series(frame, mode, quantity, i), color=colour, lw=1.1, label=label)
        for true in where(frame, mode=TRUTH, quantity=quantity, index=i)["value"]:
            axes.axhline(float(true), color=colour, ls="--", lw=0.6, alpha=0.7)
    if (chosen["index"] == OFF).any():
        axes.plot(*series(frame, mode, quantity, OFF), color=GREY, lw=1.1, label="largest outside")
    axes.set(xlabel="iteration", ylabel=LABELS[quantity])
