"""Reports: self-contained pages, and the same on a terminal."""

from covey.report.fit import FitReport, fit_report, render, write
from covey.report.held_out import HeldOut

__all__ = ["FitReport", "HeldOut", "fit_report", "render", "write"]
