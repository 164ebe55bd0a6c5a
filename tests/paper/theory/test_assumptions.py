"""check_assumptions: the right numbers, verdicts that flip where they should, and messages that help."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import comb

from covey import Groups
from covey.datasets import make_group_sparse
from covey.designs import as_design
from covey.paper.theory import check_assumptions, coherence, limit_events, pilot_fit


@pytest.fixture(scope="module")
def data():
    return make_group_sparse(random_state=0)


@pytest.fixture(scope="module")
def orthogonal():
    """A problem on which every condition holds."""
    return make_group_sparse(200, 30, 3, design="orthogonal", active=2, values=2.0, sigma=1e-3, random_state=1)


def test_everything_holds_on_an_orthogonal_design(orthogonal):
    d = orthogonal
    for algorithm in (1, 2):
        report = check_assumptions(
            d.X, d.y, d.groups, coef=d.w_star, sigma=d.sigma, algorithm=algorithm, init_scale=1e-30, direction_step=0.01
        )
        assert report.guaranteed, str(report)
        assert "the guarantee applies" in str(report)
        assert not report.estimated
        assert report["delta_in"].measured < 1e-12
        names = [c.name for c in report.conditions]
        assert ("direction_step, lemma" in names) == (algorithm == 2)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"init_scale": 1e-3}, "init_scale"),
        ({"step_size": 0.05}, "step_size"),
        ({"direction_step": 0.1}, "direction_step, lemma"),
        ({"direction_step": 0.2}, "direction_step, theorem"),
        ({"direction_step": 1e-4}, "direction_step, not too small"),
        ({"direction_step": 0.01, "step_size": 0.5}, "room for a direction step"),
        ({"epsilon": 0.05}, "weakest group above zeta"),
        ({"init_scale": 0.9}, "window opens before it closes"),
    ],
)
def test_each_condition_can_fail(orthogonal, settings, name):
    d = orthogonal
    given = {"coef": d.w_star, "sigma": d.sigma, "init_scale": 1e-30, **settings}
    report = check_assumptions(d.X, d.y, d.groups, **given)
    assert not report[name].passed
    assert not report.guaranteed
    assert report[name].meaning
    line = next(line for line in str(report).splitlines() if line.strip().startswith(name))
    assert line.endswith("FAIL")


@pytest.mark.parametrize("weak", [10.0, 2.0, 0.3, 0.02], ids=lambda weak: f"ratio {10 / weak:g}")
@pytest.mark.parametrize("direction_step", [1e-8, 10.0])
def test_advice_on_the_direction_step_is_never_an_empty_interval(weak, direction_step):
    """Whatever the groups, following the advice meets all three conditions on the direction step."""
    d = make_group_sparse(
        200, 30, 3, design="orthogonal", values=[10.0] * 3 + [weak] * 3, active=2, sigma=1e-4, random_state=0
    )
    given = {"coef": d.w_star, "sigma": d.sigma, "init_scale": 1e-30}
    report = check_assumptions(d.X, d.y, d.groups, direction_step=direction_step, **given)
    of_step = ["room for a direction step", *(f"direction_step, {k}" for k in ("theorem", "lemma", "not too small"))]
    failed = [report[name] for name in of_step if not report[name].passed]
    assert failed
    for condition in failed:
        numbers = re.findall(r"direction_step between (\S+) and (\S+)\.$", condition.meaning)
        numbers = numbers or [re.findall(r"direction_step=(\S+)\.$", condition.meaning) * 2]
        low, high = map(float, numbers[0])
        assert low <= high
        step = re.findall(r"use step_size=(\S+) or less first", condition.meaning)
        assert bool(step) == (10 / weak > 80 / 9)
        followed = check_assumptions(
            d.X, d.y, d.groups, direction_step=(low * high) ** 0.5,
            step_size=0.99 * float(step[0]) if step else None, **given,
        )  # fmt: skip
        assert all(followed[name].passed for name in of_step if name != "direction_step, lemma"), str(followed)
        assert followed["direction_step, lemma"].measured <= 1.01 * followed["direction_step, lemma"].required


def test_the_papers_first_experiment(data):
    """delta_in and delta_out are far above the theorem's 0.0083 and 0.0028 (errata 4)."""
    report = check_assumptions(data.X, data.y, data.groups, coef=data.w_star, sigma=0.5, algorithm=1)
    exact = coherence(data.X, data.groups)
    assert report["delta_in"].measured == exact.delta_in
    assert report["delta_out"].measured == exact.delta_out
    assert report["delta_in"].required == pytest.approx(1 / 120)
    assert report["delta_out"].required == pytest.approx(1 / 360)
    ratio = exact.delta_out * 360
    text = " ".join(str(report).split())
    assert f"delta_out is {ratio:,.0f} times the bound: the guarantee does not apply" in text
    assert "backward elimination and factors" in text
    l, m = exact.worst_pair
    assert f"Groups {l} and {m} are the worst pair" in text
    tighter = check_assumptions(data.X, data.y, data.groups, coef=data.w_star, sigma=0.5, algorithm=2)
    assert tighter["delta_in"].required < report["delta_in"].required


