"""The executable paper: one file per dynamics, each written to read like its equation."""

from covey.paper.dynamics.diagonal import diagonal_descent
from covey.paper.dynamics.flow import gradient_flow
from covey.paper.dynamics.normalized import SwitchAt, SwitchOracle, SwitchSettled, normalized_descent
from covey.paper.dynamics.plain import plain_descent
from covey.paper.dynamics.trajectory import Status, Trajectory

__all__ = [
    "Status", "SwitchAt", "SwitchOracle", "SwitchSettled", "Trajectory", "diagonal_descent", "gradient_flow",
    "normalized_descent", "plain_descent",
]  # fmt: skip
