"""Models and states that are as close to the truth as the lemmas phase2-boundness ask, and their perturbations."""

import numpy as np
from lemmas.instances import (
    ROUNDING,
    coherence,
    direction_with_cosine,
    make_model,
    noise_with_group_norms,
    random_truth,
    unit,
)


def perturbations(model, u, v, reference=False, gamma=1e-2):
    """``b_(l,t)`` by its formula, and ``e_(l,t)`` read off a step of Algorithm 1: ``(b, e, v(t+1))``."""
    labels, groups = model.groups.labels, model.groups.lists()
    w = u[labels] ** 2 * v
    K = model.X.T @ model.X / len(model.y)
    b = (K - np.eye(len(w))) @ (model.w_star - w) + model.noise_correlation
    np.testing.assert_allclose(model.correlation(w), model.w_star - w + b, atol=1e-12)
    path = model.descend(init_scale=u, start=v, step_size=gamma, n_steps=1, reference=reference)
    new_u, new_v = path.u[-1], path.v[-1]
    e = np.array([
        (new_u[l] / u[l] - 1) / (2 * gamma) - new_v[G] @ (model.w_star[G] - u[l] ** 2 * new_v[G])
        for l, G in enumerate(groups)
    ])  # fmt: skip
    return b, e, new_v


def near_truth(rng, model, closeness, cosine, off_mass):
    """Magnitudes and directions as close to the truth as the lemma asks, with equality half the time."""
    u, v = np.empty(model.groups.n_groups), np.empty_like(model.w_star)
    for l, G in enumerate(model.groups.lists()):
        if l in model.S:
            u[l] = model.u_star[l] * np.sqrt(1 + closeness * rng.choice([-1.0, 1.0, rng.uniform(-1, 1)]))
            v[G] = direction_with_cosine(model.v_star[G], rng.choice([cosine, rng.uniform(cosine, 1)]), rng)
        else:
            u[l] = np.sqrt(off_mass / len(model.off))
            v[G] = unit(rng, G.size)
    return u, v


def draw(rng, tau, tau_0, delta_factor=1.0):
    sizes = rng.integers(1, 6, size=4)
    s = int(rng.integers(1, 4))
    w_star = random_truth(rng, sizes, s, low=0.7, high=1.5)
    truth = make_model(rng, sizes, w_star)
    limit = delta_factor * truth.u_min**2 / (120 * truth.u_max**2)
    noise = noise_with_group_norms(rng, sizes, np.full(4, tau_0 * truth.u_min**2 / 80))
    model = make_model(rng, sizes, w_star, delta_in=limit, delta_out=limit / s, noise_correlation=noise)
    delta_in, delta_out = coherence(model.X, model.groups)
    assert delta_in <= limit * (1 + ROUNDING)
    assert delta_out <= limit / s * (1 + ROUNDING)
    return model
