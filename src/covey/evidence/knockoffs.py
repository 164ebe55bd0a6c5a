"""Group knockoffs: which groups wake up faster than copies that are drawn without the response."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Literal

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike

from covey.evidence.copies import Columns, Copier, lost_correlation, read_columns
from covey.evidence.reading import read_problem, read_share, read_variables
from covey.evidence.selections import KnockoffSelection
from covey.evidence.statistic import LEVEL, e_values, filter_threshold, largest_set, signed_maximum, wake_up_rates
from covey.groups import GroupsLike
from covey.losses import Loss
from covey.preprocess.working import read_weights
from covey.progress import finished, showing
from covey.search.problem import Problem
from covey.search.settings import SETTINGS
from covey.terms import TermsLike
from covey.validation import FloatArray, MatrixLike, PerRow, one_of, whole

# A path ends when the number of its columns reaches this share of the rows: groups that wake later respond to noise.
DEPTH = 0.5

# Below this distance, copies resemble their groups so much that hardly anything can be found.
NEAR = 0.1

# Copies that lost this share of the squared correlations between groups get a remark. With the right covariance it is
# zero up to a few hundredths; the rate was exceeded from about here on.
LOST = 0.1

# Columns have heavy tails if their excess kurtosis is above HEAVY, and above HEAVY_ERRORS of its standard errors.
HEAVY, HEAVY_ERRORS = 1.0, 4.0

# The number of rows used to decide whether a column has only two values.
ROWS_EXAMINED = 1000


def knockoffs(
    X: MatrixLike,
    y: ArrayLike,
    groups: GroupsLike = None,
    *,
    terms: TermsLike = None,
    fdr: float = 0.1,
    kind: Literal["auto", "gaussian", "fixed"] = "auto",
    n_draws: int = 1,
    always: Iterable[Hashable] = (),
    loss: str | Loss = "squared",
    offset: PerRow = None,
    sample_weight: PerRow = None,
    group_weights: ArrayLike | None = "noise",
    fit_intercept: bool = True,
    factors: int | str = "auto",
    n_jobs: int | None = None,
    random_state: int | None = None,
    verbose: int | None = None,
) -> KnockoffSelection:
    r"""Select the groups that have an effect, with a false discovery rate of at most `fdr`.

    Every group gets a knockoff copy, which has the same correlations with the columns of all other groups and is
    drawn without the response. The limit path runs on groups and copies together. Let :math:`t_l` be the time that a
    group needs to wake up at the model that it joins, and :math:`\tilde t_l` the same for its copy. The statistic
    :math:`W_l` is the larger of :math:`1/t_l` and :math:`1/\tilde t_l`, with a negative sign if the copy is faster.
    (What a group accumulated earlier, before others woke up, does not count: that is correlation with those groups.)
    Exchanging a group with its copy only changes the sign of :math:`W_l`, so for groups that have no effect given all
    others, signs are fair coin flips. The knockoff filter (offset 1) selects all groups with :math:`W_l \ge t`, for the
    least t at which :math:`(1 + \#\{W \le -t\}) / \#\{W \ge t\}` is at most `fdr`.

    ``kind="gaussian"`` assumes that rows are independent draws from a normal distribution, and that the covariance
    estimated from them is right: the rate holds conditional on it. The estimate has common factors,
    correlations between groups that exceed chance, and as much of all others as predicts rows that were left out.
    With about as many columns as rows it cannot be exact; a remark says if copies lack correlations that groups have.
    Nothing is assumed about how the response depends on the columns. For columns that are not normal, copies match only
    means and correlations.
    ``kind="fixed"`` assumes nothing about X, but a linear model with independent normal noise of constant variance. In
    both, "no effect" means no effect given all other groups: a group that only resembles a true one has none, and
    counts as a mistake if it is selected.

    Parameters
    ----------
    X : array-like or design, shape (n_rows, n_features)
        In memory: storage that can only be streamed is not supported.
    y : array-like of shape (n_rows,), or (n_rows, n_outputs) for several responses
        Classes may be given as labels.
    groups : None, int, labels, lists, dict or Groups
        Groups must not overlap.
    terms : None, "auto", dict or Terms
        For a table of variables, as in the estimators, but without pairs. Here every variable is one group: all columns
        of its line, curve, levels or seasons.
    fdr : float
        The target false discovery rate: the expected share of selected groups that have no effect. Either no group is
        selected or at least ``1 / fdr`` are.
    kind : {"auto", "gaussian", "fixed"}
        "auto" is "fixed" for squared loss with at least twice as many rows as columns, otherwise "gaussian".
    n_draws : int
        How many times copies are drawn. With one draw, the filter is applied directly, and its result depends on the
        draw. Several draws are combined by e-values (Ren and Barber, 2024), which control the rate whatever the
        dependence between draws; weak groups are then found less often than with one draw.
    always : iterable
        Names of groups that are in every model, such as age and sex; copies are drawn conditional on their columns.
    loss, offset, sample_weight, group_weights, fit_intercept
        As in `covey.limit_path`. A copy has the same weight as its group.
    factors : int or "auto"
        The number of common factors of groups and copies that are in the model from the start.
    random_state : int, Generator or None
    n_jobs, verbose
        As in `covey.evidence.effect`; draws run in parallel.

    Returns
    -------
    KnockoffSelection

    See Also
    --------
    covey.stability_selection : which groups are found again in half of the rows.

    References
    ----------
    Barber and Candès, "Controlling the false discovery rate via knockoffs", 2015. Dai and Barber, "The knockoff filter
    for FDR control in group-sparse and multitask regression", 2016. Candès, Fan, Janson and Lv, "Panning for gold",
    2018. Ren and Barber, "Derandomised knockoffs: leveraging e-values for false discovery rate control", 2024.

    Examples
    --------
    >>> from covey.datasets import make_group_sparse
    >>> from covey.evidence import knockoffs
    >>> data = make_group_sparse(300, 120, 3, active=10, random_state=0)
    >>> found = knockoffs(data.X, data.y, 3, fdr=0.2, random_state=0)
    >>> len(set(found.selected_groups) & set(data.S.tolist())), found.kind
    (10, 'fixed')
    """
    if terms is not None:
        X, groups, always = read_variables(X, terms, groups, always, sample_weight)
    problem = read_problem(
        X, y, groups, always, loss, offset, sample_weight, fit_intercept=fit_intercept, factors=factors
    )
    groups = problem.groups
    if groups.overlapping:
        raise ValueError("Knockoffs need groups without a column in common: give each column to one group.")
    fdr = read_share(fdr, "fdr")
    n_draws = whole(n_draws, "n_draws")
    if len(problem.always) == groups.n_groups:
        raise ValueError("No group is left to select: all are in always.")
    columns, present = read_columns(problem)
    if present.size == 0:
        raise ValueError("No group is left to select: none varies.")
    fixed = _is_fixed(kind, columns, problem.loss)
    rows = problem.weight > 0
    offset = None if problem.offset is None else problem.offset[rows]
    observed = replace(problem, y=problem.y[rows], weight=problem.weight[rows], offset=offset)
    if group_weights is None or isinstance(group_weights, str):
        weights = read_weights(group_weights, np.repeat(columns.ranks, 2), SETTINGS.first_groups)[::2]
    else:
        weights = read_weights(group_weights, groups.sizes)[present]
    rngs = np.random.default_rng(random_state).spawn(n_draws)
    draws = np.zeros((n_draws, groups.n_groups))
    with showing("knockoffs", verbose):
        copier = Copier(columns, fixed=fixed)
        tasks = [delayed(_statistics)(copier, observed, weights, rng) for rng in rngs]
        drawn = list(finished(tasks, "draw", n_jobs))
    draws[:, present] = W = np.array([one for one, _ in drawn])
    statistics = np.zeros(groups.n_groups)
    statistics[present] = W[0] if n_draws == 1 else e_values(W, LEVEL * fdr)
    threshold = filter_threshold(W[0], fdr) if n_draws == 1 else largest_set(statistics[present], fdr)
    statistics[problem.always] = np.nan
    found = KnockoffSelection(
        groups, statistics, threshold, fdr, draws, "fixed" if fixed else "gaussian", copier.distance,
        always_groups=tuple(groups.names[l] for l in problem.always),
    )  # fmt: skip
    return replace(found, remarks=_remarks(found, problem, float(np.mean([lost for _, lost in drawn]))))


def _is_fixed(kind: str, columns: Columns, loss: Loss) -> bool:
    """Whether copies are drawn for fixed columns rather than for their distribution."""
    one_of(kind, ("auto", "gaussian", "fixed"), "kind")
    needed = 2 * columns.Z.shape[1] + columns.held.shape[1] + int(columns.intercept)
    enough = len(columns.Z) >= needed
    if kind == "fixed" and not loss.quadratic:
        raise ValueError(f"Fixed-X knockoffs are for squared loss, but the loss is {loss.name}: use kind='gaussian'.")
    if kind == "fixed" and not enough:
        raise ValueError(
            f"Fixed-X knockoffs of these columns need {needed} rows, but there are {len(columns.Z)}: use "
            "kind='gaussian'."
        )
    return kind == "fixed" or (kind == "auto" and loss.quadratic and enough)


def _statistics(
    copier: Copier, problem: Problem, weights: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, float]:
    """W of one draw, for the response of a problem, and how much correlation its copies have lost."""
    columns, copies = copier.columns, copier.draw(rng)
    n_groups = columns.ranks.size
    most = min(2 * n_groups, math.ceil(DEPTH * len(copies) / columns.ranks.mean()))
    # the first of two wins a tie, so a coin decides whether that is the group or its copy
    swapped = rng.random(n_groups) < 0.5
    rates = wake_up_rates(problem, columns, copies, swapped, weights, most)
    return signed_maximum(*rates), lost_correlation(columns, copies)


def _remarks(found: KnockoffSelection, problem: Problem, lost: float) -> tuple[str, ...]:
    """Caveats if little could be found, or if columns do not match the copies' assumptions."""
    remarks = []
    if found.distance < NEAR:
        remarks.append(
            f"Groups explain each other so well that copies hardly differ from them (distance {found.distance:.2f} of "
            "1), and little can be found: merge groups that carry the same information."
        )
    if not found.is_selected.any():
        level = found.fdr if found.n_draws == 1 else LEVEL * found.fdr
        remarks.append(
            f"No group is selected. At fdr={found.fdr:g} {'the filter' if found.n_draws == 1 else 'a draw'} selects at "
            f"least {math.ceil(1 / level - 1e-9)} groups or none: if fewer matter, a larger fdr or stability selection "
            "can find them."
        )
    if found.kind == "gaussian":
        if lost > LOST:
            remarks.append(
                f"Groups are more strongly correlated with each other than with copies (by {lost:.0%} of the squared "
                "correlations): the covariance that was estimated from these rows lacks some of them, and more groups "
                "without an effect than the rate allows may be selected."
            )
        design, rows = problem.design, np.flatnonzero(problem.weight > 0)
        X = np.asarray(design.take(np.arange(design.shape[1])))[rows]
        two = np.array([np.unique(column[:ROWS_EXAMINED]).size <= 2 for column in X.T])
        if two.any():
            remarks.append(
                f"{two.sum()} of {design.shape[1]} columns have two values, and normal copies match only their means "
                "and correlations: the rate holds approximately."
            )
        centred = X[:, ~two] - X[:, ~two].mean(axis=0)
        squares = np.mean(centred**2, axis=0)
        excess_kurtosis = np.mean(centred**4, axis=0) / np.where(squares > 0, squares, np.inf) ** 2 - 3
        heavy = excess_kurtosis > max(HEAVY, HEAVY_ERRORS * np.sqrt(24 / len(X)))
        if heavy.sum() > heavy.size / 2:
            remarks.append(
                f"{heavy.sum()} of {design.shape[1]} columns have heavier tails than a normal distribution, "
                "which copies do not have: more groups without an effect than the rate allows may be selected. "
                "Transform them, for instance by scikit-learn's QuantileTransformer(output_distribution='normal')."
            )
    return tuple(remarks)
