"""Rules that choose a time on a path, where the time is the only regularisation."""

from covey.stopping.at_time import AtTime
from covey.stopping.base import Choice, PathTask, Stopping
from covey.stopping.discrepancy import Discrepancy
from covey.stopping.information import InformationCriterion
from covey.stopping.window import TheoryWindow

__all__ = ["AtTime", "Choice", "Discrepancy", "InformationCriterion", "PathTask", "Stopping", "TheoryWindow"]
