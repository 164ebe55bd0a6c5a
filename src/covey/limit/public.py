"""limit_path: the public call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from covey.designs import as_design
from covey.groups import Groups
from covey.limit.as_path import as_path
from covey.limit.lockstep import Near, Paths
from covey.limit.posing import pose
from covey.limit.rows import Split
from covey.path import Path
from covey.preprocess import Standardize
from covey.validation import whole

__all__ = ["limit_path"]


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
) -> Path:
    r"""Models along the network's path in the limit of small starts, for the loss :math:`\frac{1}{2n}\|y - Xw\|^2`.

    As the start scale goes to 0, the path of the network :math:`w_l = u_l^N v_l` becomes a list of events, the same for
    every depth :math:`N \ge 2`: a sleeping group adds up :math:`\|g_l\| / c_l` over time, with :math:`g_l` the
    correlation of its columns with the residual and :math:`c_l` its weight, and wakes when the sum reaches 1; the awake
    groups are at least squares at once. Nothing is iterated and nothing is shrunk.

    Parameters
    ----------
    X : array-like or Design, shape (n, p)
        Any kind that `covey.designs.as_design` knows; never copied.
    y : array-like, shape (n,)
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

    Returns
    -------
    Path
        One model per event: least squares on the groups awake after it. Times are those of the events, for a response
        of unit standard deviation.

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
    """
    design = as_design(X)
    made = Groups.coerce(groups, design.shape[1], design.columns)
    first = list(dict.fromkeys([*made.positions(always, "always"), *made.positions(start, "start")]))
    most = made.n_groups if max_groups is None else whole(max_groups, "max_groups", least=0)
    response = design.rows(y)
    weight = np.ones_like(response) if sample_weight is None else design.rows(sample_weight, name="sample_weight")
    design.weights(weight)
    posed = pose(
        design, response, made, weight, [weight], [design.count(weight)], [Split((0,))],
        group_weights=group_weights, standardize=standardize, fit_intercept=fit_intercept, factors=factors,
    )  # fmt: skip
    paths = Paths(Near(posed), [first])
    paths.advance(max(0, most - len(first)))
    return as_path(paths, 0, made)
