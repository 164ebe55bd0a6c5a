"""Simulations of rates, recovery, powers, coherence and noise: tables, and verdicts that fail where they should."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from experiments.test_every_experiment import tiny
from experiments.toy import errors_along, failing, verdicts
from scipy import stats

from covey.paper.experiments import Verdict, delta, noise, phase, powers, rates
from covey.paper.experiments.delta import prescribed_problem
from covey.paper.experiments.slopes import Slope, fit
from covey.paper.theory import coherence

# ---------------------------------------------------------------------------------------------------------- slopes


def test_slope_and_its_error_against_simulation():
    rng = np.random.default_rng(0)
    x = np.repeat([1.0, 2.0, 4.0], 25)
    found = [fit(x, x**1.5 * rng.chisquare(8, size=x.size)) for _ in range(400)]
    values = np.array([slope.value for slope in found])
    assert values.mean() == pytest.approx(1.5, abs=0.02)
    assert np.mean([slope.error for slope in found]) == pytest.approx(values.std(), rel=0.15)
    assert np.mean([slope.rejects(1.5) for slope in found]) < 0.04
    assert np.mean([slope.rejects(1.0) for slope in found]) > 0.95
    assert [Slope(value, 0.1).is_below(0.0) for value in (-0.5, -0.2, 5.0)] == [True, False, False]
    with pytest.raises(ValueError, match="two different places"):
        fit([1.0, 1.0], [1.0, 2.0])


# ------------------------------------------------------------------------------------------------------ prescribed


@pytest.mark.parametrize("leaning", [False, True])
def test_problems_have_what_was_prescribed(leaning):
    sizes, norms = (2, 3, 1), (1.5, 0.7, 0.0)
    data = prescribed_problem(
        np.random.default_rng(3), sizes, norms, delta_in=0.02, delta_out=0.01, group_noise=0.003, leaning=leaning
    )
    found = coherence(data.X, data.groups)
    assert found.delta_in == pytest.approx(0.02)
    assert found.delta_out == pytest.approx(0.01)
    np.testing.assert_allclose(data.groups.norms(data.w_star), norms)
    np.testing.assert_allclose(data.groups.norms(data.X.T @ data.noise / len(data.y)), 0.003)
    np.testing.assert_allclose(data.y, data.X @ data.w_star + data.noise)
    with pytest.raises(ValueError, match="positive definite"):
        prescribed_problem(np.random.default_rng(0), (2, 2), (1, 1), delta_in=0.9, delta_out=0.9, leaning=leaning)


# ---------------------------------------------------------------------------------------------------------- powers


def invented_powers(exponents=None, off_share=0.5, ratio=1.0, **table):
    """A table in which every claim holds, unless changed."""
    numbers = {"T_lb": 10.0, "T_ub": 30.0, "opens": 5.0, "closes": 90.0, "on_share": 0.5, "off_share": off_share}
    windows = [
        {"part": "windows", "depth": depth, "repeat": r, "axis": name, "error": value}
        for depth in powers.DEPTHS
        for r in range(3)
        for name, value in numbers.items()
    ]
    options = {"spread": 0.06, **table}
    slopes = [
        errors_along(powers.CLAIMED | (exponents or {}), **options, depth=depth, scale=ratio if depth == 3 else 1.0)
        for depth in powers.DEPTHS
    ]
    return pd.concat([*slopes, pd.DataFrame(windows)], ignore_index=True)


def test_claims_on_powers_hold_and_each_can_fail():
    assert failing(powers, invented_powers()) == []
    assert powers.plot(invented_powers()).axes
    assert {3, 4, 5} <= set(failing(powers, invented_powers(spread=1.5, repeats=8))), "an imprecise slope does not hold"
    assert failing(powers, invented_powers(off_share=1.2)) == [0, 1, 2]
    assert failing(powers, invented_powers(exponents={"n": -0.8})) == [3, 4, 5]
    assert failing(powers, invented_powers(ratio=1.3)) == [6]


# ----------------------------------------------------------------------------------------------------------- delta


def invented_delta(tolerated):
    """Each variant holds up to ``tolerated(variant, zeta)`` times theorem 1's delta."""
    records = []
    for variant in delta.VARIANTS:
        for zeta in (1e-1, 1e-3, 1e-5, 1e-7):
            for draw in range(4):
                top = tolerated(variant, zeta) * (1 + 0.1 * draw)
                for factor in 2.0 ** np.arange(-24, 7):
                    row = {"variant": variant, "zeta": zeta, "draw": draw, "factor": factor}
                    held = bool(factor <= top)
                    records.append({**row, "tightening": zeta**0.5, "on": 0.5, "off": 0.5, "held": held})
                    if not held:
                        break
    return pd.DataFrame(records)


