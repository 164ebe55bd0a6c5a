"""The executable paper: one file per dynamics, each written to read like its equation."""

from covey.dynamics.diagonal import diagonal_descent
from covey.dynamics.flow import gradient_flow
from covey.dynamics.normalized import normalized_descent
from covey.dynamics.plain import plain_descent
from covey.dynamics.switching import SwitchAt, SwitchOracle, SwitchSettled
from covey.dynamics.trajectory import Status, Trajectory

__all__ = [
    "Status",
    "SwitchAt",
    "SwitchOracle",
    "SwitchSettled",
    "Trajectory",
    "diagonal_descent",
    "gradient_flow",
    "normalized_descent",
    "plain_descent",
]
