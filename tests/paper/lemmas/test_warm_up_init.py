r"""Lemma warm-up-init (``lemma:warm-up-init``): one gradient step from zero points nearly along the truth.

Printed: if ``v_l(0)`` is proportional to ``X_l'y/n`` then, for l in the support,

    < v_l(0)/norm(v_l(0)), v_star_l >  >=  1 - ( delta_in + L delta_out + norm(X_l'xi/n)_2 / u_star_l^2 )^2.

It fails in two ways. The other groups leak ``delta_out sum_{l' != l} u_star_l'^2`` into group l, which the
proof writes as ``L delta_out u_star_l^2``: a weak group beside a strong one breaks it. And the proof takes the
square root of a squared cosine, so that it needs the cosine to be positive: noise that reverses the group
breaks it.

Corrected: with a positive factor of proportionality and

    R = delta_in + delta_out sum_{l' != l} u_star_l'^2 / u_star_l^2 + norm(X_l'xi/n)_2 / u_star_l^2  <=  1,

the cosine is at least ``sqrt(1 - R^2) >= 1 - R^2``. With equal magnitudes the sum is ``s - 1``, less than the
printed L.

Verdict: fails as printed; holds corrected. In theorem gf-es ``delta_out = 0``, so nothing changes there.
"""

import numpy as np
from hypothesis import given
from lemmas.instances import (
    ROUNDING,
    coherence,
    lemma,
    make_model,
    model_with_gram,
    noise_with_group_norms,
    random_truth,
    seeds,
)

from covey.groups import Groups
from covey.paper.dynamics import plain_descent


def cosines(model):
    """Of the aligned start with the truth, in each group of the support."""
    path = plain_descent(model.X, model.y, model.groups, start="aligned", init_scale=0.1, n_steps=0)
    v = path.v[0]
    norms = model.groups.norms(v)
    np.testing.assert_allclose(norms, 0.1 / np.sqrt(2), rtol=1e-12, err_msg="the aligned start is balanced")
    return np.array([v[G] @ model.v_star[G] / norms[l] for l, G in enumerate(model.groups.lists())])[model.S]


def printed_radius(model):
    delta_in, delta_out = coherence(model.X, model.groups)
    return delta_in + model.groups.n_groups * delta_out + (model.group_noise / model.u_star.clip(1e-9) ** 2)[model.S]


def corrected_radius(model):
    delta_in, delta_out = coherence(model.X, model.groups)
    squares = model.u_star[model.S] ** 2
    return delta_in + (delta_out * (squares.sum() - squares) + model.group_noise[model.S]) / squares


@lemma
@given(seeds)
def test_corrected(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, size=4)
    w_star = random_truth(rng, sizes, 3, low=0.5, high=3.0)
    u_min = np.sqrt(Groups.from_sizes(sizes).norms(w_star)[:3].min())
    model = make_model(
        rng, sizes, w_star, delta_in=rng.uniform(0, 0.3), delta_out=rng.uniform(0, 0.02),
        noise_correlation=noise_with_group_norms(rng, sizes, rng.uniform(0, 0.6) * u_min**2 * rng.random(4)),
    )  # fmt: skip
    R = corrected_radius(model)
    held = R <= 1
    assert held.any()
    assert (cosines(model)[held] >= np.sqrt(1 - R[held] ** 2) - ROUNDING).all()


def test_corrected_is_sharp():
    # b orthogonal to w + b is the worst perturbation of its length: the cosine is sqrt(1 - R^2)
    R = 0.6
    w_star, b = np.array([1.0, 0.0]), np.array([-(R**2), R * np.sqrt(1 - R**2)])
    model = make_model(np.random.default_rng(0), [2], w_star, noise_correlation=b)
    np.testing.assert_allclose(cosines(model), np.sqrt(1 - R**2), rtol=1e-12)


def test_as_printed_fails_for_a_weak_group_beside_a_strong_one():
    # u_star^2 = 1 and 100, delta_out = 0.01, no noise: the strong group leaks 0.01 * 100 = 1 into the weak one
    G = np.eye(4)
    G[1, 2] = G[2, 1] = 0.01
    model = model_with_gram(np.random.default_rng(0), Groups.from_size(2, 4), G, [1.0, 0.0, 100.0, 0.0])
    delta_in, delta_out = coherence(model.X, model.groups)
    assert delta_in < 1e-12
    assert abs(delta_out - 0.01) < 1e-12
    printed = 1 - printed_radius(model) ** 2
    assert printed[0] > 0.9995
    np.testing.assert_allclose(cosines(model)[0], np.sqrt(0.5), rtol=1e-9)
    assert cosines(model)[0] < printed[0]


def test_as_printed_fails_when_noise_reverses_the_group():
    # X_l'xi/n = -1.2 w_star: the start points backwards, cosine -1, while the printed bound is 1 - 1.44
    w_star = np.array([0.6, 0.8])
    model = make_model(np.random.default_rng(1), [2], w_star, noise_correlation=-1.2 * w_star)
    np.testing.assert_allclose(cosines(model), -1.0, rtol=1e-12)
    assert (1 - printed_radius(model) ** 2 > -0.45).all()
