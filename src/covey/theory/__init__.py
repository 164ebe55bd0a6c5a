"""The theory as tools: coherence, bounds, time windows, geometry, conservation, margins, the limit of small starts.

Each public function states its formula and its label in the paper. `covey.theory.symbolic` has the sympy versions and
is imported separately.
"""

from covey.theory.assumptions import AssumptionReport, Condition, check_assumptions
from covey.theory.bounds import Bounds, bounds, bounds_from_path
from covey.theory.certified import CoherenceBounds, coherence_bounds
from covey.theory.coherence import Coherence, coherence, coherence_matrix
from covey.theory.conservation import BalanceDrift, balance, balance_drift, balance_increment, drift_against_step
from covey.theory.descent_times import group_noise_bound, opening_scale, rest_time, settle_time
from covey.theory.flow_times import FlowTimes
from covey.theory.geometry import (
    DiagonalNetwork,
    GroupedNetwork,
    Parameterization,
    commutes,
    lie_bracket,
    mirror_pairing,
    span_residual,
    words,
)
from covey.theory.limit import limit_events
from covey.theory.margins import Margins, margins
from covey.theory.mirror import diagonal_mirror, diagonal_potential, drive, follow, mirror_limit
from covey.theory.pilot import Pilot, pilot_fit
from covey.theory.power import PowerBounds, power_bounds
from covey.theory.power_flow import PowerFlowTimes
from covey.theory.windows import TimeWindow, time_window

__all__ = [
    "AssumptionReport",
    "BalanceDrift",
    "Bounds",
    "Coherence",
    "CoherenceBounds",
    "Condition",
    "DiagonalNetwork",
    "FlowTimes",
    "GroupedNetwork",
    "Margins",
    "Parameterization",
    "Pilot",
    "PowerBounds",
    "PowerFlowTimes",
    "TimeWindow",
    "balance",
    "balance_drift",
    "balance_increment",
    "bounds",
    "bounds_from_path",
    "check_assumptions",
    "coherence",
    "coherence_bounds",
    "coherence_matrix",
    "commutes",
    "diagonal_mirror",
    "diagonal_potential",
    "drift_against_step",
    "drive",
    "follow",
    "group_noise_bound",
    "lie_bracket",
    "limit_events",
    "margins",
    "mirror_limit",
    "mirror_pairing",
    "opening_scale",
    "pilot_fit",
    "power_bounds",
    "rest_time",
    "settle_time",
    "span_residual",
    "time_window",
    "words",
]
