"""Architectures as tables: boxes (or nodes) and arrows with positions and labels, drawn by one function.

Columns ``kind, panel, x, y, x2, y2, text, role``: a ``node`` is a circle at (x, y); a ``box`` spans (x, y) to (x2, y2);
an ``arrow`` or ``edge`` leads from (x, y) to (x2, y2); a ``note`` is text at (x, y). A ``number`` is a measured value
in ``x``, named by ``text``, for the claims.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from covey.paper.experiments.base import Record
from covey.paper.experiments.style import COLOURS, GREY, Axes

ROLES = {
    "input": "#f2f2f2", "magnitude": "#cfe3f1", "output": "#d3ece2", "layer": "#e9e3f0",
    "group0": "#cfe3f1", "group1": "#f8dcc9", "group2": "#d3ece2", "group3": "#f3dde9",
}  # fmt: skip
COLUMNS = ["kind", "panel", "x", "y", "x2", "y2", "text", "role"]


def item(
    kind: str, panel: int, x: float, y: float, x2: float = 0.0, y2: float = 0.0, text: str = "", role: str = ""
) -> Record:
    return dict(zip(COLUMNS, (kind, panel, x, y, x2, y2, text, role), strict=True))


def number(name: str, value: float) -> Record:
    return item("number", -1, value, 0.0, text=name)


def table(items: list[Record]) -> pd.DataFrame:
    return pd.DataFrame(items, columns=COLUMNS)


def numbers(frame: pd.DataFrame) -> dict[str, float]:
    chosen = frame[frame["kind"] == "number"]
    return dict(zip(chosen["text"], chosen["x"].astype(float), strict=True))


def draw(axes: Axes, frame: pd.DataFrame, panel: int, *, fontsize: float = 7.5) -> None:
    """Draw one panel; equal scales, no axes."""
    from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

    axes.set_aspect("equal")
    axes.axis("off")
    chosen = frame[frame["panel"] == panel].fillna({"text": "", "role": ""})
    look: dict[str, Any] = {"edgecolor": "#333333", "lw": 0.8, "zorder": 3}
    centred: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": fontsize}
    thin: dict[str, Any] = {"mutation_scale": 7, "lw": 0.9, "shrinkA": 0, "shrinkB": 0, "zorder": 1}
    row: Any
    for row in chosen.itertuples():
        fill = ROLES.get(row.role, "white")
        x, y = (row.x + row.x2) / 2, (row.y + row.y2) / 2
        if row.kind in ("edge", "arrow"):
            colour = COLOURS[int(row.role[5:])] if row.role.startswith("group") else GREY
            style, ends = "-" if row.kind == "edge" else "-|>", ((row.x, row.y), (row.x2, row.y2))
            axes.add_patch(FancyArrowPatch(*ends, arrowstyle=style, color=colour, **thin))
            if row.text:
                box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
                axes.text(x, y, row.text, **{**centred, "fontsize": fontsize - 0.5}, zorder=4, bbox=box)
        elif row.kind == "node":
            axes.add_patch(Circle((row.x, row.y), 0.17, facecolor=fill, **look))
            axes.text(row.x, row.y, row.text, **centred, zorder=5)
        elif row.kind == "box":
            rounded = "round,pad=0,rounding_size=0.06"
            width, height = row.x2 - row.x, row.y2 - row.y
            axes.add_patch(FancyBboxPatch((row.x, row.y), width, height, boxstyle=rounded, facecolor=fill, **look))
            axes.text(row.x + width / 2, row.y + height / 2, row.text, **centred, zorder=5)
        elif row.kind == "note":
            axes.text(row.x, row.y, row.text, **centred, color="#333333")
    shapes = chosen[chosen["kind"].isin(["node", "box", "note"])]
    right = shapes["x"].where(shapes["kind"] != "box", shapes["x2"])
    top = shapes["y"].where(shapes["kind"] != "box", shapes["y2"])
    axes.set_xlim(shapes["x"].min() - 0.3, right.max() + 0.3)
    axes.set_ylim(shapes["y"].min() - 0.3, top.max() + 0.3)
