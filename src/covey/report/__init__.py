"""Reports as self-contained HTML pages and on the terminal."""

from covey.report.fit import FitReport
from covey.report.fit_page import fit_report, render, write

__all__ = ["FitReport", "fit_report", "render", "write"]
