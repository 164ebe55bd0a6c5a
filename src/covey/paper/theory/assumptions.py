"""Check whether data meet the theorems' conditions, and explain what a violation means."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from covey.designs import Design
from covey.groups import Groups
from covey.paper.dynamics.problem import as_coefficients
from covey.paper.theory.blocks import column_norms, correlate, fitted, read_design
from covey.paper.theory.bounds import Bounds, bounds
from covey.paper.theory.coherence import Coherence, coherence
from covey.search.limit_path import limit_path
from covey.validation import FloatArray, as_response, check_scale, name_columns, one_of, whole

# A residual sum of squares below this share of that of the response is round-off error.
EXACT = 1e-18


@dataclass(frozen=True)
class Condition:
    """One condition: the required and the measured value, and what a violation means in practice.

    `relation` reads ``measured relation required``. `label` is the theorem or lemma that requires it.
    """

    name: str
    label: str
    measured: float
    relation: str
    required: float
    meaning: str

    @property
    def passed(self) -> bool:
        if self.relation == "<":
            return self.measured < self.required
        return self.measured <= self.required if self.relation == "<=" else self.measured >= self.required


@dataclass(frozen=True)
class AssumptionReport:
    """The result of `check_assumptions`; print it, or use `to_frame`.

    `bounds` has all constants, with the magnitudes, the noise and the settings used here; `estimated` says whether the
    truth was estimated by a pilot fit.
    """

    conditions: tuple[Condition, ...]
    coherence: Coherence
    bounds: Bounds
    estimated: bool

    @property
    def guaranteed(self) -> bool:
        """Whether every condition holds, so that the theorem applies."""
        return all(condition.passed for condition in self.conditions)

    def __getitem__(self, name: str) -> Condition:
        for condition in self.conditions:
            if condition.name == name:
                return condition
        raise KeyError(f"no condition is called {name!r}; there are {', '.join(c.name for c in self.conditions)}")

    def to_frame(self) -> pd.DataFrame:
        """One row per condition."""
        return pd.DataFrame(
            [(c.name, c.measured, c.relation, c.required, c.passed, c.label, c.meaning) for c in self.conditions],
            columns=["condition", "measured", "relation", "required", "passed", "label", "meaning"],
        )

    def __str__(self) -> str:
        b = self.bounds
        source = "estimated by a pilot fit" if self.estimated else "given"
        count = sum(c.passed for c in self.conditions)
        lines = [
            f"{count} of {len(self.conditions)} conditions met: "
            + ("the guarantee applies." if self.guaranteed else "the guarantee does not apply."),
            f"n={b.n}, p={b.p}, {b.L} groups; truth {source}: {b.s} groups, u* in [{b.u_min:.4g}, {b.u_max:.4g}], "
            f"epsilon={b.epsilon:.4g}, zeta={b.zeta_corrected:.4g}",
            "",
            f"  {'condition':<34} {'measured':>11}    {'required':>11}",
        ]
        for c in self.conditions:
            mark = "pass" if c.passed else "FAIL"
            lines.append(f"  {c.name:<34} {c.measured:>11.4g} {c.relation:>2} {c.required:>11.4g}  {mark}")
            if not c.passed:
                lines.extend(textwrap.wrap(c.meaning, 78, initial_indent="      ", subsequent_indent="      "))
        return "\n".join(lines)


def check_assumptions(
    X: object, y: ArrayLike, groups: object = None, *, coef: ArrayLike | None = None, sigma: float | None = None,
    epsilon: float | str | None = None, algorithm: int = 2, init_scale: float = 1e-6, step_size: float | None = None,
    direction_step: float | None = None,
) -> AssumptionReport:  # fmt: skip
    """Check the conditions of Theorem convergence-alg-1 or -2, by `algorithm`, on data, and explain violations.

    Parameters
    ----------
    X, y : the data, as they would be fitted
        The model has no intercept: centre both first.
    coef : array, shape (p,), optional
        The true or a fitted coefficient vector, which gives u*, s and the noise ``X'(y - X coef)/n``. By default from
        a pilot fit.
    sigma : float, optional
        Noise standard deviation; by default estimated from the residuals.
    epsilon : float, "statement" or "proof", optional
        As in `bounds`: the corollary's by default.
    init_scale, step_size, direction_step : float, optional
        The settings to check, in the given units of X and y, as for `covey.paper.dynamics.normalized_descent`,
        `covey.paper.NetworkRegressor.paper`, and any network with ``standardize=False``. `step_size` defaults to the
        largest allowed; `direction_step` is checked if given.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.sign(rng.standard_normal((150, 300)))
    >>> w = np.r_[np.full(9, 10.0), np.zeros(291)]
    >>> report = check_assumptions(X, X @ w + 0.5 * rng.standard_normal(150), 3, coef=w, sigma=0.5)
    >>> report.guaranteed, report["delta_out"].passed, report["step_size"].passed
    (False, False, True)
    """
    one_of(algorithm, (1, 2), "algorithm")
    X, groups = read_design(X, groups)
    n = X.shape[0]
    response = as_response(y, n)
    check_scale(response, "y")
    if coef is None:
        pilot = pilot_fit(X, response, groups)
        w, sigma_found = pilot.coef, pilot.sigma
    else:
        w = as_coefficients(coef, "coef", groups.n_columns)
        check_scale(w, "coef")
        sigma_found = float(np.sqrt(np.mean((response - fitted(X, w)) ** 2)))
    if not np.any(w):
        raise ValueError(
            "A pilot fit finds no group with signal in these rows, and the conditions are about groups that have some; "
            "check_assumptions(..., coef=) takes coefficients that are known."
        )
    leftover = correlate(X, response - fitted(X, w)) / n
    if not np.isfinite(leftover).all():
        raise ValueError("Products of values in X or y overflow: use other units.")
    if sigma is None and sigma_found > 0:
        sigma = sigma_found
    if sigma is None and epsilon is None:
        raise ValueError("The data are fitted exactly, so sigma cannot be estimated: give epsilon= or sigma=.")
    limits = bounds(
        np.sqrt(groups.norms(w)), n=n, p=groups.n_columns, L=groups.n_groups, sigma=sigma, epsilon=epsilon,
        noise=float(np.abs(leftover).max()), group_noise=float(groups.norms(leftover).max()),
        init_scale=init_scale, step_size=step_size, group_size=int(groups.sizes.max()),
    )  # fmt: skip
    found = coherence(X, groups)
    conditions = _conditions(X, groups, found, limits, algorithm)
    if algorithm == 2 and direction_step is not None:
        conditions += _direction_conditions(limits, direction_step)
    return AssumptionReport(tuple(conditions), found, limits, estimated=coef is None)


@dataclass(frozen=True)
class Pilot:
    """Coefficients, the selected groups in order, and the residual standard deviation."""

    coef: FloatArray
    selected: tuple[int, ...]
    sigma: float


def pilot_fit(X: object, y: FloatArray, groups: object, *, max_groups: int = 25) -> Pilot:
    """The model of least EBIC on the limit path, on the columns as given and without an intercept.

    It only supplies the theorems' quantities (u*, s, sigma) from data; it is not an estimator to report.
    EBIC = n log(RSS/n) + df log n + 2 log(L choose s). Models use at most half of the rows.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((80, 40))
    >>> fit = pilot_fit(X, X[:, 4:8] @ np.ones(4) + 0.1 * rng.standard_normal(80), Groups.from_size(4, 40))
    >>> fit.selected, round(fit.sigma, 1)
    ((1,), 0.1)
    """
    X, groups = read_design(X, groups)
    n = X.shape[0]
    most, weights = min(whole(max_groups, "max_groups"), groups.n_groups), np.sqrt(groups.sizes)
    y = np.asarray(as_response(y, n), dtype=np.float64)
    check_scale(y, "y")
    path = limit_path(X, y, groups, max_groups=most, group_weights=weights, standardize=False, fit_intercept=False)
    woken = [l for l, _ in path.entered]
    scores = []
    for s, coef in enumerate(path.coefs.toarray()):
        df, rss = int(groups.sizes[woken[:s]].sum()), float(np.sum((y - fitted(X, coef)) ** 2))
        exact = rss <= EXACT * float(y @ y)
        if s == 0 or df <= n / 2:
            fit = -math.inf if exact else n * math.log(rss / n)
            score = fit + df * math.log(n) + 2 * math.log(math.comb(groups.n_groups, s))
            sigma = 0.0 if exact else math.sqrt(rss / max(n - df, 1))
            scores.append((score, s, Pilot(coef, tuple(woken[:s]), sigma)))
    return min(scores, key=lambda one: one[:2])[2]


def _times(measured: float, required: float) -> str:
    ratio = measured / required
    return f"{ratio:,.0f} times" if ratio >= 100 else f"{ratio:.3g} times"


def _conditions(X: Design, groups: Groups, found: Coherence, b: Bounds, algorithm: int) -> list[Condition]:
    theorem, first, largest = f"convergence-alg-{algorithm}", "convergence-alg-1", int(groups.sizes.max())
    zero = np.flatnonzero(column_norms(X) == 0)
    pair = found.worst_pair
    culprits = f" Groups {pair[0]!r} and {pair[1]!r} are the worst pair." if pair is not None else ""
    need_in, need_out = b.delta_in(algorithm), b.delta_out(algorithm)
    return [
        Condition(
            "rows per column of a group", "Assumption 1", b.n / largest, ">=", 1.0,
            f"A group has {largest} columns and there are {b.n} rows: its Gram is singular and delta_in is at least 1. "
            "Split the group or reduce it to its leading principal components.",
        ),
        Condition(
            "columns of zeros", "Assumption 1", float(zero.size), "<=", 0.0,
            f"{name_columns(zero, groups.columns)} hold only zeros (constant before centring, perhaps): they carry no "
            "information and force delta_in to at least 1. Drop them." if zero.size else "",
        ),
        Condition(
            "delta_in", theorem, found.delta_in, "<=", need_in,
            f"delta_in is {_times(found.delta_in, need_in)} the bound: the guarantee does not apply; prediction may "
            f"still be good. Columns within a group are correlated or unscaled; orthonormalising each group "
            f"(standardize='group') makes it 0. Group {found.worst_group!r} is the worst.",
        ),
        Condition(
            "delta_out", theorem, found.delta_out, "<=", need_out,
            f"delta_out is {_times(found.delta_out, need_out)} the bound: the guarantee does not apply; prediction may "
            f"still be good. Correlated groups can wake up in the wrong order; the estimator's backward elimination "
            f"and factors address this.{culprits}",
        ),
        Condition(
            "strongest group above zeta", first, b.u_max**2, ">=", b.zeta_corrected,
            "The promised radius exceeds every group: the theorem already holds at w = 0 and says nothing. It needs "
            "more rows or less noise; its constant 80 is far from sharp.",
        ),
        Condition(
            "weakest group above zeta", first, b.u_min**2, ">=", b.zeta_corrected,
            f"{b.s - b.n_recoverable} of {b.s} groups are weaker than zeta: the theorem promises only that they stay "
            "small, not that they are found.",
        ),
        Condition(
            "init_scale", first, b.init_scale, "<", b.init_scale_max,
            f"Groups outside the support may reach the promised size too early. The theorem requires init_scale below "
            f"{b.init_scale_max:.2g}; in practice anything from 1e-8 to 1e-3 behaves the same.",
        ),
        Condition(
            "step_size", first, b.step_size, "<=", b.step_size_max,
            f"Magnitudes may overshoot. Use step_size={b.step_size_max:.3g} or step_size='auto'.",
        ),
        Condition(
            "window opens before it closes", first, b.T_lb_corrected, "<=", b.T_ub_corrected,
            f"The times [T_lb, T_ub] = [{b.T_lb_corrected:.4g}, {b.T_ub_corrected:.4g}] are empty at this init_scale: "
            "use a smaller one, which widens the window.",
        ),
    ]  # fmt: skip


def _direction_conditions(b: Bounds, eta: float) -> list[Condition]:
    theorem, least, most = "convergence-alg-2", b.direction_step_min, b.direction_step_lemma
    if least <= most:
        advice = f"Use direction_step between {least:.3g} and {most:.3g}."
    else:
        low = b.step_size_max_alg_2 / b.u_min**2
        between = f"={most:.3g}" if low >= 0.99 * most else f" between {low:.3g} and {most:.3g}"
        advice = (
            f"At step_size={b.step_size:.3g} no direction step is both small and large enough: use "
            f"step_size={b.step_size_max_alg_2:.3g} or less first, and then direction_step{between}."
        )
    return [
        Condition(
            "room for a direction step", theorem, least, "<=", most,
            f"Strong groups need a small direction step, weak groups one that keeps up with step_size. {advice}",
        ),
        Condition(
            "direction_step, theorem", theorem, eta, "<=", b.direction_step_theorem,
            f"Directions may diverge after the switch. {advice}",
        ),
        Condition(
            "direction_step, lemma", "direction-bound", eta, "<=", most,
            f"The limit of the theorem is too large if u_max > 1; its lemma needs {most:.3g}. A few times beyond that, "
            f"the iteration diverges. {advice}",
        ),
        Condition(
            "direction_step, not too small", theorem, eta, ">=", least,
            f"Directions hardly move after the switch and keep their angle, so that errors stall. {advice}",
        ),
    ]  # fmt: skip
