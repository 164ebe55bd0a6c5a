"""Gradient descent with weight normalisation: the paper's Algorithm 1, and Algorithm 2 with its switch rules.

A switch rule is evaluated after each step, with the magnitudes before and after it, and takes effect at the next step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from covey.losses import Loss
from covey.paper.dynamics.kernels import ARMED, AT_STEP, NEVER, ORACLE, SETTLED, SWITCH, normalized_steps
from covey.paper.dynamics.loop import Descent, State, Stop, check_directions, check_scale, read_clock, run
from covey.paper.dynamics.problem import Problem
from covey.paper.dynamics.trajectory import Trajectory
from covey.validation import FloatArray, one_of, positive, whole

LARGE = -1.0  # tells the kernel to use eta = 1/u^(2N)


@dataclass(frozen=True)
class SwitchAt:
    """Switch at a given iteration."""

    step: int


@dataclass(frozen=True)
class SwitchSettled:
    """The paper's practical rule: ``max_l |u_l(t+1) - u_l(t)| / |u_l(t) + epsilon| < tol``.

    At the start every magnitude moves by ``2 step_size norm(X_l'y/n)``, which may itself be below ``tol``: the rule
    is meaningless until a magnitude has grown. It is therefore armed only once some group reaches half of its first
    estimate, ``u_l^N >= norm(X_l'y/n) / 2``.
    """

    tol: float = 0.01
    epsilon: float = 1e-12


@dataclass(frozen=True)
class SwitchOracle:
    """The rule of theorem convergence-alg-2, for experiments: ``u_l^N >= u_star_l^N / 2`` for every group.

    The true magnitudes are those of the power N in use: ``u_star_l^N = norm(w_star_l)``.
    """

    u_star: FloatArray


SwitchRule = SwitchAt | SwitchSettled | SwitchOracle


@dataclass(frozen=True)
class CompiledRule:
    """A rule in the form that the kernels use; ``met`` evaluates the same numbers in numpy."""

    kind: int
    target: FloatArray
    tol: float = 0.0
    epsilon: float = 0.0
    at_step: int = 0

    def met(self, state: State, t: int, u_old: FloatArray, u: FloatArray, depth: int) -> bool:
        norms = u**depth
        if self.kind == AT_STEP:
            return t >= self.at_step
        if self.kind == ORACLE:
            return bool(np.all(norms >= self.target))
        if self.kind == SETTLED:
            if np.any((norms >= self.target) & (self.target > 0)):
                state.log[ARMED] = 1
            return bool(state.log[ARMED]) and bool(np.max(np.abs(u - u_old) / np.abs(u_old + self.epsilon)) < self.tol)
        return False


def _read_switch(switch: object, problem: Problem, depth: int) -> CompiledRule:
    """Read ``switch=``: None, an iteration, a tolerance, ``"oracle"`` or a rule, with its thresholds for a problem."""
    nothing = np.zeros(problem.groups.n_groups)
    if switch is None:
        return CompiledRule(NEVER, nothing)
    if isinstance(switch, str):
        if switch != "oracle":
            raise ValueError(f"switch must be None, an iteration, a tolerance, 'oracle' or a rule, not {switch!r}.")
        if problem.w_star is None:
            raise ValueError("switch='oracle' needs the truth: pass w_star=.")
        switch = SwitchOracle(problem.groups.norms(problem.w_star) ** (1 / depth))
    elif isinstance(switch, float | np.floating):
        switch = SwitchSettled(positive(switch, "switch"))
    elif not isinstance(switch, SwitchRule):
        switch = SwitchAt(whole(switch, "switch", least=0))
    if isinstance(switch, SwitchAt):
        return CompiledRule(AT_STEP, nothing, at_step=whole(switch.step, "the step of SwitchAt", least=0))
    if isinstance(switch, SwitchSettled):
        tol, epsilon = positive(switch.tol, "tol"), positive(switch.epsilon, "epsilon", zero=True)
        return CompiledRule(SETTLED, problem.first_norms() / 2, tol, epsilon)
    u_star = np.asarray(switch.u_star, dtype=float)
    if u_star.shape != nothing.shape or not (u_star >= 0).all():
        raise ValueError(f"u_star must hold {nothing.size} non-negative numbers, one per group.")
    return CompiledRule(ORACLE, u_star**depth / 2)


def normalized_descent(
    X: object, y: object, groups: object, *, init_scale: float | FloatArray = 1e-6, step_size: float = 1e-3,
    direction_step: float | Literal["large", "auto"] = "large",
    switch: SwitchRule | int | float | Literal["oracle"] | None = None, n_steps: int = 2000, start: object = None,
    record_every: int = 1, depth: int = 2, w_star: object = None, stop: Stop | None = None, gradient_scale: float = 1.0,
    magnitude_at: Literal["new", "old"] = "new", loss: str | Loss = "squared", offset: ArrayLike | None = None,
    clock: Literal["steps", "loss"] = "steps", reference: bool = False,
) -> Trajectory:  # fmt: skip
    r"""Minimise ``norm(y - X w)^2 / (2 n)`` over ``w_l = u_l^N v_l`` with every direction ``v_l`` kept at unit norm.

    (Or another loss, see `loss`.) With ``g = X'(y - X w)/n`` an iteration is

    .. math::

        z_l = v_l + \eta_l u_l^N g_l, \quad v_l \leftarrow z_l / \|z_l\|, \quad
        u_l \leftarrow u_l + \gamma N u_l^{N-1} v_l^\top g_l,

    the last with ``g`` at the new directions. **Algorithm 1** is ``direction_step="large"``,
    :math:`\eta_l = 1/u_l^{2N}`: then ``v_l`` is the direction of ``w_l + g_l``. **Algorithm 2** starts the same way
    and continues with a small constant :math:`\eta` after the switch: give `direction_step` and `switch`.

    Parameters
    ----------
    X, y : arrays of shape (n, p) and (n,)
        Neither is centred or scaled here.
    init_scale : float or array of shape (L,)
        Start of the magnitudes, alpha in the paper.
    step_size : float
        Step on the magnitudes, gamma.
    direction_step : "large", "auto" or float
        Step on the directions, eta. A number applies after the switch, or from the start when there is none.
        ``"auto"`` is ``4/(9 max_l norm(X_l'y/n)^2)``, lemma direction-bound's limit with the first estimate of the
        largest group.
    switch : None, int, float, "oracle" or a rule
        When to switch from the large direction step to `direction_step`: at an iteration (an int), by the paper's
        practical rule with this tolerance (a float), by the theorem's rule (``"oracle"``, needs `w_star`), or by a
        rule from `covey.paper.dynamics`.
    start : array of shape (p,), optional
        Directions at t = 0, of unit norm in each group; all equal by default. With ``init_scale=path.u[-1]`` and
        ``start=path.v[-1]`` a run continues another.
    depth : int
        The power N, at least 2.
    w_star : array of shape (p,), optional
        The truth, for the recovery error.
    stop : callable ``(t, w) -> bool``, optional
        Called at each record; a true result ends the run.
    gradient_scale : float
        Multiplies every gradient. The authors' code uses 2 (it minimises ``norm(y - X w)^2 / n``), the text 1; the
        two differ in more than speed, see `docs/errata.md`.
    magnitude_at : {"new", "old"}
        Directions at which the magnitude's gradient is evaluated: the text uses the new ones, the authors' code the
        old.
    loss : str or Loss
        The loss of a row, by name or from `covey.losses`: the objective is its mean over rows, and ``y - X w`` becomes
        its residual, minus its derivative in the linear predictor. Losses other than the squared one use the
        plain-numpy step.
    offset : array of shape (n,), optional
        Added to the linear predictor. No intercept is fitted; to use the null model's, give the offset
        ``np.full(n, loss.null(y, weight))``.
    clock : {"steps", "loss"}
        "loss" divides every gradient by the loss (`docs/theory.md`), so that on separable classes the direction of
        ``w`` converges in thousands of steps instead of exponentially many. For ``loss="binomial"``.
    reference : bool
        Use the plain-numpy step instead of the compiled one.

    Examples
    --------
    >>> from covey.datasets import make_group_sparse
    >>> from covey.paper.dynamics import normalized_descent
    >>> data = make_group_sparse(random_state=0)
    >>> path = normalized_descent(data.X, data.y, data.groups, n_steps=800, w_star=data.w_star)
    >>> path.error[-1] < 0.02, sorted(l for l, t in path.woke())
    (np.True_, [0, 1, 2])
    """
    problem = Problem.pose(X, y, groups, w_star, loss, offset)
    depth = whole(depth, "depth", least=2)
    rule = _read_switch(switch, problem, depth)
    if not isinstance(direction_step, str):
        eta = positive(direction_step, "direction_step")
    elif one_of(direction_step, ("large", "auto"), "direction_step") == "auto":
        first = problem.first_norms().max()
        eta = 4 / (9 * first**2) if first > 0 else 1.0
    elif rule.kind != NEVER:
        raise ValueError("switch needs a direction step to switch to: give direction_step a number or 'auto'.")
    else:
        eta = LARGE
    equal = 1 / np.sqrt(problem.groups.sizes[problem.groups.labels])
    method = NormalizedDescent(
        problem=problem, depth=depth, alpha=check_scale(init_scale, problem.groups.n_groups),
        v0=equal if start is None else check_directions(start, problem.groups, unit=True),
        gamma=positive(step_size, "step_size"), eta=eta, rule=rule, scale=positive(gradient_scale, "gradient_scale"),
        old_direction=one_of(magnitude_at, ("new", "old"), "magnitude_at") == "old",
        clock=read_clock(clock, problem.row_loss, depth),
    )  # fmt: skip
    return run(method, n_steps, record_every, stop=stop, reference=reference)


@dataclass(kw_only=True)
class NormalizedDescent(Descent):
    """Algorithms 1 and 2: directions have unit norm, so only magnitudes can diverge."""

    eta: float
    rule: CompiledRule
    old_direction: bool

    def step(self, state: State) -> None:
        """One iteration of the paper's Algorithm 1, or of Algorithm 2 after its switch."""
        u, v, N = state.u, state.v, self.depth
        large = self.eta == LARGE or (self.rule.kind != NEVER and state.switch is None)
        gradient_u_old, gradient_v = self.gradients(u, v)
        new_v = np.empty_like(v)
        for l, G in enumerate(self.problem.groups.lists()):
            eta = 1 / u[l] ** (2 * N) if large else self.eta
            z = v[G] - eta * gradient_v[G]
            norm = np.linalg.norm(z)
            new_v[G] = z / norm if norm > 0 else v[G]
        gradient_u, _ = self.gradients(u, new_v)
        new_u = u - self.gamma * (gradient_u_old if self.old_direction else gradient_u)
        if state.switch is None and self.rule.met(state, state.t + 1, u, new_u, N):
            state.log[SWITCH] = state.t + 1
        state.u, state.v = new_u, new_v

    def twin(self) -> tuple[Callable[..., None], tuple[Any, ...]]:
        rule = self.rule
        more = (self.eta, self.old_direction, rule.kind, rule.tol, rule.epsilon, rule.at_step, rule.target)
        return normalized_steps, more
