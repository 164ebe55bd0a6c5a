"""Complementary-pairs stability selection along the limit path."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from covey.evidence.bounds import Assumption, expected_false, largest_first, least_threshold
from covey.evidence.overlap import find_overlaps
from covey.evidence.reading import read_problem
from covey.evidence.selections import StabilitySelection
from covey.losses import Cox, Loss
from covey.losses.risk_sets import EVENT, STRATUM
from covey.preprocess import Standardize
from covey.search.problem import Problem
from covey.search.ranking import ranked_groups
from covey.validation import FloatArray, one_of, positive, whole

__all__ = ["Progress", "complementary_halves", "default_first", "stability_selection"]

# Called with the number of finished half-samples and their total number.
Progress = Callable[[int, int], None]

# The default for `max_false`: most readers of a list of findings would tolerate one mistake.
ONE_MISTAKE = 1.0

THRESHOLD, PAIRS = 0.75, 50

# The most pairs of correlated groups that a remark names.
MOST_NAMED = 5


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
        What else the bound may assume; see `covey.evidence.expected_false`.
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
    problem = read_problem(
        X, y, groups, always, loss, offset, sample_weight,
        group_weights=group_weights, standardize=standardize, fit_intercept=fit_intercept, factors=factors,
    )  # fmt: skip
    groups, always_in = problem.groups, problem.always
    n_pairs = whole(n_pairs, "n_pairs")
    n_candidates = groups.n_groups - len(always_in)
    threshold, n_first = _read_limits(threshold, n_first, max_false, n_candidates, n_pairs, assumption)
    weight = problem.weight
    strata = _strata(problem.loss, problem.y, weight)
    rng = np.random.default_rng(random_state)
    halves = complementary_halves(np.flatnonzero(weight > 0), strata, n_pairs, rng)
    orders = np.full((2 * n_pairs, n_first), -1, dtype=np.intp)
    tasks = (delayed(_first_groups)(problem, half, n_first) for half in halves)
    for i, order in enumerate(_in_parallel(tasks, n_jobs)):
        orders[i, : len(order)] = order
        if progress is not None:
            progress(i + 1, 2 * n_pairs)
    always_groups = tuple(groups.names[l] for l in always_in)
    found = StabilitySelection(groups, orders, threshold, assumption, always_groups=always_groups)
    return replace(found, remarks=_remarks(found, problem))


def default_first(n_groups: int) -> int:
    """The default number of groups that each half of the rows selects."""
    return largest_first(ONE_MISTAKE, THRESHOLD, n_groups, PAIRS, "none")


def _in_parallel(tasks: Iterable[Any], n_jobs: int | None) -> Iterable[Any]:
    """Results in order, as they are finished; all at once if the backend has no generators."""
    try:
        return Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
    except ValueError:
        return Parallel(n_jobs=n_jobs)(tasks)


def _first_groups(problem: Problem, half: NDArray[np.intp], n_first: int) -> list[int]:
    """The groups that half of the rows select, starting with the one that elimination keeps longest."""
    weight = np.zeros_like(problem.weight)
    weight[half] = problem.weight[half]
    return ranked_groups(replace(problem, weight=weight), n_first)


def _read_limits(
    threshold: Any, n_first: Any, max_false: Any, n_groups: int, n_pairs: int, assumption: Assumption
) -> tuple[float, int]:
    """The threshold and the number of groups per half-sample."""
    one_of(assumption, ("unimodal", "none"), "assumption")
    if n_groups < 1:
        raise ValueError("Every group is in always: none is left to select.")
    if threshold is not None and not 0.5 < positive(threshold, "threshold") <= 1:
        raise ValueError(f"threshold must be above 1/2 and at most 1, not {threshold!r}.")
    limit = ONE_MISTAKE if max_false is None else positive(max_false, "max_false")
    if n_first is None:
        if threshold is None:
            raise ValueError("threshold=None needs n_first: two of threshold, n_first and max_false decide the third.")
        return threshold, largest_first(limit, threshold, n_groups, n_pairs, assumption)
    n_first = whole(n_first, "n_first")
    if n_first > n_groups:
        raise ValueError(f"n_first is {n_first}, but there are {n_groups} groups.")
    if threshold is None:
        least = least_threshold(limit, n_first, n_groups, n_pairs, assumption)
        if least is None:
            raise ValueError(
                f"No threshold keeps n_first={n_first} of {n_groups} groups within max_false; lower n_first or raise "
                "max_false."
            )
        return least, n_first
    bound = expected_false(n_first, threshold, n_groups, n_pairs=n_pairs, assumption=assumption)
    if max_false is not None and bound > limit:
        raise ValueError(
            f"n_first={n_first} at threshold={threshold:g} allows {bound:.3g} mistakes, above max_false={limit:g}. "
            "Leave out one of the three, which then follows from the others."
        )
    return threshold, n_first


def _strata(loss: Loss, y: Any, weight: FloatArray) -> NDArray[np.intp]:
    """The stratum of each row: every stratum is divided between the halves as evenly as possible.

    Strata are classes, or events and strata of survival times. Other responses need none, because a random half has
    some of all values.
    """
    if isinstance(loss, Cox):
        return np.unique(np.asarray(y)[:, [EVENT, STRATUM]], axis=0, return_inverse=True)[1].ravel()
    classes = loss.classes(y)
    if classes is None:
        return np.zeros(weight.size, dtype=np.intp)
    strata = np.unique(classes, return_inverse=True)[1]
    counts = np.bincount(strata[weight > 0])
    if counts.min() < 2:
        raise ValueError(
            f"Class {int(np.argmin(counts))} (counted from 0) has {counts.min()} row of positive weight, but each half "
            "of the rows needs one: put rare classes together, or leave them out."
        )
    return strata


def complementary_halves(
    rows: NDArray[np.intp], strata: NDArray[np.intp], n_pairs: int, rng: np.random.Generator
) -> list[NDArray[np.intp]]:
    """Pairs of disjoint halves of the rows, one after another; an odd row is left out.

    >>> a, b = complementary_halves(np.arange(6), np.array([0, 0, 0, 0, 1, 1]), 1, np.random.default_rng(0))
    >>> sorted([*a.tolist(), *b.tolist()]), int((a >= 4).sum()), int((b >= 4).sum())
    ([0, 1, 2, 3, 4, 5], 1, 1)
    """
    if rows.size < 4:
        raise ValueError(
            f"Stability selection splits the rows in halves; {rows.size} rows of positive weight are too few."
        )
    even = rows.size // 2 * 2
    halves = []
    for _ in range(n_pairs):
        shuffled = rng.permutation(rows)
        # sorted by stratum, so that every second row gives half of each
        place = rng.permutation(int(strata.max(initial=0)) + 1)[strata[shuffled]]
        order = shuffled[np.argsort(place, kind="stable")]
        halves += [order[:even:2], order[1:even:2]]
    return halves


def _remarks(found: StabilitySelection, problem: Problem) -> tuple[str, ...]:
    """Caveats if the number per half-sample, group weights or correlations may have decided the selection."""
    remarks = []
    if found.is_selected.sum() >= found.n_first:
        remarks.append(
            f"As many groups were selected as each half of the rows may select ({found.n_first}), so there may be "
            "more: a larger max_false allows more."
        )
    sizes, weights = np.delete(found.groups.sizes, problem.always), problem.options["group_weights"]
    if sizes.min() < sizes.max() and not (isinstance(weights, str) and weights == "noise"):
        remarks.append(
            f"Groups have {sizes.min()} to {sizes.max()} columns, and group_weights is not 'noise': by chance alone, "
            "groups of some sizes are found more often than others, which the bound does not count as mistakes."
        )
    pairs = _close_pairs(found, problem)
    if pairs:
        more = f"; and {len(pairs) - MOST_NAMED} more" if len(pairs) > MOST_NAMED else ""
        remarks.append(
            f"Selected groups are strongly correlated with others: {'; '.join(pairs[:MOST_NAMED])}{more}. Half of the "
            "rows can select one in place of the other, which the bound does not count as a mistake: read each pair "
            "as one finding."
        )
    return tuple(remarks)


def _close_pairs(found: StabilitySelection, problem: Problem) -> list[str]:
    """Selected groups that are close to another group, which could replace them."""
    selected, names = np.flatnonzero(found.is_selected), found.groups.names
    if not selected.size or len(names) < 2:
        return []
    dummy_response = np.zeros(problem.design.shape[0])
    centre = problem.options["fit_intercept"]
    pairs = find_overlaps(problem.design, dummy_response, found.groups, selected, centre=centre).pairs
    return [f"{names[p.group]} with {names[p.other]} ({p.correlation:.2f})" for p in pairs if p.is_close]
