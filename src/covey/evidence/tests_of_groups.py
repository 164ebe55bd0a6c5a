"""Tests of all groups by many splits of the rows: one half selects, the other half tests."""

# ruff: noqa: PT028 - test_groups is no test of pytest

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from covey.evidence.group_tests import CONTROLS, GroupTests
from covey.evidence.halves import class_strata, complementary_halves, first_groups, in_parallel
from covey.evidence.overlap import have_close
from covey.evidence.reading import problem_of
from covey.evidence.score_test import observations_on, score_test
from covey.evidence.stability import Progress, default_first
from covey.losses.base import Response
from covey.progress import enter, showing
from covey.search.problem import Problem, ancestors
from covey.validation import FloatArray, MatrixLike, PerRow, one_of, positive, whole

__all__ = ["test_groups"]

# A model that is tested has at most this many columns per row: with more, tests are weak, and those of classes and
# survival times are off.
MOST_COLUMNS = 1 / 3

# All groups are tested in one model if that takes at most this many multiplications, about a minute's worth.
MOST_WORK = 1e11

# Twenty-five pairs are fifty splits, as in Meinshausen, Meier and Bühlmann's simulations; more found no more groups.
PAIRS = 25

# The least number of groups that a half selects by default: a group that is missed may be found in the place of one
# that resembles it, so it is better to select too many.
LEAST_FIRST = 8

# The p-value of a group is this quantile of its p-values over splits, divided by it. If another group is close to it,
# it is the median: some halves select one in the place of the other, but hardly most.
QUANTILE, MEDIAN = 0.1, 0.5

# The most groups that a remark names.
MOST_NAMED = 5


