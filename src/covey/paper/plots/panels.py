"""What the displays share."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["Panels"]


class Panels:
    """A plot of one or several panels, kept as `figure_` and `axes_` once it is drawn."""

    figure_: Figure
    axes_: list[Axes]