def test_the_pilot_stands_in_for_the_truth(data):
    report = check_assumptions(data.X, data.y, data.groups)
    assert report.estimated
    assert "estimated by a pilot fit" in str(report)
    assert report.bounds.s == 3
    assert report.bounds.u_max == pytest.approx(data.u_star.max(), rel=0.02)
    assert report.bounds.sigma == pytest.approx(0.5, rel=0.2)
    for other in (sp.csr_array(data.X), as_design(data.X)):
        again = check_assumptions(other, data.y, data.groups)
        np.testing.assert_allclose(again.to_frame()["measured"], report.to_frame()["measured"], rtol=1e-9)
    frame = report.to_frame()
    assert frame["passed"].dtype == bool
    assert len(frame) == len(report.conditions)


def test_columns_of_zeros_and_wide_groups_are_named():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((8, 12)), columns=[f"x{j}" for j in range(12)])
    X["x3"] = 0.0
    y = X.to_numpy()[:, 0] * 3 + 0.1 * rng.standard_normal(8)
    report = check_assumptions(X, y, [0] * 10 + [1, 1], coef=np.r_[3.0, np.zeros(11)])
    assert not report["columns of zeros"].passed
    assert "'x3'" in report["columns of zeros"].meaning
    assert not report["rows per column of a group"].passed
    assert "10 columns and there are 8 rows" in report["rows per column of a group"].meaning
    assert report["delta_in"].measured >= 1


def test_bad_input(data):
    X, y, g, exact = data.X, data.y, data.groups, data.X @ data.w_star
    for given, options, message in [
        ((X, y, g), {"algorithm": 3}, "algorithm"),
        ((X, y, g), {"coef": [1.0]}, "coef must hold 300"),
        ((X, np.zeros(150), g), {}, "finds no group with signal"),
        ((np.ones((1, 2)), [1.0], 1), {}, "finds no group with signal"),
        ((X, y[:-1], g), {}, "149 entries"),
        ((X, exact, g), {"coef": data.w_star}, "fitted exactly"),
        ((X, exact, g), {}, "fitted exactly"),
    ]:
        with pytest.raises(ValueError, match=message):
            check_assumptions(*given, **options)
    assert check_assumptions(X, exact, g, epsilon=0.01).bounds.noise < 1e-9
    with pytest.raises(KeyError, match="no condition"):
        check_assumptions(X, y, g)["speed"]


def test_noise_counts_by_its_norm_in_a_group():
    """Groups of 40 columns: the conditions on zeta, their count and the report have the norm of a group's noise."""
    values = [3.0] * 40 + [0.1] * 40
    d = make_group_sparse(200, 120, 40, design="orthogonal", active=2, values=values, sigma=0.2, random_state=0)
    report = check_assumptions(d.X, d.y, d.groups, coef=d.w_star, sigma=d.sigma, epsilon=1e-6)
    noise = d.X.T @ d.noise / 200
    zeta, by_entry = 80 * d.groups.norms(noise).max(), 80 * np.abs(noise).max()
    assert zeta > 1.5 * by_entry
    for name in ("strongest group above zeta", "weakest group above zeta"):
        assert report[name].required == pytest.approx(zeta)
    norms = d.groups.norms(d.w_star)
    assert report.bounds.n_recoverable == np.sum(norms >= zeta) == 1
    assert f"zeta={zeta:.4g}" in str(report)
    assert report.bounds.noise == pytest.approx(np.abs(noise).max())
    assert report.bounds.u_star == pytest.approx(np.sqrt(norms[:2]))
    assert report["window opens before it closes"].measured == report.bounds.T_lb_corrected


def test_the_pilot_is_the_least_extended_bic_on_the_limit_path():
    """With its choice term: without it, more groups would be taken."""
    rng = np.random.default_rng(1)
    n, L = 60, 100
    X = rng.standard_normal((n, 2 * L))
    y = X[:, :2] @ [1.0, 1.0] + X[:, 2:4] @ [0.5, 0.5] + rng.standard_normal(n)
    rss = [np.sum((y - X @ w) ** 2) for _, _, w in limit_events(X, y, 2, n_events=15)]

    def best(choice_term):
        criterion = [n * np.log(y @ y / n)]
        criterion += [
            n * np.log(r / n) + 2 * s * np.log(n) + 2 * choice_term * np.log(comb(L, s)) for s, r in enumerate(rss, 1)
        ]
        return int(np.argmin(criterion))

    found = pilot_fit(X, y, Groups.from_size(2, 2 * L))
    assert len(found.selected) == best(1.0) < best(0.0)
    s = len(found.selected)
    assert found.sigma == pytest.approx(np.sqrt(rss[s - 1] / (n - 2 * s)))
    noise = rng.standard_normal(n)
    nothing = pilot_fit(X, noise, Groups.from_size(2, 2 * L))
    assert nothing.selected == ()
    assert nothing.sigma == pytest.approx(np.sqrt(np.mean(noise**2)))
