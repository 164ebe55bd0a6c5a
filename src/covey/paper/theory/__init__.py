"""The theory as tools: coherence, bounds, time windows, geometry, conservation, margins, the limit of small starts.

Each public function states its formula and its label in the paper. `covey.paper.theory.symbolic` has the sympy versions
and is imported separately.
"""

from covey.paper.theory.assumptions import AssumptionReport, Condition, Pilot, check_assumptions, pilot_fit
from covey.paper.theory.bounds import Bounds, bounds, bounds_from_path
from covey.paper.theory.coherence import Coherence, coherence, coherence_matrix
from covey.paper.theory.conservation import BalanceDrift, balance, balance_drift, balance_increment, drift_against_step
from covey.paper.theory.geometry import (
    DiagonalNetwork,
    GroupedNetwork,
    Parameterization,
    commutes,
    lie_bracket,
    mirror_pairing,
    span_residual,
    words,
)
from covey.paper.theory.limit import limit_events
from covey.paper.theory.margins import Margins, margins
from covey.paper.theory.mirror import diagonal_mirror, diagonal_potential, drive, follow, mirror_limit
from covey.paper.theory.power import PowerBounds, power_bounds
from covey.paper.theory.times import FlowTimes, PowerFlowTimes, group_noise_bound, opening_scale, rest_time, settle_time
from covey.paper.theory.windows import TimeWindow, time_window

__all__ = [
    "AssumptionReport", "BalanceDrift", "Bounds", "Coherence", "Condition", "DiagonalNetwork", "FlowTimes",
    "GroupedNetwork", "Margins", "Parameterization", "Pilot", "PowerBounds", "PowerFlowTimes", "TimeWindow", "balance",
    "balance_drift", "balance_increment", "bounds", "bounds_from_path", "check_assumptions", "coherence",
    "coherence_matrix", "commutes", "diagonal_mirror", "diagonal_potential", "drift_against_step", "drive", "follow",
    "group_noise_bound", "lie_bracket", "limit_events", "margins", "mirror_limit", "mirror_pairing", "opening_scale",
    "pilot_fit", "power_bounds", "rest_time", "settle_time", "span_residual", "time_window", "words",
]  # fmt: skip
