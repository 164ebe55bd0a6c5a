"""The common style of all figures. Matplotlib is imported inside functions, so that importing an experiment is fast."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pandas as pd

from covey.optional import optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    Axes = Figure = Any

__all__ = ["COLOURS", "GREY", "MODE_COLOURS", "MODE_NAMES", "Axes", "Figure", "grid", "letter", "render", "styled"]

# Okabe and Ito's palette, safe for colour-blind readers, without yellow (too pale for lines)
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#6b6b6b"
MODE_NAMES = {"text": "the paper's text", "code": "the authors' code"}
MODE_COLOURS = {"text": COLOURS[0], "code": COLOURS[1]}

DOUBLE_COLUMN = 7.0  # inches
RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "lines.linewidth": 1.3,
    "lines.markersize": 4,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "path.simplify": True,
    "path.simplify_threshold": 0.3,
}


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


def grid(n_rows: int, n_columns: int, *, height: float = 2.2, width: float = DOUBLE_COLUMN, **kwargs: Any) -> Any:
    """A figure of `n_rows` x `n_columns` panels, each `height` inches high: ``(figure, 2-d array of axes)``."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height * n_rows), layout="constrained")
    FigureCanvasAgg(figure)  # without pyplot: nothing global, nothing to close
    return figure, figure.subplots(n_rows, n_columns, squeeze=False, **kwargs)


def letter(axes: Axes, text: str, title: str) -> None:
    """Add the panel's letter and title."""
    axes.set_title(f"({text}) {title}", loc="left")


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