def test_groups(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    *,
    control: Literal["fwer", "fdr"] = "fwer",
    level: float = 0.05,
    n_first: int | None = None,
    n_pairs: int = PAIRS,
    sample_weight: PerRow = None,
    offset: PerRow = None,
    n_jobs: int | None = None,
    random_state: int | None = None,
    progress: Progress | None = None,
    verbose: int | None = None,
) -> GroupTests:
    r"""Test every group: has it an effect beside all other groups?

    If all groups together have at most a third as many columns as there are rows, they are tested in one model on all
    rows (unless that would take minutes). Otherwise the rows are split at random into two halves, `n_pairs` times. Each
    half selects `n_first` groups, by the limit path and backward elimination, and on the other half each of them is
    tested within the model of all that were selected. Groups that are not selected have the p-value one. No row both
    selects and tests, so p-values are valid although groups were selected. A test is the F test for squared loss, and a
    score test for other losses.

    The p-value of a group is ten times the first decile over all splits of its p-values, each multiplied by the number
    of groups that were selected there (Meinshausen, Meier and Bühlmann, 2009). This is valid however splits depend on
    each other. A group that another one resembles (a canonical correlation above 0.7) has twice the median instead,
    because some halves may select one in the place of the other. Groups that are found stop counting, as in Holm's
    method.

    Selecting all groups with a p-value of at most `level` makes any mistake with probability at most `level`
    (``control="fwer"``). With ``control="fdr"``, on average at most a share `level` of the selected groups are
    mistakes (Benjamini and Yekutieli). A mistake is a group that has no effect given all others. What is assumed: rows
    are independent; half of the rows select every group that has an effect, or what they miss is hardly correlated with
    what they select; and the model holds, with noise of one variance for squared loss. With several responses, a group
    has an effect if it has one on any of them.

    Parameters
    ----------
    model : GroupSparseRegressor, GroupSparseClassifier or GroupSparseCox
        It says what the groups or terms, the loss and the groups that are always in are. It does not have to be fitted,
        and is not changed; `selection` and `rule` are not used. Halves select under its `constraints`, and tests do
        without them: they are two-sided. With ``terms=``, every term is tested together
        with the terms that need it: ``age`` with its curve ``age~``, and ``age~`` alone. The encoding, which does
        not depend on the response, is fitted to all rows once.
    X, y
        As in `fit`.
    control : {"fwer", "fdr"}
        The familywise error, or the false discovery rate.
    level : float
        The largest acceptable error of that kind.
    n_first : int, optional
        The number of groups that each half selects; by default as in `covey.stability_selection`, but at least
        eight. It is lowered where tested models would have more than a third as many columns as rows.
    n_pairs : int
        The number of pairs of halves; each half selects once and tests once.
    sample_weight, offset : array-like, optional
        As in `fit`. In tests, weights say how precise rows are: they do not count rows.
    n_jobs : int, optional
        How many half-samples select in parallel, with joblib.
    random_state : int, Generator or None
        Seed for the splits.
    progress : callable, optional
        Called after each half-sample with the number of finished half-samples and their total number.
    verbose : int, optional
        1 shows progress, 0 nothing; by default there is a progress bar where one can be drawn, on a terminal or in
        a notebook.

    Returns
    -------
    GroupTests
        With `p_values`, `selected_groups`, `to_frame()` and `summary()`.

    See Also
    --------
    covey.stability_selection : groups that are found again in half of the rows; needs no model of the noise.
    covey.evidence.knockoffs : many groups at once, with a false discovery rate.
    covey.evidence.effect : the size of the effect of named columns, with an interval.

    References
    ----------
    Meinshausen, Meier and Bühlmann, "p-values for high-dimensional regression", 2009.

    Examples
    --------
    >>> from covey import GroupSparseRegressor
    >>> from covey.datasets import make_group_sparse
    >>> from covey.evidence import test_groups
    >>> data = make_group_sparse(150, 90, 3, active=3, random_state=0)
    >>> tests = test_groups(GroupSparseRegressor(groups=3), data.X, data.y, n_pairs=10, random_state=0)
    >>> sorted(tests.selected_groups), bool(tests.p_values[3:].min() > 0.05)
    ([0, 1, 2], True)
    """
    problem = problem_of(model, X, y, sample_weight, offset)
    one_of(control, tuple(CONTROLS), "control")
    level, n_pairs = positive(level, "level"), whole(n_pairs, "n_pairs")
    if level >= 1:
        raise ValueError(f"level must lie between 0 and 1, not {level:g}.")
    groups, candidates = problem.groups, np.setdiff1d(np.arange(problem.groups.n_groups), problem.always)
    if not candidates.size:
        raise ValueError("Every group is in always, and none is left to test: covey.evidence.effect tests them.")
    n_first = min(max(default_first(candidates.size), LEAST_FIRST), candidates.size) if n_first is None else n_first
    if whole(n_first, "n_first") > candidates.size:
        raise ValueError(f"n_first is {n_first}, but there are {candidates.size} groups to select from.")
    rows = np.flatnonzero(problem.weight > 0)
    quantiles, close, most_left = np.ones(groups.n_groups), dict[int, int](), 0
    if _fit_together(problem, candidates, rows.size):
        chosen, testing = [candidates.tolist()], [rows]
    else:
        _check_rows(problem, candidates, rows.size)
        halves = complementary_halves(rows, class_strata(problem), n_pairs, np.random.default_rng(random_state))
        testing = [halves[i ^ 1] for i in range(2 * n_pairs)]
        tasks = (delayed(_select)(problem, half, n_first) for half in halves)
        chosen = []
        with showing("test_groups", verbose):
            enter("half-sample", 1, 2 * n_pairs)
            for i, found in enumerate(in_parallel(tasks, n_jobs)):
                chosen.append(_that_fit(problem, found, halves[i].size))
                left = len(set(found).difference(chosen[-1]))
                most_left = max(most_left, left if 2 * left > len(found) else 0)
                enter("half-sample", i + 2, 2 * n_pairs)
                if progress is not None:
                    progress(i + 1, 2 * n_pairs)
        centre = bool(problem.options["fit_intercept"]) or not problem.loss.has_intercept
        close = have_close(problem.design, groups, sorted({l for one in chosen for l in one}), centre=centre)
        quantiles = np.where(np.isin(np.arange(groups.n_groups), list(close)), MEDIAN, QUANTILE)
    raw = np.ones((len(chosen), groups.n_groups))
    tested, n_separated = np.zeros(raw.shape, dtype=bool), 0
    for i, (found, half) in enumerate(zip(chosen, testing, strict=True)):
        for l, p in _test(problem, found, half).items():
            raw[i, l], tested[i, l] = 1.0 if p is None else p, True
            n_separated += p is None
    always = tuple(groups.names[l] for l in problem.always)
    tests = GroupTests(groups, raw, tested, quantiles, control, level, problem.parents, always_groups=always)
    remarks = _remarks(tests, n_separated, close, most_left, constrained=bool(problem.constraints))
    return replace(tests, remarks=remarks)


test_groups.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test


def _select(problem: Problem, half: NDArray[np.intp], n_first: int) -> list[int]:
    """The groups that half of the rows select."""
    weight = np.zeros_like(problem.weight)
    weight[half] = problem.weight[half]
    try:
        problem.loss.check_estimable(Response(problem.loss, problem.y), weight, problem.offset)
    except ValueError as error:
        raise ValueError(f"Half of the rows cannot be fitted. {error}") from None
    return first_groups(problem, half, n_first)


