"""group_path: the public call."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from covey.network.runner import PathRunner
from covey.network.snapshots import StopLike
from covey.path import Path, PathState
from covey.preprocess import Standardize

__all__ = ["group_path"]


def group_path(
    X: Any,
    y: ArrayLike,
    groups: Any = None,
    *,
    algorithm: str = "single-stage",
    init_scale: float | str = "auto",
    step_size: float | str = "auto",
    direction_step: float | str = "auto",
    switch_tol: float | str = "auto",
    depth: int = 2,
    group_weights: Any = "noise",
    max_iter: int = 100_000,
    fit_intercept: bool = True,
    standardize: Standardize = "group",
    sample_weight: ArrayLike | None = None,
    times: ArrayLike | None = None,
    engine: str = "auto",
    update: str = "fast",
    tol: float = 1e-3,
    stop: StopLike | None = None,
    start: Path | PathState | None = None,
    verbose: int = 0,
) -> Path:
    r"""Models along the time of gradient descent on a diagonally grouped linear network.

    The objective is :math:`\frac{1}{2n} \|y - Xw\|^2` without a penalty, over :math:`w_l = u_l^N v_l` with
    :math:`\|v_l\| = 1`. Every magnitude :math:`u_l` starts tiny; groups wake up one after another, strongest first,
    and the time of stopping is the only regularisation. The network is run in working coordinates (see
    `standardize`), in which the response has unit standard deviation; coefficients come back on the user's scale.

    Parameters
    ----------
    X : array-like or Design, shape (n, p)
        Any kind of storage that `covey.designs.as_design` accepts; never copied.
    y : array-like, shape (n,)
    groups : None, int, labels, lists of columns, dict or Groups
        See `covey.Groups`; None makes every column its own group.
    algorithm : {"single-stage", "two-stage"}
        The paper's Algorithm 1 or Algorithm 2.
    init_scale : "auto" or float
        Start value of every magnitude (alpha in the paper), for a response of unit standard deviation; with
        ``update="printed"`` on the data's own scale. "auto" is 1e-6 for depth 2, and larger for deeper networks, whose
        groups need a time of ``init_scale^(2 - depth)`` to wake up.
    step_size : "auto" or float
        Step on the magnitudes (gamma), on the scale of the response and, with ``standardize=False``, of the columns, so
        that gamma is the paper's. Paths with the same step share their time scale. "auto" is ``1/(20 u_max^2)``,
        with ``u_max^2`` the largest correlation of a group with y.
    direction_step : "auto" or float
        Step on the directions (eta) after the switch of the two-stage algorithm, also on the data's own scale. Before
        the switch, and always in the single-stage algorithm, it is ``1/u^4``; with ``update="fast"``, the largest
        stable step if the awake groups are so correlated that ``1/u^4`` would oscillate.
    switch_tol : "auto" or float
        Relative change of the magnitudes below which the two-stage algorithm switches (tau).
    depth : int
        Power N on the magnitudes.
    group_weights : "noise", "sqrt", None or array-like, shape (n_groups,)
        A group of weight 2 grows half as fast. "noise" is the level that noise alone would reach in a group of this
        dimension, so that groups of all sizes are equally likely to wake up by chance. "sqrt" is the square root of the
        dimension, which favours small groups; None favours large ones. Scaled to mean 1.
    max_iter : int
        The last iteration.
    fit_intercept : bool
    standardize : {"group", "column", "block", False}
        Orthonormalise each group, scale each column, scale the columns of each group by one number, or none of these.
    sample_weight : array-like, shape (n,), or None
        Equivalent to repeating rows that often.
    times : array-like of int or None
        Iterations to record; None for a choice adapted to the path.
    engine : {"auto", "screened", "exact"}
        "exact" steps every group at every iteration; "screened" steps only awake groups and integrates the growth of
        the sleeping ones; "auto" is "screened" unless all groups are awake from the start, or nearly so.
    update : {"fast", "printed"}
        "printed" is the step of the paper's text, in the exact engine: the magnitudes move by the correlation at the
        new directions, and no step is cut. "fast" uses the correlation at the old directions for both, which halves the
        work, and cuts steps that would oscillate. With ``standardize=False, group_weights=None, fit_intercept=False``,
        "printed" is `covey.Network.paper`.
    tol : float
        Relative accuracy of the screened engine: of the growth of sleeping groups, and the share of the largest
        correlation below which a group counts as asleep.
    stop : callable, StopRule or None
        Called with a `Snapshot` at every recorded time; a true result ends the path. A `covey.network.StopRule` may
        score many models at once.
    start : Path, PathState or None
        A path to continue from its end. Its time continues too.
    verbose : int
        1 prints one line per group that wakes up.

    Returns
    -------
    Path

    References
    ----------
    Implicit Regularization for Group Sparsity, ICLR 2023, Algorithms 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> from covey import Groups
    >>> from covey.network.group_path import group_path
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 40))
    >>> y = X[:, :4] @ [1.0, -1.0, 1.0, 1.0] + 0.1 * rng.standard_normal(60)
    >>> path = group_path(X, y, Groups.from_size(4, 40), max_iter=300)
    >>> path.entered[0][0], path.status
    (0, 'completed')
    """
    runner = PathRunner(X, y, groups, standardize=standardize, fit_intercept=fit_intercept, sample_weight=sample_weight)
    return runner.run(
        algorithm=algorithm, init_scale=init_scale, step_size=step_size, direction_step=direction_step,
        switch_tol=switch_tol, depth=depth, group_weights=group_weights, max_iter=max_iter, times=times,
        engine=engine, update=update, tol=tol, stop=stop, start=start, verbose=verbose,
    )  # fmt: skip
