"""Reports as self-contained HTML pages and on the terminal."""

from covey.report.fit import FitReport, fit_report, render, write
from covey.report.held_out import HeldOut

__all__ = ["FitReport", "HeldOut", "fit_report", "render", "write"]
