"""Network: the settings of a path. Settings: the same with every "auto" resolved for a problem."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.preprocess import WorkingProblem
from covey.preprocess.group_weights import read_weights
from covey.validation import FloatArray, boolean, positive, whole

__all__ = [
    "ALGORITHMS",
    "ENGINES",
    "ENTER",
    "UPDATES",
    "Network",
    "Settings",
    "check_engine",
    "check_update",
    "direction_to_user",
    "direction_to_working",
    "read_settings",
    "read_step",
    "start_scale",
    "step_unit",
]

ALGORITHMS = ("single-stage", "two-stage")
ENGINES = ("auto", "screened", "exact")
UPDATES = ("fast", "printed")

# A group is awake once its norm exceeds this share of the largest group correlation with y. A thousandth is far below
# anything a validation set can detect, and late enough that the group is on its final, steep rise.
ENTER = 1e-3

# N^2 gamma u^(2N - 2) at the largest magnitude: the rate at which a settled group returns to its level. For N = 2 it
# makes gamma = 1 / (20 u_max^2), the paper's bound for its analysis.
RETURN_RATE = 0.2

# A group may not grow by more than this factor in one iteration: with the default step it grows by a tenth.
LARGEST_GROWTH = 1e3

# The automatic start. With depth 2 groups grow exponentially, and a smaller start costs little time. With depth N >= 3
# the strongest group wakes up after about N / ((N - 2) RETURN_RATE start^(N - 2)) iterations. The second number limits
# these, which leaves time within the default `max_iter` for groups that are fifty times weaker.
SMALL_START, FIRST_WAKE = 1e-6, 2000.0

# The largest norm at which a group may start, in units of the response's standard deviation.
LARGEST_START = 100.0

# The practical switch rule of Algorithm 2 compares relative changes with tau. They start at 0.1 with the default step;
# at a tenth of that, everything of the size of the signal has been learnt.
SWITCH_SHARE = 0.1


@dataclass(frozen=True)
class Network:
    """The paper's network, trained from a finite start by gradient descent.

    Passed to estimators as ``network=``; its fields are the options of `covey.group_path` that define the descent. They
    are checked on construction.

    Parameters
    ----------
    init_scale : "auto" or float
        Start value of every magnitude (alpha in the paper), for a response of unit standard deviation; with
        ``update="printed"`` on the data's own scale. "auto" is 1e-6 for depth 2, and larger for deeper networks, whose
        groups need a time of ``init_scale^(2 - depth)`` to wake up: 0.0075 for depth 3.
    depth : int
        Power N on the magnitudes, at least 2.
    algorithm : {"single-stage", "two-stage"}
        The paper's Algorithm 1 or Algorithm 2.
    step_size : "auto" or float
        Step on the magnitudes (gamma), on the data's own scale: see `covey.group_path`.
    direction_step : "auto" or float
        Step on the directions (eta) after the switch of the two-stage algorithm, on the data's own scale.
    switch_tol : "auto" or float
        Relative change of the magnitudes below which the two-stage algorithm switches (tau).
    max_iter : int
        The last iteration.
    engine : {"auto", "screened", "exact"}
        Step only the awake groups and integrate the growth of the others ("screened"), or step every group at every
        iteration ("exact"). "auto" is "screened" unless all groups are awake from the start, or nearly so.
    update : {"fast", "printed"}
        The update of one iteration. "fast" moves directions and magnitudes by the same correlation, at the old
        directions, and cuts steps that would oscillate; it is faster, and differs from both the paper's text and the
        authors' code. "printed" is the text of Algorithm 1: the magnitudes move by the correlation at the new
        directions, and no step is cut. It costs two products per iteration and runs in the exact engine.
    raw : bool
        Run on the raw columns, as in the paper: not centred, and therefore without an intercept, neither scaled nor
        orthonormalised, and without group weights. The estimator's `standardize`, `group_weights` and `fit_intercept`
        are then ignored.

    Examples
    --------
    >>> from covey.network import Network
    >>> Network(algorithm="two-stage").options()["init_scale"]
    1e-06
    >>> Network(depth=1)
    Traceback (most recent call last):
        ...
    ValueError: depth must be at least 2, not 1.
    """

    init_scale: float | str = "auto"
    depth: int = 2
    algorithm: str = "single-stage"
    step_size: float | str = "auto"
    direction_step: float | str = "auto"
    switch_tol: float | str = "auto"
    max_iter: int = 100_000
    engine: str = "auto"
    update: str = "fast"
    raw: bool = False

    def __post_init__(self) -> None:
        """Refuse values that are invalid for any problem."""
        whole(self.max_iter, "max_iter")
        check_engine(self.engine)
        check_update(self.update, self.engine)
        boolean(self.raw, "raw")
        _check_start(self.init_scale, whole(self.depth, "depth", least=2))
        read_step(self.step_size)
        _read_stages(self.algorithm, self.direction_step, self.switch_tol)

    @classmethod
    def paper(cls, algorithm: int = 1, **settings: Any) -> Network:
        """The paper's Algorithm 1 or 2 exactly: the printed step on raw columns, without weights or factors.

        Parameters
        ----------
        algorithm : 1 or 2
        **settings
            Any other field: ``step_size`` (gamma), ``direction_step`` (eta), ``switch_tol`` (tau), ``init_scale``
            (alpha), all on the data's own scale, as in `covey.dynamics.normalized_descent`.

        Examples
        --------
        >>> from covey.network import Network
        >>> Network.paper(2, step_size=1e-3, direction_step=1e-3, switch_tol=0.01).algorithm
        'two-stage'
        """
        if algorithm not in (1, 2):
            raise ValueError(f"algorithm must be 1 or 2, the paper's numbers, not {algorithm!r}.")
        options: dict[str, Any] = {"algorithm": ALGORITHMS[algorithm - 1], "update": "printed", "raw": True}
        return cls(**options | settings)

    def options(self) -> dict[str, Any]:
        """Keyword arguments for `PathRunner.run`."""
        made = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "raw"}
        return made | {"init_scale": start_scale(self.init_scale, self.depth)}

    def problem_options(self) -> dict[str, Any]:
        """The options of the problem that the network determines: all of them for raw columns, otherwise none."""
        return {"standardize": False, "group_weights": None, "fit_intercept": False} if self.raw else {}


@dataclass(frozen=True)
class Settings:
    """Numbers that the kernels need, in working coordinates.

    Attributes
    ----------
    depth : int
        N, the power on the magnitudes.
    gamma : float
        Step on the magnitudes.
    eta : float
        Step on the directions after the switch; 0 for the largest stable one, computed at the switch.
    tau : float
        Relative change of the magnitudes below which Algorithm 2 switches; 0 for never.
    speeds : ndarray, shape (n_groups,)
        Growth rate of each group relative to the average: one over its weight.
    start : float
        Magnitude of every group at time zero.
    enter : float
        Norm above which a group is awake.
    printed : bool
        Whether an iteration follows the paper's text, without cutting steps.
    large : float
        The s of the large direction step ``w + s g``: 1 if columns have unit variance.
    """

    depth: int
    gamma: float
    eta: float
    tau: float
    speeds: FloatArray
    start: float
    enter: float
    printed: bool = False
    large: float = 1.0

    def restrict(self, which: NDArray[np.intp]) -> Settings:
        """The settings for some of the groups."""
        return replace(self, speeds=self.speeds[which])


def read_settings(
    problem: WorkingProblem,
    *,
    algorithm: str,
    init_scale: float | str,
    step_size: Any,
    direction_step: Any,
    switch_tol: Any,
    depth: int,
    group_weights: Any,
    update: str = "fast",
) -> Settings:
    """Check the user's parameters and resolve the automatic ones."""
    eta, tau = _read_stages(algorithm, direction_step, switch_tol)
    eta = direction_to_working(problem, eta)
    N = whole(depth, "depth", least=2)
    start = _check_start(init_scale, N)
    printed = update == "printed"
    if printed:
        start *= (problem.column_scale / problem.y_scale) ** (1.0 / N)
    speeds = 1.0 / read_weights(group_weights, problem.ranks)
    norms = problem.group_norms(problem.correlation)
    largest = float(norms.max(initial=0.0))
    fastest = float((norms * speeds).max(initial=0.0))
    step = read_step(step_size)
    if step is None:
        u = fastest ** (1.0 / N)
        gamma = RETURN_RATE / (N * N * u ** (2 * N - 2)) if fastest > 0 else 1.0
    else:
        gamma = step * step_unit(problem, N)
        if not N * gamma * fastest ** ((2 * N - 2) / N) <= LARGEST_GROWTH:
            raise ValueError(
                f"step_size={step:g} lets a group grow more than {LARGEST_GROWTH:g} times in one iteration; use a "
                "smaller one, or 'auto'."
            )
    if tau is None:
        tau = SWITCH_SHARE * N * gamma * fastest ** ((2 * N - 2) / N)
    enter = ENTER * (largest if largest > 0 else 1.0)
    large = problem.column_scale * problem.column_scale if printed else 1.0
    return Settings(N, gamma, eta, tau, speeds, start, enter, printed, large)


