"""Group knockoffs: which groups wake up faster than copies of them that know nothing of the response."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from covey.designs import as_design
from covey.groups import Groups
from covey.limit.posing import FIRST_GROUPS
from covey.limit.public import read_rows
from covey.losses import Loss, MultiSquared, Squared, get_loss
from covey.preprocess.group_weights import read_weights
from covey.stability.columns import Columns, read_columns
from covey.stability.copies import Construction, Copier
from covey.stability.evidence import LEVEL, e_values, filter_threshold, largest_set
from covey.stability.knockoff_result import KnockoffSelection
from covey.stability.labels import as_numbers
from covey.stability.remarks import on_knockoffs
from covey.stability.wake_up import signed_maximum, wake_up_rates
from covey.validation import FloatArray, on_host, positive, whole

__all__ = ["knockoffs"]

# A path ends when its columns are this share of the rows: groups that wake up later do so on what is left of the noise.
DEPTH = 0.5


def knockoffs(
    X: Any,
    y: Any,
    groups: Any = None,
    *,
    fdr: float = 0.1,
    kind: Literal["auto", "gaussian", "fixed"] = "auto",
    construction: Construction = "entropy",
    n_draws: int = 1,
    always: Iterable[Any] = (),
    loss: str | Loss = "squared",
    offset: Any = None,
    sample_weight: Any = None,
    group_weights: Any = "noise",
    fit_intercept: bool = True,
    factors: int | str = "auto",
    n_jobs: int | None = None,
    random_state: Any = None,
) -> KnockoffSelection:
    r"""Which groups have an effect, with a false discovery rate of at most `fdr`.

    Every group gets a copy, its knockoff, with the same correlations to all columns but its own, made without the
    response. The limit path runs on groups and copies together. Let :math:`t_l` be the time that a group needs to wake
    up from the model that it joins, and :math:`\tilde t_l` that of its copy; then :math:`W_l` is the larger of
    :math:`1/t_l` and :math:`1/\tilde t_l`, negative where the copy is the faster one. (What it gathered before, while
    groups that are awake by then still slept, does not count: that is correlation with them.) Exchanging a group with
    its copy changes the sign of :math:`W_l` and nothing else, so that for groups without an effect, given all others,
    signs are those of a fair coin. The knockoff filter (offset 1) selects groups from the least t on at which
    :math:`(1 + \#\{W \le -t\}) / \#\{W \ge t\}` is at most `fdr`.

    What is assumed: for ``kind="gaussian"`` that rows are independent draws from a normal distribution with the
    covariance that is estimated from them (common factors, and correlations between groups beyond those of chance);
    nothing about how the response depends on them. Columns that are not normal are matched in means and correlations
    only. For ``kind="fixed"`` nothing about X, but a linear model with independent normal noise of one variance. In
    both, "without an effect" means: given all other groups. A group that resembles a true one has none, but the rate
    counts it as a mistake if it is selected.

    Parameters
    ----------
    X : array-like or design, shape (n_rows, n_features)
        Of a kind whose columns can be read.
    y : array-like of shape (n_rows,), or (n_rows, n_outputs) for several responses
        For classes labels will do.
    groups : None, int, labels, lists, dict or Groups
        Without columns in common.
    fdr : float
        The share of groups without an effect among the selected ones, on average. No fewer than ``1 / fdr`` groups
        are selected, or none.
    kind : {"auto", "gaussian", "fixed"}
        "auto" is "fixed" for squared loss where there are twice as many rows as columns, else "gaussian".
    construction : {"entropy", "equicorrelated", "semidefinite"}
        How like its group a copy is: as little as possible in the sense of maximum entropy; by one number for all
        groups, in closed form; or by a semidefinite program, for which knockpy has to be installed.
    n_draws : int
        Sets of copies. One is the filter itself, whose result depends on the draw. Several are put together by
        e-values (Ren and Barber, 2024), which keep the rate whatever the dependence between draws; weak groups are
        then found less often than by one draw.
    always : iterable
        Names of groups that are in every model, such as age and sex: copies are made given their columns.
    loss, offset, sample_weight, group_weights, fit_intercept
        As in `covey.limit_path`. A copy has its group's weight.
    factors : int or "auto"
        Common factors of groups and copies together that are in the model from the start.
    n_jobs : int, optional
        Draws in parallel, through joblib.
    random_state : int, Generator or None

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
    >>> from covey.stability import knockoffs
    >>> data = make_group_sparse(300, 120, 3, active=10, random_state=0)
    >>> found = knockoffs(data.X, data.y, 3, fdr=0.2, random_state=0)
    >>> len(set(found.selected_groups) & set(data.S.tolist())), found.kind
    (10, 'fixed')
    """
    design = as_design(X)
    made = Groups.coerce(groups, design.shape[1], design.columns)
    if made.overlapping:
        raise ValueError("Knockoffs need groups without a column in common: give each column to one group.")
    target = positive(fdr, "fdr")
    if target >= 1:
        raise ValueError(f"fdr must lie between 0 and 1, not {fdr!r}.")
    if construction not in ("entropy", "equicorrelated", "semidefinite"):
        raise ValueError(f"construction must be 'entropy', 'equicorrelated' or 'semidefinite', not {construction!r}.")
    n_sets = whole(n_draws, "n_draws")
    own_loss = get_loss(loss)
    own_loss, response, weight, shift = read_rows(design, as_numbers(y, own_loss), sample_weight, own_loss, offset)
    weight, response = np.asarray(on_host(weight)), np.asarray(on_host(response))
    stay = made.positions(always, "always")
    if len(stay) == made.n_groups:
        raise ValueError("No group is left to select: all are in always.")
    columns, present = read_columns(design, made, stay, weight, fit_intercept)
    if present.size == 0:
        raise ValueError("No group is left to select: none varies.")
    fixed = _is_fixed(kind, columns, own_loss)
    copier = Copier(columns, fixed=fixed, construction=construction)
    rows = weight > 0
    shift = None if shift is None else np.asarray(on_host(shift))[rows]
    options = {"loss": own_loss, "offset": shift, "fit_intercept": fit_intercept, "factors": factors}
    weights = _weights(group_weights, made, present, columns.ranks)
    rngs = np.random.default_rng(random_state).spawn(n_sets)
    found = Parallel(n_jobs=n_jobs)(
        delayed(_statistics)(copier, response[rows], weight[rows], weights, options, rng) for rng in rngs
    )
    draws = np.zeros((n_sets, made.n_groups))
    draws[:, present] = found
    statistics = np.zeros(made.n_groups)
    if n_sets == 1:
        statistics[present] = draws[0, present]
        threshold = filter_threshold(draws[0, present], target)
    else:
        statistics[present] = e_values(draws[:, present], LEVEL * target)
        threshold = largest_set(statistics[present], target)
    statistics[stay] = np.nan
    selection = KnockoffSelection(
        made, statistics, threshold, target, draws, "fixed" if fixed else "gaussian", copier.distance,
        tuple(made.names[l] for l in stay),
    )  # fmt: skip
    return replace(selection, remarks=tuple(on_knockoffs(selection, design)))


def _is_fixed(kind: str, columns: Columns, loss: Loss) -> bool:
    """Whether copies are made for columns as they are, rather than for their distribution."""
    if kind not in ("auto", "gaussian", "fixed"):
        raise ValueError(f"kind must be 'auto', 'gaussian' or 'fixed', not {kind!r}.")
    squared = isinstance(loss, Squared | MultiSquared)
    needed = 2 * columns.Z.shape[1] + columns.held.shape[1] + int(columns.intercept)
    enough = len(columns.Z) >= needed
    if kind == "fixed" and not squared:
        raise ValueError(f"Fixed-X knockoffs are for squared loss, and the loss is {loss.name}: use kind='gaussian'.")
    if kind == "fixed" and not enough:
        raise ValueError(
            f"Fixed-X knockoffs of these columns need {needed} rows, and there are {len(columns.Z)}: use "
            "kind='gaussian'."
        )
    return kind == "fixed" or (kind == "auto" and squared and enough)


def _weights(group_weights: Any, groups: Groups, present: NDArray[np.intp], ranks: NDArray[np.intp]) -> FloatArray:
    """Of each group and its copy."""
    if group_weights is None or isinstance(group_weights, str):
        return read_weights(group_weights, np.repeat(ranks, 2), FIRST_GROUPS)[::2]
    return read_weights(group_weights, groups.sizes)[present]


def _statistics(
    copier: Copier,
    y: FloatArray,
    weight: FloatArray,
    group_weights: FloatArray,
    options: dict[str, Any],
    rng: np.random.Generator,
) -> FloatArray:
    """W of one draw."""
    columns, copies = copier.columns, copier.draw(rng)
    n_groups = columns.ranks.size
    most = min(2 * n_groups, math.ceil(DEPTH * len(copies) / columns.ranks.mean()))
    # what stands first wins a tie, so that a coin decides
    swapped = rng.random(n_groups) < 0.5
    return signed_maximum(
        *wake_up_rates(
            columns.Z, copies, columns.ranks, columns.held, y, weight, swapped, group_weights, most, **options
        )
    )
