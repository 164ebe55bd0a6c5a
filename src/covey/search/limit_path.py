"""limit_path: the public function."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from covey.designs import Design, as_design
from covey.designs.rows import count_rows
from covey.groups import Groups, GroupsLike
from covey.layout import offsets
from covey.losses import Loss, get_loss
from covey.path import Path
from covey.preprocess import Standardize
from covey.search.paths import Knots, Paths
from covey.search.posed import Posed, pose
from covey.search.problem import Parts, Problem
from covey.search.table import Table
from covey.threads import fitting_threads
from covey.validation import FloatArray, MatrixLike, PerRow, as_response, as_sample_weight, on_host, whole

__all__ = ["limit_path", "path_of", "read_rows"]


def limit_path(
    X: MatrixLike,
    y: ArrayLike,
    groups: GroupsLike = None,
    *,
    always: Iterable[Hashable] = (),
    max_groups: int | None = None,
    group_weights: ArrayLike | None = "noise",
    standardize: Standardize = "group",
    fit_intercept: bool = True,
    factors: int | str = 0,
    sample_weight: ArrayLike | None = None,
    loss: str | Loss = "squared",
    offset: ArrayLike | None = None,
) -> Path:
    r"""The order in which groups enter, and the model after each: the network's path in the limit of small starts.

    The loss is :math:`\frac{1}{2n}\|y - Xw\|^2` unless `loss` says otherwise. As the initial scale goes to 0, the path
    of the network :math:`w_l = u_l^N v_l` becomes a list of events, the same for every depth :math:`N \ge 2`. A
    sleeping group accumulates :math:`\|g_l\| / c_l` over time, where :math:`g_l` is minus the gradient of the loss on
    its columns (their correlation with the residual) and :math:`c_l` is its weight. When the sum reaches 1, the group
    wakes up, and the model jumps to the minimiser of the loss on all awake groups (least squares or maximum
    likelihood). There is no step size, and nothing is shrunk.

    Parameters
    ----------
    X : array-like or Design, shape (n, p)
        Any storage that `covey.designs.as_design` accepts; never copied.
    y : array-like, shape (n,), or (n, n_outputs) for several responses or classes
    groups : None, int, labels, lists of columns, dict or Groups
        See `covey.Groups`; None makes every column its own group.
    always : iterable
        Names of groups that are awake from the start, for instance those of an earlier model.
    max_groups : int, optional
        The path ends when this many groups are awake; by default, when nothing is left to explain.
    group_weights : "noise", "sqrt", None or array-like, shape (n_groups,)
        :math:`c_l`, scaled to mean 1. "noise" is the level that pure noise would reach in a group of this dimension, so
        that groups of all sizes are about equally likely to wake up by chance; "sqrt" is the square root of the
        dimension, which favours small groups; None weights all groups equally, which favours large ones.
    standardize : {"group", "column", "block", False}
        Orthonormalise the columns within each group, scale each column, scale each group as a block, or do nothing.
    fit_intercept : bool
    factors : int or "auto"
        The number of common factors of the columns to include in the model while the order of the groups is
        determined. The models on the path contain only the groups.
    sample_weight : array-like, shape (n,), or None
        A weight of k is the same as repeating the row k times, except that an event is not tied with itself (Cox).
    loss : str or Loss
        A name or an object from `covey.losses`; "squared" also takes several responses. For "binomial" the classes are
        0 and 1; for "multinomial" `y` has one column per class. Parameters of a loss that are not given, such as the
        threshold of `Huber`, are those of the null model.
    offset : array-like, shape (n,) or (n, n_outputs), or None
        Added to the linear predictor of every model with coefficient one.

    Returns
    -------
    Path
        The null model, then one model per event: the minimiser of the loss on the groups awake after it. For squared
        loss, event times refer to a response of unit standard deviation. If the awake groups separate the classes
        perfectly (or zero counts from positive ones), the minimiser is infinite: from that event on, models have a
        small ridge, the status is "separated", and the message gives the time of the event. ``path.predict`` returns
        linear predictors without the offset.

    References
    ----------
    Li, Nguyen, Hegde and Wong, "Implicit Regularization for Group Sparsity", ICLR 2023; Pesme and Flammarion,
    "Saddle-to-saddle dynamics in diagonal linear networks", 2023, for the ungrouped limit.

    Examples
    --------
    >>> import numpy as np
    >>> from covey import limit_path
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 40))
    >>> y = X[:, :4] @ [1.0, -1.0, 1.0, 1.0] + 0.1 * rng.standard_normal(60)
    >>> path = limit_path(X, y, 4, max_groups=2)
    >>> path.entered[0][0], path.status, len(path)
    (0, 'completed', 3)

    Counts with different exposures:

    >>> hours = rng.uniform(1, 5, 60)
    >>> counts = rng.poisson(hours * np.exp(X[:, 4:8] @ [0.5, -0.5, 0.5, 0.5]))
    >>> path = limit_path(X, counts, 4, max_groups=2, loss="poisson", offset=np.log(hours))
    >>> path.entered[0][0], path.status, len(path)
    (1, 'completed', 3)
    """
    design = as_design(X)
    partition = Groups.coerce(groups, design.shape[1], design.columns)
    first = partition.positions(always, "always")
    most = partition.n_groups if max_groups is None else whole(max_groups, "max_groups", least=0)
    fitted, response, weight, shift = read_rows(design, y, sample_weight, get_loss(loss), offset)
    options = {
        "group_weights": group_weights, "standardize": standardize, "fit_intercept": fit_intercept, "factors": factors,
    }  # fmt: skip
    problem = Problem(design, response, weight, partition, first, options, fitted, shift)
    with fitting_threads(design.shape, design.on_device):
        posed = pose(problem, Parts.everything(weight, count_rows(weight)))
        paths = Paths(Table(posed), [first])
        paths.advance(max(0, most - len(first)))
        return path_of(posed, paths.knots(0), partition)


def read_rows(
    design: Design, y: ArrayLike, sample_weight: PerRow, loss: Loss, offset: PerRow
) -> tuple[Loss, FloatArray, FloatArray, FloatArray | None]:
    """Validate the response, the sample weights and the offset (or None); return them after the loss."""
    n = design.shape[0]
    for values, name in ((y, "y"), (sample_weight, "sample_weight"), (offset, "offset")):
        design.check_labels(values, name)
    response = loss.read(on_host(y))
    if len(response.y) != n:
        raise ValueError(f"y has {len(response.y)} entries, but {design.name} has {n} rows.")
    weight = as_response(np.ones(n) if sample_weight is None else sample_weight, n, name="sample_weight")
    as_sample_weight(weight, n)
    shift, fitted = response.read_offset(offset), response.loss
    fitted.check_estimable(response, weight, shift)
    if fitted.has_scale:
        null = np.asarray(fitted.null(response.y, weight, shift))
        fitted = fitted.scaled_to(response.y, null if shift is None else null + shift, weight)
    return fitted, response.y, weight, shift


MESSAGES = {
    "completed": "The path ends here: it has all groups, or as many as were asked for.",
    "exhausted": "Nothing is left to explain at time {time:g}.",
}
SEPARATED = (
    "From time {time:g} on, the awake groups separate the responses perfectly, so the best coefficients are infinite; "
    "models from there on have a ridge of {ridge:g}."
)


def path_of(posed: Posed, knots: Knots, groups: Groups) -> Path:
    """A path in the user's columns and units: the minimiser on the groups awake after each event."""
    awake, ranks, times = knots.groups, posed.ranks, np.array(knots.times)
    columns, coefs, intercepts = posed.to_user(awake, knots.W, knots.levels)
    n, m, _ = coefs.shape
    starts = offsets(ranks[awake])
    W = posed.outputs(knots.W) / posed.strength_units[:, None]
    # in units of each group's largest coefficient, so that squares neither overflow nor underflow
    largest = np.append(np.abs(W).max(axis=(0, 1), initial=0.0), 0.0)
    unit = np.maximum.reduceat(largest, starts[:-1]) if awake else np.empty(0)
    unit[unit == 0] = 1.0
    squares = ((W / np.repeat(unit, ranks[awake])) ** 2).sum(axis=1)
    if awake:
        squares = np.add.reduceat(np.hstack([squares, np.zeros((n, 1))]), starts[:-1], axis=1)
    status = "exhausted" if knots.exhausted else "completed"
    message = MESSAGES[status].format(time=float(times[-1]))
    separated = np.flatnonzero(knots.separated)
    if separated.size:
        status = "separated"
        ridge = posed.settings.separated_ridge
        message += " " + SEPARATED.format(time=float(times[separated[0]]), ridge=ridge)
    n_columns = posed.working.mean.size
    wide = np.concatenate([columns + output * n_columns for output in range(m)])
    begun = len(awake) + 1 - len(times)
    path = Path(
        times=times,
        coefs=_sparse(wide, coefs.reshape(n, -1), m * n_columns),
        intercepts=intercepts if m > 1 else intercepts[:, 0],
        groups=groups.apart() if groups.overlapping else groups,
        entered=list(zip(awake, [0.0] * begun + times[1:].tolist(), strict=True)),
        status=status,
        message=message,
        stepwise=True,
        strengths=_sparse(np.array(awake, dtype=np.intp), np.sqrt(squares) * unit * (ranks[awake] > 0), ranks.size),
        n_outputs=m,
    )
    return path.added_up(groups) if groups.overlapping else path


def _sparse(columns: NDArray[np.intp], values: FloatArray, n_columns: int) -> sp.csr_array:
    """A sparse matrix with these values in the given columns; zeros are not stored."""
    order = np.argsort(columns)
    values = values[:, order]
    filled = values != 0
    indices = np.broadcast_to(np.asarray(columns)[order], values.shape)[filled]
    return sp.csr_array((values[filled], indices, offsets(filled.sum(axis=1))), shape=(len(values), n_columns))