def check_engine(engine: Any) -> None:
    """Refuse an unknown engine."""
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(map(repr, ENGINES))}, not {engine!r}.")


def check_update(update: Any, engine: Any = "auto") -> None:
    """Refuse an unknown update, or an engine that does not support it."""
    if update not in UPDATES:
        raise ValueError(f"update must be one of {', '.join(map(repr, UPDATES))}, not {update!r}.")
    if update == "printed" and engine == "screened":
        raise ValueError(
            "update='printed' steps every group at every iteration: leave engine='auto', or use update='fast'."
        )


def start_scale(init_scale: Any, N: int) -> float:
    """The start value of every magnitude, as given or the automatic one for a depth."""
    if not _is_auto(init_scale, "init_scale"):
        return positive(init_scale, "init_scale")
    if N == 2:
        return SMALL_START
    # asleep at the start, for any depth
    asleep = (0.1 * ENTER) ** (1 / N)
    return float(min((N / ((N - 2) * RETURN_RATE * FIRST_WAKE)) ** (1 / (N - 2)), asleep))


def _check_start(init_scale: Any, N: int) -> float:
    """The start value of every magnitude."""
    start = start_scale(init_scale, N)
    if N * np.log(start) > np.log(LARGEST_START):
        raise ValueError(
            f"init_scale={start:g} starts every group at a norm above {LARGEST_START:g} times the response's standard "
            "deviation; the method starts near zero (1e-6 by default)."
        )
    return start


