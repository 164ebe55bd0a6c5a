"""When Algorithm 2 decreases its direction step.

A rule is evaluated after each step, with the magnitudes before and after it, and takes effect at the next step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covey.paper.dynamics import kernels
from covey.paper.dynamics.loop import State
from covey.paper.dynamics.problem import Problem
from covey.validation import FloatArray, positive, whole

__all__ = ["SwitchAt", "SwitchOracle", "SwitchRule", "SwitchSettled", "read_switch"]


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
        """Whether the rule is met after step ``t``."""
        norms = u**depth
        if self.kind == kernels.AT_STEP:
            return t >= self.at_step
        if self.kind == kernels.ORACLE:
            return bool(np.all(norms >= self.target))
        if self.kind == kernels.SETTLED:
            if np.any((norms >= self.target) & (self.target > 0)):
                state.log[kernels.ARMED] = 1
            return state.armed and bool(np.max(np.abs(u - u_old) / np.abs(u_old + self.epsilon)) < self.tol)
        return False


def read_switch(switch: object, problem: Problem, depth: int) -> CompiledRule:
    """Read ``switch=``: None, an iteration, a tolerance, ``"oracle"`` or a rule, with its thresholds for a problem."""
    nothing = np.zeros(problem.groups.n_groups)
    if switch is None:
        return CompiledRule(kernels.NEVER, nothing)
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
        return CompiledRule(kernels.AT_STEP, nothing, at_step=whole(switch.step, "the step of SwitchAt", least=0))
    if isinstance(switch, SwitchSettled):
        tol, epsilon = positive(switch.tol, "tol"), positive(switch.epsilon, "epsilon", zero=True)
        return CompiledRule(kernels.SETTLED, problem.first_norms() / 2, tol, epsilon)
    u_star = np.asarray(switch.u_star, dtype=float)
    if u_star.shape != nothing.shape or not (u_star >= 0).all():
        raise ValueError(f"u_star must hold {nothing.size} non-negative numbers, one per group.")
    return CompiledRule(kernels.ORACLE, u_star**depth / 2)
