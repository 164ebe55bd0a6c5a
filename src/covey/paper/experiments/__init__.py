"""The paper, one file per figure or table: settings, run() -> table, plot(table), claims(table)."""

from covey.paper.experiments.base import Claim, Verdict, judge
from covey.paper.experiments.registry import Experiment, UnknownExperimentError, available, find

__all__ = ["Claim", "Experiment", "UnknownExperimentError", "Verdict", "available", "find", "judge"]
