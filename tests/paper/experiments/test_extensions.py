"""Experiments beyond the paper: tiny runs from table to figure, and verdicts that fail where they should."""

import io
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest

from covey.paper.experiments import Verdict, delta, noise, phase, powers, rates
from covey.paper.experiments.prescribed import prescribed_problem
from covey.paper.experiments.slopes import Slope, fit
from covey.paper.theory import coherence

TINY = {
    "powers": replace(
        powers.Settings.quick(), grid_n=(60, 120), grid_s=(1, 2), grid_sigma=(0.1, 0.2), grid_group_size=(2, 4),
        repeats=2, windows=2,
    ),
    "delta": replace(delta.Settings.quick(), factors=(0.001, 0.5, 1.0), epsilons=(1e-3, 1e-7), draws=2),
    "noise": replace(
        noise.Settings.quick(), grid_n=(60, 120), grid_s=(1, 2), grid_sigma=(0.1, 0.2), repeats=2, rows=(20, 60),
        groups=(1,), recovery_repeats=2, draws=1000,
    ),
}  # fmt: skip
MODULES = {"powers": powers, "delta": delta, "noise": noise}


def through_disk(frame):
    return pd.read_csv(io.StringIO(frame.to_csv(index=False, float_format="%.8g")))


@pytest.fixture(scope="module", params=MODULES)
def tiny(request):
    return request.param, through_disk(MODULES[request.param].run(TINY[request.param]))


def test_from_run_to_figure(tiny):
    id, frame = tiny
    claims = MODULES[id].claims(frame)
    assert all(claim.claim and claim.expected and claim.measured for claim in claims)
    assert len({claim.claim for claim in claims}) == len(claims)
    figure = MODULES[id].plot(frame)
    figure.canvas.draw()
    assert all(axes.get_title(loc="left") and axes.get_xlabel() for axes in figure.axes if axes.axison)


@pytest.mark.parametrize("id", MODULES)
def test_quick_is_no_larger_than_full(id):
    quick, full = MODULES[id].Settings.quick(), MODULES[id].Settings.full()
    for field in fields(quick):
        small, large = getattr(quick, field.name), getattr(full, field.name)
        assert (len(small) <= len(large)) if isinstance(small, tuple) else (small <= large)


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
    assert Slope(0.5, 0.1).rejects(0.0, upwards_only=True)
    assert not Slope(-5.0, 0.1).rejects(0.0, upwards_only=True)
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


def made_up_powers(exponents=None, shares=None, ratio=1.0):
    """A table in which every claim holds, unless changed."""
    rng, rows = np.random.default_rng(0), []
    exponents = {**powers.CLAIMED, **(exponents or {})}
    shares = {"on_share": 0.5, "off_share": 0.5, **(shares or {})}
    for depth in powers.DEPTHS:
        for axis, exponent in exponents.items():
            for value in (2.0, 4.0, 8.0):
                for r in range(20):
                    error = value**exponent * rng.uniform(0.9, 1.1) * (ratio if depth == 3 else 1.0)
                    for method in (rates.BEST, rates.ORACLE):
                        row = {"part": "rates", "depth": depth, "axis": axis, "value": value}
                        rows.append({**row, "repeat": r, "method": method, "error": error})
        for r in range(3):
            numbers = {"T_lb": 10.0, "T_ub": 30.0, "opens": 5.0, "closes": 90.0, **shares}
            rows += [
                {"part": "windows", "depth": depth, "repeat": r, "axis": k, "error": v} for k, v in numbers.items()
            ]
    return through_disk(pd.DataFrame(rows))


def failing(claims):
    return [claim.claim for claim in claims if claim.verdict is Verdict.FAILS]


def test_powers_claims_hold_on_a_table_that_follows_the_theory():
    claims = powers.claims(made_up_powers())
    assert len(claims) == 3 + 3 + 2
    assert failing(claims) == []
    assert powers.plot(made_up_powers()).axes


def test_each_claim_on_powers_can_fail():
    wrong = failing(powers.claims(made_up_powers(exponents={"n": -0.8})))
    assert len(wrong) == 3
    assert all("the error goes like" in claim for claim in wrong)
    assert len(failing(powers.claims(made_up_powers(shares={"off_share": 1.2})))) == 3
    (worse,) = failing(powers.claims(made_up_powers(ratio=1.3)))
    assert "N = 3 is as good" in worse