def _read_stages(algorithm: Any, direction_step: Any, switch_tol: Any) -> tuple[float, float | None]:
    """The direction step after the switch, 0 for the automatic one; and tau, 0 for no switch, None for automatic."""
    if algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm must be one of {', '.join(map(repr, ALGORITHMS))}, not {algorithm!r}.")
    given = None if _is_auto(direction_step, "direction_step") else positive(direction_step, "direction_step")
    if algorithm == "two-stage":
        tau = None if _is_auto(switch_tol, "switch_tol") else positive(switch_tol, "switch_tol")
        return (0.0 if given is None else given), tau
    if given is not None:
        raise ValueError(
            "direction_step applies after the switch of algorithm='two-stage'; algorithm='single-stage' always uses "
            "the large step. Leave direction_step='auto' or choose 'two-stage'."
        )
    return 0.0, 0.0


def step_unit(problem: WorkingProblem, N: int) -> float:
    """The factor from a step on the magnitudes on the data's own scale to working coordinates.

    With ``y = s y~`` and ``X = k X~`` (k differs from 1 only for unscaled columns), ``u = (s/k)^(1/N) u~`` and
    ``g = s k g~``, so the same trajectory needs ``gamma~ = gamma s^((2N-2)/N) k^(2/N)``.
    """
    return float(problem.y_scale ** ((2 * N - 2) / N) * problem.column_scale ** (2 / N))


def direction_to_working(problem: WorkingProblem, eta: float) -> float:
    """A step on the directions in working coordinates: ``eta u^N g = eta s^2 u~^N g~``, whatever the columns' scale."""
    return eta * problem.y_scale * problem.y_scale


def direction_to_user(problem: WorkingProblem, eta: float) -> float:
    """The inverse: a step on the directions on the response's own scale."""
    return eta / problem.y_scale / problem.y_scale


def read_step(step_size: Any) -> float | None:
    """The step on the user's scale; None for the automatic one."""
    return None if _is_auto(step_size, "step_size") else positive(step_size, "step_size")


def _is_auto(value: Any, name: str) -> bool:
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f"{name} must be 'auto' or a number above 0, not {value!r}.")
        return True
    return False
