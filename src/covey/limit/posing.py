"""Turn the user's problem into a posed one: working coordinates, group weights, common factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from covey.designs import Design, Factors, RepeatedColumns, count_factors, find_factors
from covey.groups import Groups
from covey.limit.posed import Posed, Validation
from covey.limit.posed_loss import PosedLoss, pose_response
from covey.limit.posed_squares import PosedSquares
from covey.limit.rows import Split
from covey.losses import Loss, Squared
from covey.preprocess import WorkingProblem, prepare
from covey.preprocess.group_weights import read_weights
from covey.validation import whole

__all__ = ["FIRST_GROUPS", "pose"]

# Group weights should be fair to all sizes until about this many groups are awake, not only for the first group.
FIRST_GROUPS = 10.0


def pose(
    design: Design,
    y: Any,
    groups: Groups,
    weight: Any,
    parts: Sequence[Any],
    counts: Sequence[float],
    splits: Sequence[Split],
    *,
    loss: Loss | None = None,
    offset: Any = None,
    group_weights: Any = "noise",
    standardize: Any = "group",
    fit_intercept: bool = True,
    factors: Any = "auto",
    validation: Validation | None = None,
) -> Posed:
    """Compute working coordinates, common factors and group weights, and divide the weights into parts.

    Parameters
    ----------
    design, y, groups, weight
        The problem.
    parts, counts, splits, validation
        As in `Posed`, with the weights of the parts in the units of `weight`.
    loss : Loss, optional
        Squared by default.
    offset : row vector, or ndarray of shape (n_rows, n_outputs), optional
    group_weights, standardize, fit_intercept, factors
        As in `covey.limit_path`.
    """
    if groups.overlapping:
        # every group gets its own copy of a shared column, and the coefficients of the copies add up
        design = RepeatedColumns(design, groups.members)
        if validation is not None:
            validation = replace(validation, design=RepeatedColumns(validation.design, groups.members))
        groups = groups.apart()
    squares = loss is None or isinstance(loss, Squared)
    has_intercept = fit_intercept and (loss is None or loss.has_intercept)
    observed: Any = None
    if squares:
        shown = y if offset is None else y - offset
        if validation is not None and validation.offset is not None:
            validation = replace(validation, y=validation.y - validation.offset)
    else:
        assert loss is not None
        observed = pose_response(loss, design, y, weight, offset, has_intercept)
        # the gradient at the null model equals the gradient of the squared loss for these values
        shown = observed.null_scores[:, 0]
    problem, _ = prepare(
        design, shown, groups, standardize=standardize, fit_intercept=fit_intercept, sample_weight=weight
    )
    total = float(weight.sum())
    if validation is not None and not squares:
        # in units of the training weights: for Cox's loss, both kinds of rows share risk sets
        validation = replace(validation, weight=validation.weight / total)
    common: dict[str, Any] = {
        "problem": problem,
        "parts": [own / total for own in parts],
        "counts": list(counts),
        "splits": list(splits),
        "weights": read_weights(group_weights, problem.ranks, FIRST_GROUPS),
        "intercept": has_intercept,
        "factors": _read_factors(factors, problem, groups, fit_intercept),
        "validation": validation,
    }
    return PosedSquares(**common) if squares else PosedLoss(**common, observed=observed)


def _read_factors(factors: Any, problem: WorkingProblem, groups: Groups, intercept: bool) -> Factors | None:
    """The common factors requested by ``factors=``; None if there are none."""
    design, q = problem.design, problem.q
    means = np.zeros(design.shape[1])
    means[problem.layout.members] = problem.mean
    if isinstance(factors, str):
        if factors != "auto":
            raise ValueError(f"factors must be 'auto' or a whole number of at least 0, not {factors!r}.")
        k = count_factors(design, q, groups.members, groups.starts, fit_intercept=intercept, means=means)
    else:
        k = min(whole(factors, "factors", least=0), design.shape[0] - 1, design.shape[1])
    if k == 0:
        return None
    found = find_factors(design, q, k, fit_intercept=intercept, means=means)
    return found if found.n_factors else None
