r"""Lemma dir-not-change (``lemma:dir-not-change``).

On an orthogonal design, ``X_l'X_l/n = I`` and ``X_l'X_l'/n = 0``, if ``v_l(0)`` is a multiple of ``X_l'y/n``
then along the flow ``v_l(t) = c(t) X_l'y/n``: directions stay, and the flow is one scalar equation per
group. (The printed "some constant c" depends on t.) Started with a positive multiple, c stays positive.

The argument is about one derivative at a time, so gradient descent without normalisation has the same property.

Verdict: holds.
"""

import numpy as np
from hypothesis import given
from lemmas.instances import engines, lemma, seeds

from covey.datasets import make_group_sparse
from covey.paper.dynamics import gradient_flow, plain_descent


def draw(seed):
    data = make_group_sparse(12, 8, [3, 3, 3, 0, 0, 1, 1, 2], design="orthogonal", active=2, values="normal",
                             sigma=1.0, random_state=seed)  # fmt: skip
    target = data.X.T @ data.y / 12
    return data, target


def multiples(path, target):
    """``c(t)`` of each group and the part of ``v_l`` that is no multiple of ``X_l'y/n``, relative to ``v_l``."""
    c, rest = [], []
    for G in path.groups.lists():
        h = target[G]
        along = path.v[:, G] @ h / (h @ h)
        c.append(along)
        off = np.linalg.norm(path.v[:, G] - along[:, None] * h, axis=1)
        rest.append(off / np.linalg.norm(path.v[:, G], axis=1))
    return np.array(c), np.array(rest)


@lemma
@given(seeds)
def test_flow_keeps_the_aligned_direction(seed):
    data, target = draw(seed)
    path = gradient_flow(data.X, data.y, data.groups, init_scale=0.2, t_end=20.0)
    c, rest = multiples(path, target)
    assert (c > 0).all()
    assert rest.max() < 1e-7
    assert np.ptp(c, axis=1).max() > 0.05, "the flow must move for the lemma to say anything"


@lemma
@given(seeds, engines)
def test_descent_keeps_it_too(seed, reference):
    data, target = draw(seed)
    # a negative multiple: the line is kept, on which the flow may turn
    start = -0.1 * target
    path = plain_descent(
        data.X, data.y, data.groups, init_scale=0.3, start=start, step_size=0.02, n_steps=200, reference=reference
    )
    c, _ = multiples(path, target)
    away = path.v - c[data.groups.labels].T * target
    assert np.abs(away).max() < 1e-12
    assert np.ptp(c, axis=1).max() > 0.01


def test_an_unaligned_start_does_turn():
    data, target = draw(3)
    G = data.groups.lists()[0]
    start = 0.1 * target
    start[G] = 0.1 * target[G][[1, 2, 0]]
    _, rest = multiples(gradient_flow(data.X, data.y, data.groups, init_scale=0.2, start=start, t_end=20.0), target)
    assert abs(rest[0, -1] - rest[0, 0]) > 0.1
