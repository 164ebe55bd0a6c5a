"""Displays: one picture a file; the values stay on the object. matplotlib is imported in this room only."""

from covey.plots.trajectory import TrajectoryDisplay

__all__ = ["TrajectoryDisplay"]
