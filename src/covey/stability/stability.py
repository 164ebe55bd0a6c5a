"""Complementary-pairs stability selection along the path."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray

import covey
from covey.checkpoint import Checkpoint, fingerprint, kept
from covey.designs import as_design
from covey.groups import Groups
from covey.stability.bounds import Assumption, expected_false, largest_first, least_threshold
from covey.stopping import PathTask
from covey.summary import Summary
from covey.validation import FloatArray, positive, whole

__all__ = ["StabilitySelection", "stability_selection"]

# Where neither is given: one mistake is what most readers of a list of findings would put up with.
ONE_MISTAKE = 1.0


@dataclass(frozen=True, repr=False)
class StabilitySelection:
    """How often each group was among the first to wake up, over half-samples of the rows.

    Attributes
    ----------
    groups : Groups
    orders : ndarray of int, shape (2 * n_pairs, n_first)
        The groups that woke up first in each half-sample, in their order; -1 where no more did. Rows ``2 b`` and
        ``2 b + 1`` are a complementary pair.
    threshold : float
        The share of half-samples from which on a group is selected.
    assumption : {"unimodal", "none"}
        Under which `expected_false` holds.
    """

    groups: Groups
    orders: NDArray[np.intp]
    threshold: float
    assumption: Assumption = "unimodal"

    @property
    def n_first(self) -> int:
        """How many groups a half-sample selects at most."""
        return self.orders.shape[1]

    @property
    def n_pairs(self) -> int:
        """The number of complementary pairs."""
        return self.orders.shape[0] // 2

    @property
    def frequencies(self) -> FloatArray:
        """The share of half-samples in which each group was selected; shape (n_groups,)."""
        return self.frequencies_of(self.n_first)

    def frequencies_of(self, n_first: int) -> FloatArray:
        """The shares had each half-sample selected this many groups."""
        chosen = self.orders[:, :n_first]
        counts = np.bincount(chosen[chosen >= 0], minlength=self.groups.n_groups)
        return counts / self.orders.shape[0]

    @property
    def selected(self) -> list[Any]:
        """Names of the groups at or above the threshold, most frequent first."""
        return self.to_frame().query("selected").index.tolist()

    @property
    def expected_false(self) -> float:
        """An upper bound for the expected number of groups selected by mistake; see `expected_false`."""
        return expected_false(
            self.n_first, self.threshold, self.groups.n_groups, n_pairs=self.n_pairs, assumption=self.assumption
        )

    def to_frame(self) -> pd.DataFrame:
        """Every group with its size, its frequency and whether it is selected; most frequent first."""
        shares = self.frequencies
        # counts are whole: a share of exactly the threshold must not be lost to rounding
        chosen = np.round(shares * len(self.orders)) >= self.threshold * len(self.orders) - 1e-9
        frame = pd.DataFrame(
            {"size": self.groups.sizes, "frequency": shares, "selected": chosen},
            index=pd.Index(list(self.groups.names), name="group"),
        )
        return frame.sort_values("frequency", ascending=False, kind="stable")

    def summary(self) -> Summary:
        """The selected groups and the bound; ``print`` it, or let a notebook show it."""
        chosen = self.to_frame().query("selected")
        head = (
            f"Stability selection: {len(chosen)} of {self.groups.n_groups} groups among the first {self.n_first} in at "
            f"least {self.threshold:.0%} of {len(self.orders)} half-samples.",
            f"Expected number of mistakes: at most {self.expected_false:.3g} "
            f"({'if unimodal, ' if self.assumption == 'unimodal' else ''}Shah and Samworth, 2013).",
        )
        shown = chosen[["size", "frequency"]].assign(frequency=chosen["frequency"].map("{:.2f}".format))
        return Summary(head, shown.reset_index(), whole="to_frame()")

    def __repr__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


def stability_selection(
    X: Any,
    y: Any,
    groups: Any = None,
    *,
    threshold: float | None = 0.75,
    n_first: int | None = None,
    max_false: float | None = None,
    n_pairs: int = 50,
    assumption: Assumption = "unimodal",
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    checkpoint: Any = None,
    verbose: int = 0,
    **path_options: Any,
) -> StabilitySelection:
    r"""Which groups wake up early in halves of the rows, again and again.

    The rows are split at random into two halves, `n_pairs` times. In each half the path runs until `n_first` groups
    have woken up; a group is selected when it was among them in at least `threshold` of the halves. How many groups are
    selected by mistake is bounded on average, whatever the noise (Shah and Samworth, 2013): see
    `covey.stability.expected_false`.

    Parameters
    ----------
    X : array-like or any kind of design, of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
    groups : None, int, labels, lists, dict or Groups
    threshold : float or None
        Above 1/2. None: the least one for which `n_first` groups give at most `max_false` mistakes.
    n_first : int, optional
        Groups that each half-sample selects. By default as many as `threshold` and `max_false` allow.
    max_false : float, optional
        The largest expected number of mistakes to accept; one where neither this nor `n_first` is given.
    n_pairs : int
        Complementary pairs.
    assumption : {"unimodal", "none"}
        What the bound may assume.
    sample_weight : array-like of shape (n_rows,), optional
    n_jobs : int, optional
        Half-samples in parallel, through joblib.
    random_state : int, Generator or None
        For the splits.
    checkpoint : path, optional
        A folder in which finished half-samples are kept. A call with the same data and settings goes on from them, and
        gives what an undisturbed one would have given. Needs an int as `random_state`.
    verbose : int
        1: how many half-samples are done.
    **path_options
        As in `covey.group_path`.

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
    >>> sorted(found.selected), found.n_first, round(found.expected_false, 2)
    ([0, 1, 2], 9, 0.9)
    """
    design = as_design(X)
    made = Groups.coerce(groups, design.shape[1], design.columns)
    response = design.rows(y)
    weight = np.ones(design.shape[0]) if sample_weight is None else design.rows(sample_weight, name="sample_weight")
    design.weights(weight)
    pairs = whole(n_pairs, "n_pairs")
    threshold, first = _read_limits(threshold, n_first, max_false, made.n_groups, pairs, assumption)
    if checkpoint is not None and (isinstance(random_state, bool) or not isinstance(random_state, int | np.integer)):
        raise ValueError(
            f"checkpoint needs an int as random_state to find its half-samples again, not {random_state!r}."
        )
    halves = _halves(np.flatnonzero(np.asarray(weight) > 0), design.shape[0], pairs, random_state)
    task = PathTask(design, response, made, weight, {"max_iter": 100_000} | path_options)
    store = None
    if checkpoint is not None:
        data = fingerprint(design, response, weight)
        parts = (covey.__version__, data, made, path_options, first, int(random_state))
        store = Checkpoint.of(checkpoint, *parts, holds=partial(_is_order, most=first, n_groups=made.n_groups))
    work = (delayed(kept)(store, f"half-{i}", _first_groups, task, half, first) for i, half in enumerate(halves))
    orders = np.full((2 * pairs, first), -1, dtype=np.intp)
    for i, order in enumerate(_in_parallel(work, n_jobs)):
        orders[i, : len(order)] = order
        if verbose:
            share = (i + 1) / (2 * pairs)
            print(f"[covey] stability selection: {i + 1} of {2 * pairs} half-samples ({share:.0%})", flush=True)
    return StabilitySelection(made, orders, threshold, assumption)


def _is_order(value: Any, *, most: int, n_groups: int) -> bool:
    """Whether a piece from a file can be the first groups of a half-sample."""
    if not isinstance(value, list) or len(value) > most or len(set(map(str, value))) < len(value):
        return False
    return all(type(l) is int and 0 <= l < n_groups for l in value)


def _in_parallel(work: Iterable[Any], n_jobs: int | None) -> Iterable[Any]:
    """Results in order, as they come; all at once from a backend that cannot do that."""
    try:
        return Parallel(n_jobs=n_jobs, return_as="generator")(work)
    except ValueError:
        return Parallel(n_jobs=n_jobs)(work)


def _first_groups(task: PathTask, half: NDArray[np.intp], first: int) -> list[int]:
    """The first groups to wake up on some of the rows."""
    rows = np.zeros(task.design.shape[0], dtype=bool)
    rows[half] = True
    path = task.on(rows).path(stop=lambda snapshot: snapshot.n_woken >= first)
    return [int(l) for l, _ in path.entered[:first]]


def _halves(rows: NDArray[np.intp], n: int, pairs: int, random_state: Any) -> list[NDArray[np.intp]]:
    """Complementary halves of the rows, pair after pair; an odd row is left out."""
    if rows.size < 4:
        raise ValueError(
            f"Stability selection splits the rows in halves; {rows.size} rows of positive weight are too few."
        )
    rng = np.random.default_rng(random_state)
    size = rows.size // 2
    out = []
    for _ in range(pairs):
        order = rng.permutation(rows)
        out += [order[:size], order[size : 2 * size]]
    return out


def _read_limits(
    threshold: Any, n_first: Any, max_false: Any, L: int, pairs: int, assumption: Assumption
) -> tuple[float, int]:
    """The threshold and the number of groups per half-sample."""
    if assumption not in ("unimodal", "none"):
        raise ValueError(f"assumption must be 'unimodal' or 'none', not {assumption!r}.")
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
                f"No threshold keeps n_first={first} of {L} groups within max_false; use fewer, or more of it."
            )
        return least, first
    bound = expected_false(first, threshold, L, n_pairs=pairs, assumption=assumption)
    if limit is not None and bound > limit:
        raise ValueError(
            f"n_first={first} at threshold={threshold:g} allows {bound:.3g} mistakes, above max_false={limit:g}. Leave "
            "one of the three out, and it follows from the others."
        )
    return threshold, first
