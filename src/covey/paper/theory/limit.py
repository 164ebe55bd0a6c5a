"""The network's path in the limit of small starts: a direct implementation of its definition."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from covey.groups import Groups
from covey.losses import Loss, get_loss
from covey.losses.responses import read_offset
from covey.validation import FloatArray, as_matrix, as_numbers, as_response, check_scale, whole


def limit_events(
    X: ArrayLike, y: ArrayLike, groups: object, weights: ArrayLike | None = None, *, n_events: int | None = None,
    loss: str | Loss = "squared", offset: ArrayLike | None = None,
) -> list[tuple[int, float, FloatArray]]:  # fmt: skip
    r"""Events of the network :math:`w_l = u_l^N v_l` as its start scale goes to zero.

    The loss is :math:`\frac{1}{2n}\|y - Xw\|^2`. Let :math:`g_l = X_l^\top (y - Xw) / n`, and let :math:`c_l` be the
    weight of group l. A sleeping group accumulates :math:`\|g_l\| / c_l` over time, starting at :math:`s_l = 0`, and
    wakes up when the sum reaches 1; the awake groups are immediately fitted by least squares. The next to wake up is
    therefore :math:`\arg\min_l (1 - s_l) c_l / \|g_l\|`, for every depth :math:`N \ge 2`. For another loss, its
    residual replaces :math:`y - Xw`, and its minimiser replaces least squares. docs/limit.md has the proof for gradient
    flow, the condition under which it holds for the printed Algorithm 1, and the rule for groups of one column.

    This is a reference implementation in plain numpy, on the columns as given: nothing is centred, scaled or updated.
    `covey.limit_path` computes the same at scale, in working coordinates.

    The result has ``(group, time, coefficients)`` of every event in order; the coefficients, shape (p,), are those
    after it. By default all `weights` are 1, and groups wake up until nothing is left to explain; `n_events` is the
    most that do. No intercept is fitted; `offset` is added to the linear predictor. If the awake groups separate the
    classes, the minimiser lies at infinity: the coefficients then make the gradient negligible, and no further group
    wakes up.

    References
    ----------
    Berthier, "Incremental learning in diagonal linear networks", 2022 (arXiv 2208.14673), and Pesme and Flammarion,
    "Saddle-to-saddle dynamics in diagonal linear networks", 2023 (arXiv 2304.00488), for ungrouped networks.

    Examples
    --------
    >>> from covey.paper.theory import limit_events
    >>> X = np.sqrt(6) * np.eye(6)  # orthonormal: X'X/n = I
    >>> y = X @ [3.0, 4.0, 0.0, 2.0, 0.0, 0.0]
    >>> [(group, round(time, 3)) for group, time, _ in limit_events(X, y, 2)]  # norms 5 and 2
    [(0, 0.2), (1, 0.5)]
    """
    loss, X = get_loss(loss), as_matrix(X)
    check_scale(X, "X")
    if loss.vector:
        raise ValueError(f"The {loss.name} loss has several linear predictors; use covey.limit_path.")
    n, p = X.shape
    as_response(y, n)
    y, shift = loss.check(y), np.zeros(n) if offset is None else read_offset(offset, n, 1, loss)[:, 0]
    columns = Groups.coerce(groups, p).lists()
    check_scale(y, "y")
    c = np.ones(len(columns)) if weights is None else as_numbers(weights, "weights", ndim=1)
    if c.size != len(columns) or not (c > 0).all():
        raise ValueError(f"weights must be {len(columns)} numbers above 0, one per group.")
    n_events = None if n_events is None else whole(n_events, "n_events", least=0)
    s, time, w = np.zeros(len(columns)), 0.0, np.zeros(p)
    awake: list[int] = []
    events: list[tuple[int, float, FloatArray]] = []
    most = np.linalg.norm(X, axis=0).max(initial=0.0) * np.linalg.norm(loss.residual(y, shift)) / n
    nothing = 1e-9 * most  # round-off error
    while len(awake) < len(columns) and (n_events is None or len(awake) < n_events):
        g = X.T @ loss.residual(y, shift + X @ w) / n
        rate = np.array([np.linalg.norm(g[members]) for members in columns]) / c
        rate[awake] = 0.0
        if not (rate > nothing).any():
            break
        wait = np.divide(1 - s, rate, out=np.full(s.size, np.inf), where=rate > nothing)
        l = int(np.argmin(wait))
        s, time = s + wait[l] * rate, time + float(wait[l])
        awake.append(l)
        of_awake = np.concatenate([columns[m] for m in awake])
        w = w.copy()
        w[of_awake] = _minimum(X[:, of_awake], y, shift, loss, w[of_awake], nothing * n / 10)
        events.append((l, time, w))
    return events


def _minimum(A: FloatArray, y: FloatArray, shift: FloatArray, loss: Loss, b: FloatArray, nothing: float) -> FloatArray:
    """Newton's method from b, with steps halved if the loss rises, until the gradient is negligible."""
    for _ in range(100):
        eta = shift + A @ b
        gradient = A.T @ loss.residual(y, eta)
        if np.abs(gradient).max() <= nothing:
            break
        root = np.sqrt(loss.curvature(y, eta))[:, None]
        step = np.linalg.lstsq((root * A).T @ (root * A), gradient, rcond=None)[0]
        level = loss.value(y, eta).sum()
        while loss.value(y, eta + A @ step).sum() > level + 1e-12 * abs(level):
            step = step / 2
        b = b + step
    return b
