"""Theorems convergence-alg-1 and -2: models at the limits of their conditions, and the bounds inside their windows."""

import numpy as np
from lemmas.instances import ROUNDING, coherence, make_model, noise_with_group_norms, random_directions, random_truth

from covey.paper.theory import bounds, power_bounds, time_window


def bounds_of(model, epsilon, **given):
    """The constants of both theorems for a model, printed and corrected, at its exact noise."""
    return bounds(
        model.u_star, n=len(model.y), p=len(model.w_star), L=model.groups.n_groups, epsilon=epsilon,
        noise=model.entry_noise, group_noise=float(model.group_noise.max()), **given,
    )  # fmt: skip


def power_bounds_of(model, epsilon, N, **given):
    """Those of the corrected theorems for a power N."""
    return power_bounds(
        model.groups.norms(model.w_star), L=model.groups.n_groups, epsilon=epsilon, depth=N,
        group_noise=float(model.group_noise.max()), **given,
    )  # fmt: skip


def draw(rng, noise_level, delta_factor=lambda zeta, truth: 1.0, low=1.0, high=1.4):
    """A model at the theorem's limits of coherence, with group noise at most ``noise_level``: ``(model, sizes)``."""
    sizes = rng.integers(1, 4, size=4)
    s = int(rng.integers(1, 4))
    w_star = random_truth(rng, sizes, s, low=low, high=high)
    truth = make_model(rng, sizes, w_star)
    limit = delta_factor(80 * noise_level, truth) * truth.u_min**2 / (120 * truth.u_max**2)
    noise = noise_with_group_norms(rng, sizes, noise_level * rng.choice([1.0, 0.3], size=4))
    model = make_model(rng, sizes, w_star, delta_in=limit, delta_out=limit / s, noise_correlation=noise)
    delta_in, delta_out = coherence(model.X, model.groups)
    assert delta_in <= limit * (1 + ROUNDING)
    assert delta_out <= limit / s * (1 + ROUNDING)
    return model, sizes


def assert_recovers(rng, model, b, *, records=400, **options):
    """Run from random directions; the corrected theorem's promise at every record of its window: the path."""
    n_steps = int(np.ceil(b.T_ub))
    path = model.descend(
        init_scale=b.init_scale, step_size=b.step_size, depth=b.depth, n_steps=n_steps,
        start=random_directions(rng, model.groups.sizes), record_every=max(1, n_steps // records), **options,
    )  # fmt: skip
    assert b.T_lb <= b.T_ub
    inside = (path.t >= b.T_lb) & (path.t <= b.T_ub)
    assert inside.sum() > 20
    errors, norms = model.groups.norms(path.w - model.w_star), model.groups.norms(path.w)
    assert (errors[inside][:, model.S] <= b.error_radius).all()
    assert (norms[path.t <= b.T_ub][:, model.off] <= b.off_support_radius).all()
    assert time_window(path, model.w_star, bounds=b).contains((b.T_lb, min(b.T_ub, path.t[-1])))
    return path


def assert_settled(model, path, b):
    """More than the theorem says: by T_lb the groups of the support have settled where their correlation vanishes.

    That is at most ``noise / (1 - delta_in - s delta_out)`` from the truth.
    """
    errors = model.groups.norms(path.w - model.w_star)[path.t >= b.T_lb]
    assert (errors[:, model.S] <= 1.1 * max(b.group_noise, b.epsilon)).all()
