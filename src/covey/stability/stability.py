"""Complementary-pairs stability selection along the limit path."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from covey.designs import as_design
from covey.groups import Groups
from covey.losses import Loss, get_loss
from covey.preprocess import Standardize
from covey.search.limit_path import read_rows
from covey.search.problem import Problem
from covey.search.ranking import ranked_groups
from covey.stability.bounds import Assumption, expected_false, largest_first, least_threshold
from covey.stability.halves import complementary_halves, strata_of
from covey.stability.labels import as_numbers
from covey.stability.remarks import on_correlation, on_sizes, on_the_number
from covey.stability.result import StabilitySelection
from covey.validation import on_host, positive, whole

__all__ = ["Progress", "default_first", "stability_selection"]

# Called with the number of finished half-samples and their total number.
Progress = Callable[[int, int], None]

# The default for `max_false`: most readers of a list of findings would tolerate one mistake.
ONE_MISTAKE = 1.0

THRESHOLD, PAIRS = 0.75, 50


def stability_selection(
    X: Any,
    y: Any,
    groups: Any = None,
    *,
    threshold: float | None = THRESHOLD,
    n_first: int | None = None,
    max_false: float | None = None,
    n_pairs: int = PAIRS,
    assumption: Assumption = "none",
    always: Iterable[Any] = (),
    loss: str | Loss = "squared",
    offset: Any = None,
    sample_weight: Any = None,
    group_weights: Any = "noise",
    standardize: Standardize = "group",
    fit_intercept: bool = True,
    factors: int | str = "auto",
    n_jobs: int | None = None,
    random_state: Any = None,
    progress: Progress | None = None,
) -> StabilitySelection:
    r"""Select the groups that are found again and again in random halves of the rows.

    The rows are split at random into two halves, `n_pairs` times. In each half, the limit path runs a few groups beyond
    `n_first`, and backward elimination keeps `n_first` of them. A group is selected if it is among these in at least a
    share `threshold` of the halves.

    The guarantee: call a group a mistake if half of the rows select it with probability at most :math:`q / L`, where q
    is `n_first` and L the number of groups, that is, no more often than a random draw of q groups would. Then the
    expected number of mistakes among the selected groups is at most ``expected_false`` of the result, whatever the
    noise and the correlations (Shah and Samworth, 2013; rows are assumed to be independent and identically
    distributed). It is an additional assumption that every group without an effect is a mistake in this sense: no such
    group may be favoured by its size, which ``group_weights="noise"`` ensures, or by its correlation with a group that
    has an effect. If selected groups are correlated with others, ``remarks`` of the result says so.

    Parameters
    ----------
    X : array-like or any kind of design, of shape (n_rows, n_features)
    y : array-like of shape (n_rows,), or (n_rows, n_outputs) for several responses
        Classes may be given as labels.
    groups : None, int, labels, lists, dict or Groups
    threshold : float or None
        The share of half-samples that a group needs to be selected, above 1/2. None means the least value for which
        `n_first` groups give at most `max_false` expected mistakes.
    n_first : int, optional
        The number of groups that each half-sample selects; by default as many as `threshold` and `max_false` allow.
    max_false : float, optional
        The largest acceptable expected number of mistakes; 1 if neither this nor `n_first` is given.
    n_pairs : int
        The number of complementary pairs.
    assumption : {"none", "unimodal"}
        What else the bound may assume; see `covey.stability.expected_false`.
    always : iterable
        Names of groups that are in every model; they are not candidates for selection.
    loss, offset, sample_weight, group_weights, standardize, fit_intercept
        As in `covey.limit_path`. Rows of weight zero are ignored.
    factors : int or "auto"
        The number of common factors of the columns to include in the model while the order of the groups is determined.
    n_jobs : int, optional
        How many half-samples to run in parallel, with joblib.
    random_state : int, Generator or None
        Seed for the splits.
    progress : callable, optional
        Called after each half-sample with the number of finished half-samples and their total number.

    Returns
    -------
    StabilitySelection

    References
    ----------
    Meinshausen and Bühlmann, "Stability selection", 2010. Shah and Samworth, "Variable selection with error control:
    another look at stability selection", 2013.

    Examples
    --------
    >>> from covey import stability_selection
    >>> from covey.datasets import make_group_sparse
    >>> data = make_group_sparse(150, 300, 3, active=3, random_state=0)
    >>> found = stability_selection(data.X, data.y, 3, n_pairs=10, random_state=0)
    >>> sorted(found.selected_groups), found.n_first, round(found.expected_false, 2)
    ([0, 1, 2], 7, 0.98)
    """
    design = as_design(X)
    made = Groups.coerce(groups, design.shape[1], design.columns)
    own_loss = get_loss(loss)
    own_loss, response, weight, shift = read_rows(design, as_numbers(y, own_loss), sample_weight, own_loss, offset)
    first_in = made.positions(always, "always")
    n_groups = made.n_groups - len(first_in)
    pairs = whole(n_pairs, "n_pairs")
    threshold, first = _read_limits(threshold, n_first, max_false, n_groups, pairs, assumption)
    options = {
        "group_weights": group_weights,
        "standardize": standardize,
        "fit_intercept": fit_intercept,
        "factors": factors,
    }
    problem = Problem(design, response, weight, made, first_in, options, own_loss, shift)
    host_weight = np.asarray(on_host(weight), dtype=float)
    strata = strata_of(own_loss, on_host(response), host_weight)
    rng = np.random.default_rng(random_state)
    halves = complementary_halves(np.flatnonzero(host_weight > 0), strata, pairs, rng)
    work = (delayed(_first_groups)(problem, half, first) for half in halves)
    orders = np.full((2 * pairs, first), -1, dtype=np.intp)
    for i, order in enumerate(_in_parallel(work, n_jobs)):
        orders[i, : len(order)] = order
        if progress is not None:
            progress(i + 1, 2 * pairs)
    found = StabilitySelection(made, orders, threshold, assumption, tuple(made.names[l] for l in first_in))
    remarks = [
        *on_the_number(found),
        *on_sizes(made, first_in, group_weights),
        *on_correlation(design, made, found.is_selected, fit_intercept),
    ]
    return replace(found, remarks=tuple(remarks))


def default_first(n_groups: int) -> int:
    """The default number of groups that each half of the rows selects."""
    return largest_first(ONE_MISTAKE, THRESHOLD, n_groups, PAIRS, "none")


def _in_parallel(work: Iterable[Any], n_jobs: int | None) -> Iterable[Any]:
    """Results in order, as they are finished; all at once if the backend has no generators."""
    try:
        return Parallel(n_jobs=n_jobs, return_as="generator")(work)
    except ValueError:
        return Parallel(n_jobs=n_jobs)(work)


def _first_groups(problem: Problem, half: NDArray[np.intp], first: int) -> list[int]:
    """The groups that half of the rows select, starting with the one that elimination keeps longest."""
    weight = np.zeros(problem.design.shape[0])
    weight[half] = np.asarray(on_host(problem.weight), dtype=float)[half]
    return ranked_groups(replace(problem, weight=weight), first)


def _read_limits(
    threshold: Any, n_first: Any, max_false: Any, L: int, pairs: int, assumption: Assumption
) -> tuple[float, int]:
    """The threshold and the number of groups per half-sample."""
    if assumption not in ("unimodal", "none"):
        raise ValueError(f"assumption must be 'unimodal' or 'none', not {assumption!r}.")
    if L < 1:
        raise ValueError("Every group is in always: none is left to select.")
    if threshold is not None and not 0.5 < positive(threshold, "threshold") <= 1:
        raise ValueError(f"threshold must be above 1/2 and at most 1, not {threshold!r}.")
    limit = None if max_false is None else positive(max_false, "max_false")
    if n_first is None:
        if threshold is None:
            raise ValueError("threshold=None needs n_first: two of threshold, n_first and max_false decide the third.")
        return threshold, largest_first(ONE_MISTAKE if limit is None else limit, threshold, L, pairs, assumption)
    first = whole(n_first, "n_first")
    if first > L:
        raise ValueError(f"n_first is {first}, but there are {L} groups.")
    if threshold is None:
        least = least_threshold(ONE_MISTAKE if limit is None else limit, first, L, pairs, assumption)
        if least is None:
            raise ValueError(
                f"No threshold keeps n_first={first} of {L} groups within max_false; lower n_first or raise max_false."
            )
        return least, first
    bound = expected_false(first, threshold, L, n_pairs=pairs, assumption=assumption)
    if limit is not None and bound > limit:
        raise ValueError(
            f"n_first={first} at threshold={threshold:g} allows {bound:.3g} mistakes, above max_false={limit:g}. Leave "
            "out one of the three, which then follows from the others."
        )
    return threshold, first
