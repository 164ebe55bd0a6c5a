"""Reports: self-contained pages, and the same on a terminal."""

from covey.report.fit import FitReport, fit_report, render, write

__all__ = ["FitReport", "fit_report", "render", "write"]
