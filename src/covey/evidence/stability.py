"""Complementary-pairs stability selection along the limit path."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike, NDArray

from covey.evidence.bounds import ASSUMPTIONS, Assumption, expected_false, largest_first, least_threshold
from covey.evidence.overlap import find_overlaps
from covey.evidence.reading import read_problem
from covey.evidence.selections import StabilitySelection
from covey.groups import GroupsLike
from covey.losses import Cox, Loss
from covey.losses.risk_sets import EVENT, STRATUM
from covey.preprocess import Standardize
from covey.progress import Progress, finished, showing
from covey.search.problem import Problem
from covey.search.ranking import ranked_groups
from covey.terms import TermsLike
from covey.terms.requirements import Constraints
from covey.validation import MatrixLike, PerRow, one_of, positive, whole

# The default for `max_false`: most readers of a list of findings would tolerate one mistake.
ONE_MISTAKE = 1.0

PAIRS = 50

# By default, half-samples select as many groups as a threshold of 3/4 allows without an assumption, but at least five,
# or a sixth of the groups if that is less: with few groups the bound would ask for fewer than are likely to matter.
STRICT, FEW, SHARE = 0.75, 5, 1 / 6

# The least threshold that is chosen: groups that are found in fewer than two of five half-samples are not stable,
# whatever the bound. Decided, like the numbers above, on seeds below 1000 of benchmarks/stability.py.
LEAST_THRESHOLD = 0.4

# The most pairs of correlated groups that a remark names.
MOST_NAMED = 5


def stability_selection(
    X: MatrixLike,
    y: ArrayLike,
    groups: GroupsLike = None,
    *,
    terms: TermsLike = None,
    threshold: float | None = None,
    n_first: int | None = None,
    max_false: float | None = None,
    n_pairs: int = PAIRS,
    assumption: Assumption = "r-concave",
    always: Iterable[Hashable] = (),
    constraints: Constraints | None = None,
    loss: str | Loss = "squared",
    offset: PerRow = None,
    sample_weight: PerRow = None,
    group_weights: ArrayLike | None = "noise",
    standardize: Standardize = "group",
    fit_intercept: bool = True,
    factors: int | str = "auto",
    n_jobs: int | None = None,
    random_state: int | None = None,
    progress: Progress | None = None,
    verbose: int | None = None,
) -> StabilitySelection:
    r"""Select the groups that are found again and again in random halves of the rows.

    The rows are split at random into two halves, `n_pairs` times. In each half, the limit path runs a few groups beyond
    `n_first`, and backward elimination keeps `n_first` of them. A group is selected if it is among these in at least a
    share `threshold` of the halves.

    The guarantee: call a group a mistake if half of the rows select it with probability at most :math:`\theta`. Then
    the expected number of mistakes among the selected groups is at most ``expected_false`` of the result, whatever the
    noise and the correlations (Shah and Samworth, 2013), if rows are independent and identically distributed and the
    shares of half-samples that select a mistake have tails like those of an r-concave distribution (``assumption``
    has weaker ones). Here :math:`\theta` is the mean share of half-samples that select a group which is not selected in
    the end (``chance`` of the result), so that groups which are found every time do not count as places for mistakes.
    It is an additional assumption that every group without an effect is a mistake in this sense: no such group may be
    favoured by its size, which ``group_weights="noise"`` ensures, or by its correlation with a group that has an
    effect. If selected groups are correlated with others, ``remarks`` of the result says so.

    Parameters
    ----------
    X : array-like or any kind of design, of shape (n_rows, n_features)
    y : array-like of shape (n_rows,), or (n_rows, n_outputs) for several responses
        Classes may be given as labels.
    groups : None, int, labels, lists, dict or Groups
    terms : None, "auto", dict or Terms
        For a table of variables, as in the estimators: every term is a group. The encoding, which does not depend on
        the response, is fitted to all rows once.
    threshold : float, optional
        The share of half-samples that a group needs to be selected; by default the least, from 0.4 on, that gives at
        most `max_false` expected mistakes. Above 1/2 unless `assumption` is "r-concave".
    n_first : int, optional
        The number of groups that each half-sample selects.
    max_false : float, optional
        The largest acceptable expected number of mistakes; 1 unless `threshold` and `n_first` are both given.
    n_pairs : int
        The number of complementary pairs.
    assumption : {"r-concave", "none"}
        What the bound may assume; see `covey.evidence.expected_false`.
    always : iterable
        Names of groups that are in every model; they are not candidates for selection.
    constraints : dict, optional
        As in the estimators: what is known beforehand about signs, bounds and shapes. Every half-sample keeps them.
    loss, offset, sample_weight, group_weights, standardize, fit_intercept
        As in `covey.limit_path`. Rows of weight zero are ignored.
    factors : int or "auto"
        The number of common factors of the columns to include in the model while the order of the groups is determined.
    random_state : int, Generator or None
        Seed for the splits.
    n_jobs, progress, verbose
        As in `covey.evidence.effect`; progress counts half-samples.

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
    ([0, 1, 2], 7, 0.93)
    """
    problem = read_problem(
        X, y, groups, always, loss, offset, sample_weight, terms, constraints,
        group_weights=group_weights, standardize=standardize, fit_intercept=fit_intercept, factors=factors,
    )  # fmt: skip
    groups, n_pairs = problem.groups, whole(n_pairs, "n_pairs")
    n_candidates = groups.n_groups - len(problem.always)
    start, n_first, limit = _read_limits(threshold, n_first, max_false, n_candidates, n_pairs, assumption)
    rng = np.random.default_rng(random_state)
    halves = complementary_halves(np.flatnonzero(problem.weight > 0), _strata(problem), n_pairs, rng)
    orders = np.full((2 * n_pairs, n_first), -1, dtype=np.intp)
    tasks = [delayed(_first_groups)(problem, half, n_first) for half in halves]
    with showing("stability_selection", verbose):
        for i, order in enumerate(finished(tasks, "half-sample", n_jobs, progress)):
            orders[i, : len(order)] = order
    always_groups = tuple(groups.names[l] for l in problem.always)
    found = StabilitySelection(groups, orders, start, assumption, always_groups=always_groups)
    if threshold is None:
        found = _step_down(found, limit)
    return replace(found, remarks=_remarks(found, problem))


def default_first(
    n_groups: int, max_false: float = ONE_MISTAKE, n_pairs: int = PAIRS, assumption: Assumption = "r-concave"
) -> int:
    """The default number of groups that each half of the rows selects."""
    first = max(int(np.sqrt((2 * STRICT - 1) * max_false * n_groups)), int(min(FEW, SHARE * n_groups)), 1)
    first = min(first, n_groups)
    while first > 1 and (expected_false(first, STRICT, n_groups, n_pairs=n_pairs, assumption=assumption) > max_false):
        first -= 1
    return first


def _step_down(found: StabilitySelection, max_false: float) -> StabilitySelection:
    """Lower the threshold as far as the bound allows, given that selected groups leave fewer places for mistakes."""
    while True:
        least = least_threshold(
            max_false, found.chance * found.n_groups, found.n_groups, found.n_pairs, found.assumption, LEAST_THRESHOLD
        )
        if least is None or least >= found.threshold:
            return found
        lower = replace(found, threshold=least)
        if lower.expected_false > max_false:
            return found
        found = lower


def _read_limits(
    threshold: Any, n_first: int | None, max_false: float | None, n_groups: int, n_pairs: int, assumption: Assumption
) -> tuple[float, int, float]:
    """The threshold to begin with, the groups per half-sample and the expected mistakes, as given or as these allow."""
    one_of(assumption, ASSUMPTIONS, "assumption")
    if n_groups < 1:
        raise ValueError("Every group is in always: none is left to select.")
    lowest = 0.0 if assumption == "r-concave" else 0.5
    if threshold is not None and not lowest < positive(threshold, "threshold") <= 1:
        above = "0" if lowest == 0 else f"1/2 with assumption={assumption!r}"
        raise ValueError(f"threshold must be above {above} and at most 1, not {threshold!r}.")
    limit = ONE_MISTAKE if max_false is None else positive(max_false, "max_false")
    settings: Any = {"n_pairs": n_pairs, "assumption": assumption}
    if n_first is None and threshold is None:
        n_first = default_first(n_groups, limit, **settings)
    elif n_first is None:
        n_first = largest_first(limit, threshold, n_groups, **settings)
    n_first = whole(n_first, "n_first")
    if n_first > n_groups:
        raise ValueError(f"n_first is {n_first}, but there are {n_groups} groups.")
    if threshold is None:
        threshold = least_threshold(limit, n_first, n_groups, least=LEAST_THRESHOLD, **settings)
        if threshold is None and max_false is not None:
            raise ValueError(
                f"No threshold keeps n_first={n_first} of {n_groups} groups within max_false={limit:g}; lower n_first "
                "or raise max_false."
            )
        return STRICT if threshold is None else threshold, n_first, limit  # the bound is printed, whatever it is
    bound = expected_false(n_first, threshold, n_groups, **settings)
    if max_false is not None and bound > limit:
        raise ValueError(
            f"n_first={n_first} at threshold={threshold:g} allows {bound:.3g} mistakes, above max_false={limit:g}. "
            "Leave out one of the three, which then follows from the others."
        )
    return threshold, n_first, limit


def _first_groups(problem: Problem, half: NDArray[np.intp], n_first: int) -> list[int]:
    """The groups that half of the rows select, starting with the one that elimination keeps longest."""
    weight = np.zeros_like(problem.weight)
    weight[half] = problem.weight[half]
    return ranked_groups(replace(problem, weight=weight), n_first)


def _strata(problem: Problem) -> NDArray[np.intp]:
    """The stratum of each row: every stratum is divided between the halves as evenly as possible.

    Strata are classes, or events and strata of survival times. Other responses need none, because a random half has
    some of all values.
    """
    loss, y, weight = problem.loss, problem.y, problem.weight
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
        raise ValueError(f"The rows are split in halves, and {rows.size} rows of positive weight are too few.")
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
    selected, names, pairs = np.flatnonzero(found.is_selected), found.groups.names, []
    if selected.size and len(names) > 1:
        centre = problem.options["fit_intercept"]
        overlaps = find_overlaps(problem.design, found.groups, selected, problem.weight, centre=centre).pairs
        pairs = [
            f"{names[p.group]} with {names[p.other]} ({p.correlation:.2f})"
            for p in overlaps
            if p.is_close and p.other not in problem.always
        ]
    if pairs:
        more = f"; and {len(pairs) - MOST_NAMED} more" if len(pairs) > MOST_NAMED else ""
        remarks.append(
            f"Selected groups are strongly correlated with others: {'; '.join(pairs[:MOST_NAMED])}{more}. Half of the "
            "rows can select one in place of the other, which the bound does not count as a mistake: read each pair "
            "as one finding."
        )
    return tuple(remarks)