def test_delta_distinguishes_an_artefact_from_a_need():
    def artefact(variant, zeta):
        return 10 * zeta if variant == delta.FROZEN else 20.0

    def need(variant, zeta):
        return 20.0 if variant == delta.FIRST else 2 * zeta**0.5

    assert verdicts(delta, invented_delta(artefact)) == [Verdict.HOLDS] * 4 + [Verdict.FAILS]
    assert verdicts(delta, invented_delta(need)) == [Verdict.FAILS] * 4 + [Verdict.HOLDS]


def test_frozen_directions_fail_in_a_run():
    """What the experiment can detect: at theorem 1's delta and a small zeta, frozen directions break the bound."""
    frame = delta.run(delta.Settings(factors=(1e-6, 1.0), epsilons=(1e-7,), draws=2))
    held = frame[frame["factor"] == 1.0].groupby("variant")["held"].all()
    assert held[[delta.FIRST, delta.LARGE, delta.LEAST]].all()
    assert not held[delta.FROZEN]
    assert frame[(frame["variant"] == delta.FROZEN) & (frame["factor"] == 1e-6)]["held"].all()


# ----------------------------------------------------------------------------------------------------------- noise


def invented_noise(exponents=None, scale=1.0, rows=20, outside=None):
    """A table in which every claim but that on Student's event holds, unless changed, in part for uniform noise."""
    counts = {"gaussian": 3, "rademacher": 0, "uniform": 1, "student": 2000, **(outside or {})}
    events = [
        {"part": "event", "noise": kind, "outside": count, "draws": 10**6, "allowed": 3e-5}
        for kind, count in counts.items()
    ]
    recovery = [
        {"part": "recovery", "noise": kind, "n": n, "s": 1, "repeat": r, "method": phase.GROUPED}
        | {"recovered": n >= (rows if kind == "uniform" else 20)}
        for kind in counts
        for n in (10, 20, 40)
        for r in range(4)
    ]
    claimed = noise.CLAIMED | (exponents or {})
    slopes = [errors_along(claimed, 0.12, noise=kind, scale=scale if kind == "uniform" else 1.0) for kind in counts]
    return pd.concat([*slopes, pd.DataFrame(recovery), pd.DataFrame(events)], ignore_index=True)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [11]),  # the event under Student's t
        ({"exponents": {"sigma": 1.5}}, [0, 1, 2, 11]),
        ({"scale": 1.3}, [4, 11]),
        ({"rows": 40}, [6, 11]),
        ({"outside": {"gaussian": 60}}, [8, 11]),
    ],
    ids=["as claimed", "slope", "size", "rows", "event"],
)
def test_claims_on_noise_hold_but_for_students_and_each_can_fail(changes, expected):
    assert failing(noise, invented_noise(**changes)) == expected
    assert noise.plot(invented_noise(**changes)).axes


def test_the_event_against_the_exact_probability():
    # Gaussian noise on an orthogonal design: 16 independent entries
    (row,) = noise.outside_the_event(("gaussian", 200_000))
    assert row["allowed"] == 1 / (8 * 16**3)
    assert row["outside"] <= 200_000 * 16 * 2 * stats.norm.sf(2 * np.sqrt(2 * np.log(32))) + 5
    (student,) = noise.outside_the_event(("student", 50_000))
    assert student["outside"] > 5 * 50_000 * row["allowed"]


# -------------------------------------------------------------------------------------------------- rates and phase


