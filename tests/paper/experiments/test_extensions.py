"""Experiments beyond the paper: verdicts that fail where they should."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from experiments.toy import failing, through_disk, verdicts
from scipy import stats

from covey.paper.experiments import Verdict, delta, noise, phase, powers, rates
from covey.paper.experiments.prescribed import prescribed_problem
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


def test_one_sided_rejection():
    assert Slope(-0.5, 0.1).is_below(0.0)
    assert not Slope(-0.2, 0.1).is_below(0.0)
    assert not Slope(5.0, 0.1).is_below(0.0)
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


def test_impossible_coherences_are_refused():
    with pytest.raises(ValueError, match="positive definite"):
        prescribed_problem(np.random.default_rng(0), (2, 2), (1, 1), delta_in=0.9, delta_out=0.9)


# ---------------------------------------------------------------------------------------------------------- powers


def invented_powers(exponents=None, shares=None, ratio=1.0):
    """A table in which every claim holds, unless changed."""
    rng, records = np.random.default_rng(0), []
    exponents = {**powers.CLAIMED, **(exponents or {})}
    shares = {"on_share": 0.5, "off_share": 0.5, **(shares or {})}
    for depth in powers.DEPTHS:
        for axis, exponent in exponents.items():
            for value in (2.0, 4.0, 8.0):
                for r in range(20):
                    error = value**exponent * rng.uniform(0.9, 1.1) * (ratio if depth == 3 else 1.0)
                    for method in (rates.BEST, rates.ORACLE):
                        row = {"part": "rates", "depth": depth, "axis": axis, "value": value}
                        records.append({**row, "repeat": r, "method": method, "error": error})
        for r in range(3):
            numbers = {"T_lb": 10.0, "T_ub": 30.0, "opens": 5.0, "closes": 90.0, **shares}
            records += [
                {"part": "windows", "depth": depth, "repeat": r, "axis": k, "error": v} for k, v in numbers.items()
            ]
    return through_disk(pd.DataFrame(records))


def test_powers_claims_hold_on_a_table_that_follows_the_theory():
    frame = invented_powers()
    assert verdicts(powers, frame) == [Verdict.HOLDS] * (3 + 3 + 2)
    assert powers.plot(frame).axes


def test_each_claim_on_powers_can_fail():
    assert failing(powers, invented_powers(shares={"off_share": 1.2})) == [0, 1, 2]
    assert failing(powers, invented_powers(exponents={"n": -0.8})) == [3, 4, 5]
    assert failing(powers, invented_powers(ratio=1.3)) == [6]


def test_an_imprecise_slope_does_not_hold():
    frame = invented_powers()
    few = frame[(frame["part"] == "windows") | (frame["repeat"] < 2)].copy()
    few.loc[(few["axis"] == "n") & (few["repeat"] == 1), "error"] *= 3
    assert {3, 4, 5} & set(failing(powers, few))


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
    return through_disk(pd.DataFrame(records))


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


def invented_noise(**changes):
    """A table in which every claim but that on Student's event holds, unless changed."""
    rng, records = np.random.default_rng(0), []
    exponents = {**noise.CLAIMED, **changes.get("exponents", {})}
    outside = {"gaussian": 3, "rademacher": 0, "uniform": 1, "student": 2000, **changes.get("outside", {})}
    for kind in noise.NOISES:
        scale = changes.get("scale", 1.0) if kind == "uniform" else 1.0
        for axis, exponent in exponents.items():
            for value in (2.0, 4.0, 8.0):
                for r in range(20):
                    row = {"part": "rates", "noise": kind, "axis": axis, "value": value, "repeat": r}
                    error = scale * value**exponent * rng.uniform(0.8, 1.2)
                    records.append({**row, "method": rates.BEST, "error": error, "minimax": value**exponent})
        for n in (10, 20, 40):
            for r in range(4):
                got = n >= (changes.get("rows", 20) if kind == "uniform" else 20)
                row = {"part": "recovery", "noise": kind, "n": n, "s": 1, "repeat": r}
                records.append({**row, "method": phase.GROUPED, "recovered": got})
        records.append({"part": "event", "noise": kind, "outside": outside[kind], "draws": 10**6, "allowed": 3e-5})
    return through_disk(pd.DataFrame(records))


def test_noise_claims_hold_but_for_student():
    *_, last = noise.claims(invented_noise())
    assert "Student" in last.claim
    assert "norm(X'xi/n)_inf" in last.claim
    assert failing(noise, invented_noise()) == [11]
    assert noise.plot(invented_noise()).axes


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"exponents": {"sigma": 1.5}}, 3),
        ({"scale": 1.3}, 1),
        ({"rows": 40}, 1),
        ({"outside": {"gaussian": 60}}, 1),
    ],
    ids=["slope", "size", "rows", "event"],
)
def test_each_claim_on_noise_can_fail(changes, expected):
    assert len(failing(noise, invented_noise(**changes))) == 1 + expected


def test_the_event_against_the_exact_probability():
    # Gaussian noise on an orthogonal design: 16 independent entries
    (row,) = noise.event_task("gaussian", 200_000, [0])
    assert row["allowed"] == 1 / (8 * 16**3)
    assert row["outside"] <= 200_000 * 16 * 2 * stats.norm.sf(2 * np.sqrt(2 * np.log(32))) + 5
    (student,) = noise.event_task("student", 50_000, [0])
    assert student["outside"] > 5 * 50_000 * row["allowed"]


# ----------------------------------------------------------------------------------- settings of rates and phase


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


def test_phase_takes_any_noise():
    settings = phase.Settings(p=20, grid_n=(40,), grid_s=(1,), repeats=1, n_steps=300)
    a, b = (phase.run(replace(settings, noise=kind)) for kind in ("gaussian", "uniform"))
    assert (a["error"] != b["error"]).all()
    assert b[b["method"] == phase.GROUPED]["recovered"].all()