def test_an_imprecise_slope_does_not_hold():
    frame = made_up_powers()
    few = frame[(frame["part"] == "windows") | (frame["repeat"] < 2)].copy()
    few.loc[(few["axis"] == "n") & (few["repeat"] == 1), "error"] *= 3
    assert any("the error goes like" in claim for claim in failing(powers.claims(few)))


# ----------------------------------------------------------------------------------------------------------- delta


def made_up_delta(tolerated):
    """Each variant holds up to ``tolerated(variant, zeta)`` times theorem 1's delta."""
    rows = []
    for variant in delta.VARIANTS:
        for zeta in (1e-1, 1e-3, 1e-5, 1e-7):
            for draw in range(4):
                top = tolerated(variant, zeta) * (1 + 0.1 * draw)
                for factor in 2.0 ** np.arange(-24, 7):
                    row = {"variant": variant, "zeta": zeta, "draw": draw, "factor": factor}
                    held = bool(factor <= top)
                    rows.append({**row, "tightening": zeta**0.5, "on": 0.5, "off": 0.5, "held": held})
                    if not held:
                        break
    return through_disk(pd.DataFrame(rows))


def verdicts(frame):
    return [claim.verdict for claim in delta.claims(frame)]


def test_delta_tells_an_artefact_from_a_need():
    def artefact(variant, zeta):
        return 10 * zeta if variant == delta.FROZEN else 20.0

    def need(variant, zeta):
        return 20.0 if variant == delta.FIRST else 2 * zeta**0.5

    assert verdicts(made_up_delta(artefact)) == [Verdict.HOLDS] * 4 + [Verdict.FAILS]
    assert verdicts(made_up_delta(need)) == [Verdict.FAILS] * 4 + [Verdict.HOLDS]


def test_delta_sees_frozen_directions_fail_in_a_run():
    """What the experiment can detect: at theorem 1's delta and a small zeta, frozen directions break the bound."""
    frame = delta.run(replace(TINY["delta"], factors=(1e-6, 1.0), epsilons=(1e-7,)))
    held = frame[frame["factor"] == 1.0].groupby("variant")["held"].all()
    assert held[[delta.FIRST, delta.LARGE, delta.LEAST]].all()
    assert not held[delta.FROZEN]
    assert frame[(frame["variant"] == delta.FROZEN) & (frame["factor"] == 1e-6)]["held"].all()


# ----------------------------------------------------------------------------------------------------------- noise


def made_up_noise(**changes):
    """A table in which every claim but that on Student's event holds, unless changed."""
    rng, rows = np.random.default_rng(0), []
    exponents = {**noise.CLAIMED, **changes.get("exponents", {})}
    outside = {"gaussian": 3, "rademacher": 0, "uniform": 1, "student": 2000, **changes.get("outside", {})}
    for kind in noise.NOISES:
        scale = changes.get("scale", 1.0) if kind == "uniform" else 1.0
        for axis, exponent in exponents.items():
            for value in (2.0, 4.0, 8.0):
                for r in range(20):
                    row = {"part": "rates", "noise": kind, "axis": axis, "value": value, "repeat": r}
                    error = scale * value**exponent * rng.uniform(0.8, 1.2)
                    rows.append({**row, "method": rates.BEST, "error": error, "minimax": value**exponent})
        for n in (10, 20, 40):
            for r in range(4):
                got = n >= (changes.get("rows", 20) if kind == "uniform" else 20)
                row = {"part": "recovery", "noise": kind, "n": n, "s": 1, "repeat": r}
                rows.append({**row, "method": phase.GROUPED, "recovered": got})
        rows.append({"part": "event", "noise": kind, "outside": outside[kind], "draws": 10**6, "allowed": 3e-5})
    return through_disk(pd.DataFrame(rows))


def test_noise_claims_hold_but_for_student():
    (only,) = failing(noise.claims(made_up_noise()))
    assert "Student" in only
    assert "norm(X'xi/n)_inf" in only
    assert noise.plot(made_up_noise()).axes


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
    assert len(failing(noise.claims(made_up_noise(**changes)))) == 1 + expected


def test_the_event_against_the_exact_probability():
    # Gaussian noise on an orthogonal design: 16 independent entries
    from scipy import stats

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