def test_rates_table():
    rates_frame = tiny("rates")
    assert rates_frame[rates_frame["method"] == rates.ORACLE]["error"].is_unique  # every draw has its seed
    assert len(rates_frame) == 5 * 2 * 2 * 3
    assert set(rates_frame["axis"]) == {"n", "s", "sigma", "p", "group_size"}
    assert (rates_frame["error"] > 0).all()
    wide = rates_frame.pivot_table(index=["axis", "value", "repeat"], columns="method", values="error")
    assert (wide[rates.BEST] <= wide[rates.HELD_OUT]).all()
    size = rates_frame[rates_frame["axis"] == "group_size"].groupby("value")["minimax"].first()
    L, s, n, sigma = 10, 4, 80, 0.5
    assert size[3] == pytest.approx(sigma**2 * s * (3 + 1 + np.log(L / s)) / n)
    assert rates_frame["corollary"].iloc[0] == pytest.approx(4 * 0.25 * np.log(30) / 60)


def test_slopes_of_a_known_table():
    exponents = {"n": -1, "s": 1, "sigma": 2, "p": 0.5, "group_size": 1}
    frame = errors_along(exponents, 0.06)
    table = rates.slopes(frame)
    for axis, exponent in exponents.items():
        assert table[axis, rates.BEST].value == pytest.approx(exponent, abs=0.05)
        assert 0.002 < table[axis, rates.BEST].error < 0.03
    # the group size matters, which the corollary leaves out
    assert failing(rates, frame) == [4]
    frame.loc[frame["axis"] == "n", "error"] *= frame["value"] ** 0.5
    assert failing(rates, frame) == [0, 4]


@pytest.mark.parametrize(
    ("exponent", "spread", "verdict"),
    [
        (-1.0, 0.3, "holds"),
        (-1.15, 0.3, "does not hold"),  # 0.15 off, and known to 0.04
        (-1.0, 3.0, "does not hold"),  # as it should be, but known so badly that nothing is tested
    ],
    ids=["right", "a little wrong", "not known"],
)
def test_a_rate_is_rejected_at_its_level_and_a_wide_interval_is_no_proof(exponent, spread, verdict):
    claim = next(rates.claims(errors_along(dict.fromkeys(rates.AXES, exponent), spread)))
    assert claim.verdict == verdict
    assert "standard error" in claim.measured


def test_phase_table():
    phase_frame = tiny("phase")
    assert len(phase_frame) == 3 * 2 * 3 * 3
    rate = phase_frame.groupby(["method", "n"])["recovered"].mean()
    assert rate[("grouped", 80)] == 1.0
    assert rate[("grouped", 10)] < rate[("grouped", 80)]
    assert ((phase_frame["error"] <= 0.05) == phase_frame["recovered"]).all()


def test_rows_needed_by_hand():
    runs = []
    for n, hits in ((10, 0), (20, 1), (40, 3), (80, 4)):
        runs += [("grouped", 2, n, k < hits) for k in range(4)]
        runs += [("groups of one", 2, n, False) for _ in range(4)]
        runs += [("diagonal network", 2, n, True) for _ in range(4)]
    frame = pd.DataFrame(runs, columns=["method", "s", "n", "recovered"])
    needed = phase.rows_needed(frame).set_index("method")["rows"]
    assert needed["grouped"] == pytest.approx(30)
    assert np.isnan(needed["groups of one"])
    assert needed["diagonal network"] == 10
    first, second = phase.claims(frame)
    assert first.verdict == "holds"
    assert "2.67" in first.measured
    assert second.verdict == "does not hold"


def test_rates_take_any_power_and_noise():
    settings = rates.Settings(
        n=120, p=30, grid_n=(120,), grid_s=(), grid_sigma=(), grid_p=(), grid_group_size=(), repeats=1, sigma=0.1, s=2,
    )  # fmt: skip
    base = rates.run(settings).set_index("method")["error"]
    deep = rates.run(replace(settings, depth=3, init_scale=0.05)).set_index("method")["error"]
    assert base[rates.ORACLE] == deep[rates.ORACLE], "the same draw"
    assert deep[rates.BEST] == pytest.approx(base[rates.BEST], rel=0.2)
    signs = rates.run(replace(settings, noise="rademacher")).set_index("method")["error"]
    assert signs[rates.ORACLE] != base[rates.ORACLE]
    assert 0.1 < signs[rates.ORACLE] / base[rates.ORACLE] < 10
