"""The published runs, on the authors' data: least error, its step, and where each run ends.

Steps count from one. "Text" is the paper's algorithm, "code" the authors' variant of it (gradients twice as large,
magnitude gradient at the old direction).
"""

import numpy as np
import pytest

from covey.paper.datasets import legacy_paper_data
from covey.paper.dynamics import Status, diagonal_descent, normalized_descent, plain_descent

CODE = {"gradient_scale": 2.0, "magnitude_at": "old"}
FIGURE_2, FIGURE_3 = legacy_paper_data(), legacy_paper_data(support=range(5, 14))
FIGURE_4 = legacy_paper_data(100, 500, 4, support=[1.0] * 16, seed=42)
GAUSSIAN = legacy_paper_data(sigma=0.1, design="gaussian")


def figure_5(seed=42):
    return legacy_paper_data(80, 200, 1, support=(1, -1, -1, 1, 1), seed=seed)


def descend(data, **options):
    return normalized_descent(data.X, data.y, data.groups, w_star=data.w_star, **options)


def check_minimum(path, error, step, last=None):
    assert path.error[path.best] == pytest.approx(error, rel=0.005)
    assert path.t[path.best] == pytest.approx(step, abs=2)
    if last is not None:
        assert path.error[-1] == pytest.approx(last, rel=0.005)


@pytest.mark.parametrize(
    ("data", "options", "error", "step", "last"),
    [
        (FIGURE_2, {"n_steps": 4000}, 0.00873, 597, 0.01245),
        (FIGURE_3, {"direction_step": 1e-3, "switch": 1, "n_steps": 1000, **CODE}, 0.01059, 482, 0.01245),
        (figure_5(), {"step_size": 0.05}, 0.00507, 239, 0.189),
        (figure_5(), {"step_size": 0.05, "n_steps": 1000, **CODE}, 0.00507, 120, None),
        (figure_5(0), {"step_size": 0.05, "n_steps": 1000, **CODE}, 0.0119, 91, None),
        (figure_5(100), {"step_size": 0.05, "n_steps": 1000, **CODE}, 0.0233, 202, None),
        (figure_5(200), {"step_size": 0.05, "n_steps": 1000, **CODE}, 0.0282, 121, None),
        (GAUSSIAN, {}, 0.000423, 651, None),
    ],
    ids=["2 text", "3 code", "5 text", "5 code", "5 seed 0", "5 seed 100", "5 seed 200", "Gaussian measurements"],
)
def test_figures(data, options, error, step, last):
    check_minimum(descend(data, **options), error, step, last)


def test_figure_2_by_the_code_is_unstable_and_long_runs_overfit_slowly():
    path = descend(FIGURE_2, n_steps=2000, **CODE)
    check_minimum(path, 0.00869, 301)
    assert 170 < path.error[-1] < 195
    assert path.status is Status.COMPLETED  # magnitudes stay bounded; directions tumble
    assert descend(FIGURE_2, n_steps=200_000, record_every=20_000).error[-1] == pytest.approx(0.161, rel=0.01)


@pytest.mark.parametrize(
    ("switch", "at"), [("oracle", 788), (0.03, 415), (0.02, 456), (0.01, 784), (0.0005, 885), (0.0002, None)]
)
def test_figure_3_text(switch, at):
    path = descend(FIGURE_3, direction_step=1e-3, switch=switch)
    check_minimum(path, 0.01059, path.t[path.best], last=0.01245)
    assert path.switch == at
    np.testing.assert_allclose(path.u[-1, :3], [3.244, 3.964, 4.561], atol=1e-3)


@pytest.mark.parametrize(("switch", "error", "step", "at"), [(0.03, 0.0460, 635, 364), (0.01, 0.0462, 655, 398)])
def test_figure_4_text(switch, error, step, at):
    path = descend(FIGURE_4, step_size=0.01, direction_step=0.01, switch=switch)
    check_minimum(path, error, step)
    assert path.switch == at


@pytest.mark.parametrize(
    ("positive_only", "at_500", "least", "step"), [(True, 6.87, 0.3006, 1345), (False, 8.10, 0.9211, 1713)]
)
def test_figure_4_plain_sparsity(positive_only, at_500, least, step):
    path = diagonal_descent(
        FIGURE_4.X, FIGURE_4.y, step_size=0.01, gradient_scale=2.0, positive_only=positive_only,
        w_star=FIGURE_4.w_star,
    )  # fmt: skip
    assert path.error[500] == pytest.approx(at_500, rel=0.005)
    check_minimum(path, least, step)


def test_figure_7():
    def run(start):
        return plain_descent(
            FIGURE_4.X, FIGURE_4.y, FIGURE_4.groups, start=start, gradient_scale=2.0, w_star=FIGURE_4.w_star
        )

    check_minimum(run("zero"), 0.0448, 5932, last=0.0459)
    opposed = run(np.full(500, -1e-3 / 2))
    assert opposed.error.min() > 0.999 * opposed.error[0]
    assert opposed.error[-1] == pytest.approx(24.3, rel=0.01)
    check_minimum(run("small"), 0.0449, 3367)
