import numpy as np
import pytest

from covey import Groups
from covey.datasets import make_group_sparse
from covey.datasets.simulate import DESIGNS, NOISES, draw_noise


@pytest.mark.parametrize("design", DESIGNS)
def test_the_model_is_the_one_promised(design):
    data = make_group_sparse(60, 24, 4, design=design, active=2, values=1.5, sigma=0.3, random_state=1)
    np.testing.assert_allclose(data.y, data.X @ data.w_star + data.noise)
    assert data.S.tolist() == [0, 1]
    np.testing.assert_allclose(data.u_star[:2] ** 2, 1.5 * 2)
    np.testing.assert_allclose(data.u_star[data.groups.labels] ** 2 * data.v_star, data.w_star)
    np.testing.assert_allclose(data.groups.norms(data.v_star)[:2], 1)


@pytest.mark.parametrize(
    ("design", "rho", "at_lag_2"), [("ar", 0.7, 0.49), ("equicorrelated", 0.7, 0.7), ("gaussian", 0, 0)]
)
def test_correlations(design, rho, at_lag_2):
    X = make_group_sparse(200_000, 4, 2, design=design, rho=rho, active=1, random_state=0).X
    correlation = X.T @ X / len(X)
    np.testing.assert_allclose(np.diag(correlation), 1, atol=0.02)
    assert correlation[0, 2] == pytest.approx(at_lag_2, abs=0.02)


def test_orthogonal_and_rademacher_columns():
    X = make_group_sparse(40, 24, 4, design="orthogonal", random_state=0).X
    np.testing.assert_allclose(X.T @ X / 40, np.eye(24), atol=1e-14)
    signs = make_group_sparse(1000, 4, 2, active=1, random_state=0).X
    assert set(np.unique(signs)) == {-1.0, 1.0}
    assert abs(signs.mean()) < 0.05


def test_snr():
    data = make_group_sparse(500, 20, 4, active=2, snr=4.0, random_state=0)
    assert data.snr == pytest.approx(4.0)
    assert np.var(data.noise) == pytest.approx(data.sigma**2, rel=0.2)


@pytest.mark.parametrize("kind", NOISES)
def test_noise_of_every_kind_has_the_standard_deviation_asked_for(kind):
    xi = draw_noise(np.random.default_rng(0), 400_000, 0.7, kind, df=9.0)
    assert abs(xi.mean()) < 0.01
    assert xi.std() == pytest.approx(0.7, rel=0.01)
    data = make_group_sparse(4000, 4, 2, active=1, sigma=0.7, noise=kind, noise_df=9.0, random_state=1)
    assert data.noise.std() == pytest.approx(0.7, rel=0.05)


def test_noise_is_of_its_kind():
    rng = np.random.default_rng(0)
    assert set(np.unique(draw_noise(rng, 100, 2.0, "rademacher"))) == {-2.0, 2.0}
    uniform = draw_noise(rng, 100_000, 2.0, "uniform")
    assert 3.46 < np.abs(uniform).max() <= 2 * np.sqrt(3)
    # a third of the mass lies in each third of the interval
    assert np.mean(np.abs(uniform) < 2 / np.sqrt(3)) == pytest.approx(1 / 3, abs=0.01)
    # P(|t_3| > 5.841) = 0.01, and its variance is 3
    student = draw_noise(rng, 400_000, 2.0, "student")
    assert np.mean(np.abs(student) > 2 * 5.841 / np.sqrt(3)) == pytest.approx(0.01, rel=0.05)


@pytest.mark.parametrize("kind", ["gaussian", "rademacher", "uniform"])
def test_sub_gaussian_kinds_meet_the_definition_with_parameter_sigma(kind):
    # E exp(t Y) <= exp(sigma^2 t^2/2), the paper's definition, up to the error of a mean over draws
    xi = draw_noise(np.random.default_rng(0), 1_000_000, 0.8, kind)
    for t in (-2.0, -0.5, 0.5, 1.0, 2.0):
        assert np.mean(np.exp(t * xi)) <= np.exp(0.8**2 * t**2 / 2) * 1.01


def test_support_by_name_and_by_values():
    groups = Groups.from_labels(["a", "b", "a", "c"])
    data = make_group_sparse(10, 4, groups, active=["c", "a"], values=[7.0, 1.0, 2.0], random_state=0)
    assert data.w_star.tolist() == [1.0, 0.0, 2.0, 7.0]
    w = np.array([0.0, 1.0, 0.0, -1.0])
    assert make_group_sparse(10, 4, groups, values=w, random_state=0).w_star.tolist() == w.tolist()


def test_oracle_is_least_squares_on_the_support():
    data = make_group_sparse(100, 30, 3, active=2, sigma=0.0, random_state=0)
    np.testing.assert_allclose(data.oracle(), data.w_star, atol=1e-10)


def test_seeds():
    a, b = (make_group_sparse(random_state=5) for _ in range(2))
    np.testing.assert_array_equal(a.X, b.X)
    np.testing.assert_array_equal(a.y, b.y)
    assert not np.array_equal(a.X, make_group_sparse(random_state=6).X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"design": "sobolev"}, "design must be one of 'rademacher'"),
        ({"design": "ar", "rho": 1.0}, "rho must lie in"),
        ({"design": "equicorrelated", "rho": -0.1}, "rho must lie in"),
        ({"design": "orthogonal"}, "at least as many rows as columns"),
        ({"active": 101}, "between 0 and the 100 groups"),
        ({"active": ["nobody"]}, "no group named 'nobody'"),
        ({"values": [1.0, 2.0]}, "one per column of the support"),
        ({"values": "large"}, "'normal'"),
        ({"sigma": -1.0}, "sigma must be at least 0"),
        ({"sigma": 1.0, "snr": 1.0}, "sigma or snr, not both"),
        ({"active": 0, "snr": 1.0}, "snr needs a signal"),
        ({"noise": "cauchy"}, "noise must be one of 'gaussian'"),
        ({"noise": "student", "noise_df": 2.0}, "noise_df must be above 2"),
        ({"n_rows": 0}, "n_rows must be at least 1"),
        ({"groups": 7}, "would be left over"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_group_sparse(**arguments)
