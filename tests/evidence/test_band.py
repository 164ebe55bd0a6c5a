"""Bands of curves: lines and levels by hand from effects, whole curves wider than points, and the true curve inside."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from covey import Curve, GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, Terms, survival
from covey.evidence import band, effect
from covey.plots import TermsDisplay

RNG = np.random.default_rng(0)
N = 300
TABLE = pd.DataFrame(RNG.uniform(-2, 2, (N, 5)), columns=list("abcde"))
TABLE["site"] = RNG.choice(["x", "y", "z"], N)
Y = np.sin(2 * TABLE["a"]) + TABLE["b"] + 0.5 * (TABLE["site"] == "x") + 0.5 * RNG.standard_normal(N)
TERMS = Terms({"b": "linear"}, pairs=None)
MODEL = GroupSparseRegressor(terms=TERMS)


def test_a_line_is_its_slope_times_the_distance_from_the_mean():
    at = np.array([-1.5, 0.0, 1.0])
    slope = effect(TABLE, Y, of="b", terms=TERMS, confidence=0.9)
    away = at - TABLE["b"].mean()
    squares = slope.influence[0] ** 2
    df = squares.sum() ** 2 / (squares**2).sum()
    assert 100 < df < N
    margin = stats.t.ppf(0.95, df) * slope.standard_errors[0] * np.abs(away)
    found = band(MODEL, TABLE, Y, "b", at=at, simultaneous=False)
    np.testing.assert_allclose(found.effect, slope.estimates[0] * away, rtol=1e-7)
    np.testing.assert_allclose(found.high - found.effect, margin, rtol=1e-6)
    # a line has one degree of freedom: the whole of it deviates as far as any point
    whole = band(MODEL, TABLE, Y, "b", at=at)
    np.testing.assert_allclose(whole.high - whole.effect, margin, rtol=0.03)


def test_levels_are_effects_against_the_first():
    found = band(MODEL, TABLE, Y, "site", simultaneous=False)
    against = effect(TABLE, Y, of="site", terms=TERMS)
    assert list(found.values) == ["x", "y", "z"]
    np.testing.assert_allclose(found.effect[1:] - found.effect[0], against.estimates, rtol=1e-7)
    counts = TABLE["site"].value_counts().loc[["x", "y", "z"]].to_numpy()
    assert found.effect @ counts == pytest.approx(0.0, abs=1e-8)


def test_the_whole_curve_is_inside_and_needs_a_wider_band():
    at = np.quantile(TABLE["a"], np.linspace(0, 1, 40))
    true = np.sin(2 * at) - np.sin(2 * TABLE["a"]).mean()
    whole, points = (band(MODEL, TABLE, Y, "a", at=at, simultaneous=one) for one in (True, False))
    assert ((whole.low <= true) & (true <= whole.high)).all()
    ratio = (whole.high - whole.low) / (points.high - points.low)
    assert ((ratio > 1.3) & (ratio < 2.5)).all()
    assert whole.note.startswith("simultaneous 90% band, given")
    again = band(MODEL, TABLE, Y, "a", at=at)
    np.testing.assert_array_equal(again.high, whole.high)


def test_classes_and_a_plot():
    y = np.where(Y + RNG.logistic(size=N) > 0, "yes", "no")
    curve = band(GroupSparseClassifier(terms=TERMS), TABLE, y, "a", n=30)
    assert curve.effect.shape == (30,)
    assert curve.note.endswith("The odds are those of 'yes' against 'no'")
    assert (curve.low < curve.effect).all()
    display = TermsDisplay([curve]).plot()
    assert len(display.axes_) == 1
    assert len(display.axes_[0].collections) >= 1
    assert display.figure_.get_supxlabel() == "simultaneous 90% band"


def test_the_detail_of_a_curve_is_left_out():
    encoding = GroupSparseRegressor(terms=Terms(pairs=None)).fit(TABLE, Y).encoding_
    assert [term.name for term in encoding.terms if term.variables == ("a",)] == ["a", "a~", "a~~"]
    curve = next(term.columns for term in encoding.terms if term.name == "a~")
    kind = Curve(knots=curve.stop - curve.start + 2)  # a curve with given knots has no detail
    same = GroupSparseRegressor(terms=Terms({"a": kind, "b": "linear"}, pairs=None))
    np.testing.assert_allclose(band(MODEL, TABLE, Y, "a").high, band(same, TABLE, Y, "a").high, rtol=1e-6)


def test_survival_times_and_what_is_doubtful():
    y = survival(np.random.default_rng(1).exponential(np.exp(-np.sin(2 * TABLE["a"]))), np.ones(N))
    curve = band(GroupSparseCox(terms=TERMS), TABLE, y, "a", at=[-0.8, 0.8])
    assert (curve.low < [-1.0, 1.0]).all()
    assert (curve.high > [-1.0, 1.0]).all()
    assert "clusters" not in curve.note
    assert "There are 10 clusters: with fewer" in band(MODEL, TABLE, Y, "a", clusters=np.arange(N) % 10).note


def test_refusals():
    with pytest.raises(ValueError, match="a model with terms="):
        band(GroupSparseRegressor(), TABLE, Y, "a")
    with pytest.raises(ValueError, match="no column 'aa'"):
        band(MODEL, TABLE, Y, "aa")
    with pytest.raises(ValueError, match=r"name of one variable, not \['a', 'b'\]"):
        band(MODEL, TABLE, Y, ["a", "b"])
    with pytest.raises(ValueError, match=r"Left out: 'c' \(constant\)"):
        band(MODEL, TABLE.assign(c=1.0), Y, "c")
    with pytest.raises(ValueError, match="only one variable"):
        band(GroupSparseRegressor(terms="auto"), TABLE[["a"]], Y, "a")
