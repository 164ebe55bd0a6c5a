"""The page of a fit."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from covey.report.fit import FitReport

__all__ = ["render_page"]


def render_page(report: FitReport) -> str:
    """The page."""
    rows = "".join(
        f"<tr><td>{html.escape(group.name)}</td><td>{group.strength(report.frames.chosen):.4g}</td></tr>"
        for group in report.frames.groups
    )
    return f"<!doctype html><title>{html.escape(report.title)}</title><table>{rows}</table>"