def _test(problem: Problem, chosen: list[int], rows: NDArray[np.intp]) -> dict[int, float | None]:
    """The p-value of each of some groups in the model of all of them; None if a test cannot be made."""
    response = observations_on(problem, rows)
    columns = {l: _columns_of(problem, l)[rows] for l in [*problem.always, *chosen]}
    has_intercept = problem.options["fit_intercept"] and problem.loss.has_intercept
    constant = np.ones((rows.size, int(has_intercept)))
    p_values = {}
    for l in chosen:
        family = _with_descendants(problem, l, chosen)
        base = np.hstack([constant, *(X for other, X in columns.items() if other not in family)])
        p_values[l] = score_test(response, base, np.hstack([columns[one] for one in family]))
    return p_values


def _columns_of(problem: Problem, group: int) -> FloatArray:
    starts, members = problem.groups.starts, problem.groups.members
    return np.asarray(problem.design.take(members[starts[group] : starts[group + 1]]), dtype=float)


def _room(problem: Problem, n_rows: int) -> int:
    """How many columns a tested model may have beside those that are always in."""
    informative = problem.loss.informative(problem.y)
    share = 1.0 if informative is None else float(informative[problem.weight > 0].mean())
    return int(MOST_COLUMNS * share * n_rows) - int(problem.groups.sizes[problem.always].sum())


def _fit_together(problem: Problem, candidates: NDArray[np.intp], n_rows: int) -> bool:
    """Whether all groups can be tested in one model."""
    n_columns = float(problem.groups.sizes.sum())
    work = n_rows * n_columns**2 * candidates.size
    return problem.groups.sizes[candidates].sum() <= _room(problem, n_rows) and work <= MOST_WORK


def _check_rows(problem: Problem, candidates: NDArray[np.intp], n_rows: int) -> None:
    """Refuse rows that are too few for any test."""
    least = int(problem.groups.sizes[candidates].min())
    if least > _room(problem, n_rows // 2):
        beside = " beside those that are always in" * bool(problem.always)
        raise ValueError(
            f"Half of the {n_rows} rows of positive weight are too few to test a group of {least} columns{beside}: "
            "tested models have at most a third as many columns as rows, or events. Give more rows, or smaller groups."
        )


def _remarks(
    tests: GroupTests, n_separated: int, close: Mapping[int, int], most_left: int, *, constrained: bool
) -> tuple[str, ...]:
    remarks, names = [], tests.groups.names
    if most_left:
        remarks.append(
            f"Up to {most_left} of the groups that a half selected were left out, because tested models have at most a "
            "third as many columns as rows, or events: what has an effect can be missed."
        )
    if constrained:
        first = "Halves select groups under the constraints of the model; the" if len(tests.tested) > 1 else "The"
        remarks.append(f"{first} tests are two-sided: an effect against a constraint counts as an effect.")
    alike = [f"{names[l]} with {names[close[l]]}" for l in np.flatnonzero(tests.is_selected).tolist() if l in close]
    if alike:
        more = f"; and {len(alike) - MOST_NAMED} more" if len(alike) > MOST_NAMED else ""
        remarks.append(
            f"Selected groups are strongly correlated with others: {'; '.join(alike[:MOST_NAMED])}{more}. Halves can "
            "select one in place of the other: read each pair as one finding."
        )
    if n_separated:
        # on all rows every group is in the model, whatever n_first is
        remedy = " A smaller n_first leaves more tests." if len(tests.tested) > 1 else ""
        remarks.append(
            f"{n_separated} of {tests.tested.sum()} tests could not be made, because the other groups separate the "
            f"responses perfectly; they count with a p-value of one.{remedy}"
        )
    if tests.always_groups:
        remarks.append(
            f"Groups that are always in the model are not tested: {', '.join(map(str, tests.always_groups))}. For "
            "their effects use covey.evidence.effect."
        )
    return tuple(remarks)


def _that_fit(problem: Problem, found: list[int], n_rows: int) -> list[int]:
    """The first of the selected groups, with their parents, that have few enough columns for a test."""
    chosen, room = list[int](), _room(problem, n_rows)
    for l in found:
        more = [one for one in (*ancestors(problem.parents, l), l) if one not in chosen and one not in problem.always]
        size = int(problem.groups.sizes[more].sum())
        if size <= room:
            chosen += more
            room -= size
    return chosen


def _with_descendants(problem: Problem, group: int, among: list[int]) -> list[int]:
    """A group and those that need it."""
    return [one for one in among if one == group or group in ancestors(problem.parents, one)]
