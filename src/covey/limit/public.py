"""limit_path: the public call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from covey.designs import Design, as_design
from covey.groups import Groups
from covey.limit.as_path import as_path
from covey.limit.lockstep import Near, Paths
from covey.limit.posing import pose
from covey.limit.rows import Split
from covey.losses import Loss, MultiSquared, Squared, get_loss
from covey.losses.offsets import read_offset
from covey.path import Path
from covey.preprocess import Standardize
from covey.validation import whole

__all__ = ["limit_path", "read_rows"]


def limit_path(
    X: Any,
    y: ArrayLike,
    groups: Any = None,
    *,
    always: Iterable[Any] = (),
    start: Iterable[Any] = (),
    max_groups: int | None = None,
    group_weights: Any = "noise",
    standardize: Standardize = "group",
    fit_intercept: bool = True,
    factors: int | str = 0,
    sample_weight: ArrayLike | None = None,
    loss: str | Loss = "squared",
    offset: ArrayLike | None = None,
) -> Path:
    r"""Models along the network's path in the limit of small starts, for the loss :math:`\frac{1}{2n}\|y - Xw\|^2`.

    (Or another one, see `loss`.)

    As the start scale goes to 0, the path of the network :math:`w_l = u_l^N v_l` becomes a list of events, the same for
    every depth :math:`N \ge 2`: a sleeping group adds up :math:`\|g_l\| / c_l` over time, with :math:`g_l` minus the
    gradient of the loss on its columns (their correlation with the residual) and :math:`c_l` its weight, and wakes when
    the sum reaches 1; the awake groups are at the minimiser of the loss (least squares, or maximum likelihood) at once.
    There is no step size, and nothing is shrunk.

    Parameters
    ----------
    X : array-like or Design, shape (n, p)
        Any kind that `covey.designs.as_design` knows; never copied.
    y : array-like, shape (n,), or (n, n_outputs) for several responses or classes
    groups : None, int, labels, lists of columns, dict or Groups
        See `covey.Groups`; None is every column for itself.
    always : iterable
        Names of groups that are awake from the start.
    start : iterable
        Names of further groups that are awake from the start, those of an earlier model for instance.
    max_groups : int, optional
        The path ends when so many groups are awake; by default when nothing is left to explain.
    group_weights : "noise", "sqrt", None or array-like, shape (n_groups,)
        :math:`c_l`. "noise" is what noise alone would reach in a group of this dimension, so that groups of all sizes
        are about equally likely to wake on it; "sqrt" is the square root of the dimension, under which small groups
        wake early; None lets large ones do so. Scaled to mean 1.
    standardize : {"group", "column", "block", False}
        Orthonormalise within groups; or scale each column; or the columns of each group by one number; or none of it.
    fit_intercept : bool
    factors : int or "auto"
        Common factors of the columns that are in the model from the start while the order of the groups is found. The
        models on the path are those of the groups alone.
    sample_weight : array-like, shape (n,), or None
        Equal to repeating rows that often.
    loss : str or Loss
        By name or from `covey.losses`; "squared" takes several responses too. Classes are 0 and 1 for "binomial" and a
        column each for "multinomial". A `Huber` loss without a threshold takes its scale from the model without groups.
    offset : array-like, shape (n,) or (n, n_outputs), or None
        Added to the linear predictor of every model, with a coefficient of one.

    Returns
    -------
    Path
        One model per event: the minimiser of the loss on the groups awake after it. Times are those of the events, for
        a response of unit standard deviation where the loss is squared. Where the awake groups tell classes apart
        without error (or counts of zero from others), the minimiser lies at infinity: models from there on have a small
        ridge, the status is "separated", and the message says from when on. ``path.predict`` gives linear predictors,
        without the offset.

    See Also
    --------
    group_path : the network's path from a start that is not infinitely small.

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

    Counts, each over a time of its own:

    >>> hours = rng.uniform(1, 5, 60)
    >>> counts = rng.poisson(hours * np.exp(X[:, 4:8] @ [0.5, -0.5, 0.5, 0.5]))
    >>> path = limit_path(X, counts, 4, max_groups=2, loss="poisson", offset=np.log(hours))
    >>> path.entered[0][0], path.status, len(path)
    (1, 'completed', 3)
    """
    design = as_design(X)
    made = Groups.coerce(groups, design.shape[1], design.columns)
    first = list(dict.fromkeys([*made.positions(always, "always"), *made.positions(start, "start")]))
    most = made.n_groups if max_groups is None else whole(max_groups, "max_groups", least=0)
    own_loss, response, weight, shift = read_rows(design, y, sample_weight, get_loss(loss), offset)
    posed = pose(
        design, response, made, weight, [weight], [design.count(weight)], [Split((0,))], loss=own_loss, offset=shift,
        group_weights=group_weights, standardize=standardize, fit_intercept=fit_intercept, factors=factors,
    )  # fmt: skip
    paths = Paths(Near(posed), [first])
    paths.advance(max(0, most - len(first)))
    return as_path(paths, 0, made)


def read_rows(design: Design, y: Any, sample_weight: Any, loss: Loss, offset: Any) -> tuple[Loss, Any, Any, Any]:
    """The loss, and all that has a number per row: the response, its weight, and the offset or None."""
    n = design.shape[0]
    given = np.shape(y)
    if isinstance(loss, Squared) and len(given) == 2 and given[1] > 1:
        loss = MultiSquared()
    if isinstance(loss, Squared):
        response = design.rows(y)
        weight = np.ones_like(response) if sample_weight is None else design.rows(sample_weight, name="sample_weight")
        design.weights(weight)
        shift = None if offset is None else design.rows(read_offset(offset, n, 1, loss)[:, 0], name="offset")
        return loss, response, weight, shift
    # other losses see every row, where the model is fitted
    response = loss.check(y)
    if len(response) != n:
        raise ValueError(f"y has {len(response)} entries, but {design.name} has {n} rows.")
    weight = np.asarray(design.rows(np.ones(n) if sample_weight is None else sample_weight, name="sample_weight"))
    design.weights(weight)
    shift = None if offset is None else read_offset(offset, n, response.shape[1] if loss.vector else 1, loss)
    if not (loss.vector or loss.coupled):
        centred = response if shift is None else response - shift[:, 0]
        null = loss.null(response, weight, None if shift is None else shift[:, 0])
        loss = loss.scaled_to(centred - null, weight)
    return loss, response, weight, shift
