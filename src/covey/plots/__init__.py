"""Displays: one picture a file; the values stay on the object. matplotlib is imported in this room only."""

from covey.plots.cv_curve import CVCurveDisplay
from covey.plots.group_path import GroupPathDisplay
from covey.plots.trajectory import TrajectoryDisplay

__all__ = ["CVCurveDisplay", "GroupPathDisplay", "TrajectoryDisplay"]
