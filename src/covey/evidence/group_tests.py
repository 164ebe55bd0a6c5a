"""Tests of all groups: each beside the groups that predict the response, and those that predict it."""

# ruff: noqa: PT028 - test_groups is no test of pytest

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from covey.designs import RepeatedColumns
from covey.designs.rows import count_rows
from covey.evidence.reading import columns_of, members_of, observations_on, problem_of, read_share
from covey.evidence.score_test import independent_columns, score_test
from covey.evidence.selections import CONTROLS, GroupTests
from covey.groups import Groups
from covey.losses import MultiSquared
from covey.progress import Progress, finished, showing
from covey.search.criteria import InformationCriterion
from covey.search.posed import pose
from covey.search.problem import Parts, Problem, ancestors
from covey.search.ranking import ranked_groups
from covey.search.select import select
from covey.validation import FloatArray, MatrixLike, PerRow, on_host, one_of, some, whole

# A model that is tested has at most this many columns per row: with more, tests are weak, and those of classes and
# survival times are off.
MOST_COLUMNS = 1 / 3

# All groups are tested in one model if that takes at most this many multiplications, about a minute's worth.
MOST_WORK = 1e11

# How many groups are tested at least by default: each costs a search, and those that come later are hardly ever found.
FIRST = 12

# How controls are selected, strictly: a control that follows the noise of the response makes the noise look smaller
# than it is, and all tests too sharp. See docs/decisions/0057-tests-of-groups.md.
CRITERION = InformationCriterion("ebic", gamma=1.0)

# The most groups that a remark names.
MOST_NAMED = 5

# What factors leave of a column is nothing if it is less than this, relative to the column.
NOTHING = 1e-7


def test_groups(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    *,
    control: Literal["fwer", "fdr"] = "fwer",
    level: float = 0.05,
    n_first: int = FIRST,
    sample_weight: PerRow = None,
    offset: PerRow = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    verbose: int | None = None,
) -> GroupTests:
    r"""Test every group: has it an effect beside all other groups?

    If all groups together have at most a third as many columns as there are rows, each is tested in the model of all
    groups (unless that would take minutes). Otherwise each is tested beside its controls, by double selection
    (Belloni, Chernozhukov and Hansen, 2014): the groups that a search of the response selects, those that a search of
    the group's own columns selects, and the common factors of all columns, if there are any. A group without an effect
    could only look as if it had one by a group that both searches miss. A test is the F test for squared loss, and a
    score test for other losses; all rows select and test.

    Only groups that could be found are tested: those that the search of the response selects, and the first ones by
    the limit path and backward elimination. Others have the p-value one. p-values are adjusted for all groups, tested
    or not: by Holm's method, so that selecting all groups with a p-value of at most `level` makes any mistake with
    probability at most `level` (``control="fwer"``), or by Benjamini and Hochberg's, so that on average at most a share
    `level` of the selected groups are mistakes (``control="fdr"``). A mistake is a group that has no effect given all
    others. What is assumed: rows are independent; few groups have an effect, and few groups or common factors predict
    each group; and the model holds, with noise of one variance for squared loss. With several responses, a group has an
    effect if it has one on any of them.

    Parameters
    ----------
    model : GroupSparseRegressor, GroupSparseClassifier or GroupSparseCox
        It says what the groups or terms, the loss and the groups that are always in are. It does not have to be fitted,
        and is not changed; `selection` and `rule` are not used. Controls are selected under its `constraints`, and
        tests do without them: they are two-sided. With ``terms=``, every term is tested together with the terms that
        need it: ``age`` with its curve ``age~``, and ``age~`` alone.
    X, y
        As in `fit`.
    control : {"fwer", "fdr"}
        The familywise error, or the false discovery rate.
    level : float
        The largest acceptable error of that kind.
    n_first : int
        How many groups are tested at least, if not all are: each takes a search.
    sample_weight, offset : array-like, optional
        As in `fit`. In tests, weights say how precise rows are: they do not count rows.
    n_jobs, progress, verbose
        As in `covey.evidence.effect`; progress counts tests of groups.

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
    Belloni, Chernozhukov and Hansen, "Inference on treatment effects after selection among high-dimensional controls",
    2014.

    Examples
    --------
    >>> from covey import GroupSparseRegressor
    >>> from covey.datasets import make_group_sparse
    >>> from covey.evidence import test_groups
    >>> data = make_group_sparse(150, 180, 3, active=3, random_state=0)
    >>> tests = test_groups(GroupSparseRegressor(groups=3), data.X, data.y)
    >>> sorted(tests.selected_groups), bool(tests.p_values[3:].min() > 0.05)
    ([0, 1, 2], True)
    """
    problem = problem_of(model, X, y, sample_weight, offset)
    one_of(control, tuple(CONTROLS), "control")
    level, n_first = read_share(level, "level"), whole(n_first, "n_first")
    groups, candidates = problem.groups, np.setdiff1d(np.arange(problem.groups.n_groups), problem.always)
    if not candidates.size:
        raise ValueError("Every group is in always, and none is left to test: covey.evidence.effect tests them.")
    rows = np.flatnonzero(problem.weight > 0)
    room, sizes = _room(problem), groups.sizes[candidates]
    if (least := int(sizes.min())) > room:
        size = f"{least} column{'s' * (least > 1)}" + " beside those that are always in" * bool(problem.always)
        raise ValueError(
            f"{rows.size} rows of positive weight are too few to test a group of {size}: tested models have at most a "
            "third as many columns as rows, or events. Give more rows, or smaller groups."
        )
    work = rows.size * float(groups.sizes.sum()) ** 2 * candidates.size
    together = bool(sizes.sum() <= room and work <= MOST_WORK)
    if together:
        tested, beside = candidates.tolist(), _Controls(problem, rows, candidates.tolist())
    else:
        # criteria would count rows by their weights
        searched = replace(problem, weight=(problem.weight > 0).astype(float))
        selected = select(searched, CRITERION).groups
        found = [*selected, *ranked_groups(problem, min(n_first, candidates.size))]
        tested = [l for l in _with_ancestors(problem, found) if l not in problem.always]
        beside = _Controls(searched, rows, selected, _factors(problem))
    raw, n_separated, n_crowded, repeated = np.ones(groups.n_groups), 0, 0, list[Hashable]()
    tasks = [delayed(_test)(problem, l, rows, beside) for l in tested]
    with showing("test_groups", verbose):
        for l, (p, crowded) in zip(tested, finished(tasks, "group", n_jobs, progress), strict=True):
            raw[l] = 1.0 if p is None else p
            n_separated += p is None
            n_crowded += crowded
            if p == 1 and not crowded and l in beside.selected:  # exactly: its controls leave nothing of it
                repeated.append(groups.names[l])
    always = tuple(groups.names[l] for l in problem.always)
    remarks = _remarks(len(tested), n_separated, n_crowded, repeated, always, constrained=bool(problem.constraints))
    return GroupTests(
        groups, raw, np.isin(np.arange(groups.n_groups), tested), together, control, level, problem.parents,
        always_groups=always, remarks=remarks,
    )  # fmt: skip


test_groups.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test


@dataclass(frozen=True)
class _Controls:
    """What groups are tested beside: `selected` for the response, and what a search for their own columns selects.

    With `factors`, the scores of common factors, which may have no columns; without, `selected` has every group.
    """

    problem: Problem
    rows: NDArray[np.intp]
    selected: list[int]
    factors: FloatArray | None = None

    def of(self, family: list[int], D: FloatArray) -> list[int]:
        """The controls of columns D: of the response first, then of D; none of a family is one."""
        found = self.selected if self.factors is None else [*self.selected, *self._of_columns(family, D)]
        every = _with_ancestors(self.problem, [family[0], *found])
        return [l for l in every if l not in family and l not in self.problem.always]

    def _of_columns(self, family: list[int], D: FloatArray) -> list[int]:
        """The groups outside a family that predict what common factors leave of columns D."""
        assert self.factors is not None
        F = independent_columns(np.hstack([np.ones((len(D), 1)), self.factors]))
        left = D - F @ (F.T @ D)
        left = left[:, np.linalg.norm(left, axis=0) > NOTHING * np.linalg.norm(D, axis=0)]
        groups = self.problem.groups
        outside = ~np.isin(groups.members, members_of(self.problem, family))
        others, sizes = np.unique(np.repeat(np.arange(groups.n_groups), groups.sizes)[outside], return_counts=True)
        if not others.size or not left.size:
            return []
        target = np.zeros((len(self.problem.weight), left.shape[1]))
        target[self.rows] = left
        always = np.flatnonzero(np.isin(others, self.problem.always)).tolist()
        options = self.problem.options | {"fit_intercept": True, "factors": 0}
        design, weight = RepeatedColumns(self.problem.design, groups.members[outside]), self.problem.weight
        problem = Problem(design, target, weight, Groups.from_sizes(sizes), always, options, MultiSquared())
        return others[select(problem, CRITERION).groups].tolist()


def _with_ancestors(problem: Problem, groups: list[int]) -> list[int]:
    """Groups in their order, each after the terms that it needs."""
    return list(dict.fromkeys(one for l in groups for one in (*ancestors(problem.parents, l), l)))


def _test(problem: Problem, group: int, rows: NDArray[np.intp], beside: _Controls) -> tuple[float | None, bool]:
    """The p-value of a group beside its controls, None if no test can be made; and whether some did not fit in."""
    # a term is tested together with those in the model that need it
    family = [group, *(l for l in problem.parents if group in ancestors(problem.parents, l))]
    D = columns_of(problem, [l for l in family if l == group or l in beside.selected])[rows]
    controls, room = list[int](), _room(problem) - D.shape[1]
    if room < 0:
        return 1.0, True
    wanted = beside.of(family, D)
    for l in wanted:
        size = int(problem.groups.sizes[l])
        if size <= room:
            controls.append(l)
            room -= size
    has_intercept = problem.options["fit_intercept"] and problem.loss.has_intercept
    constant = np.ones((rows.size, int(has_intercept)))
    shared = np.empty((rows.size, 0)) if beside.factors is None else beside.factors
    base = np.hstack([constant, shared, columns_of(problem, [*problem.always, *controls])[rows]])
    return score_test(observations_on(problem, rows), base, D), len(controls) < len(wanted)


def _factors(problem: Problem) -> FloatArray:
    """The scores of the common factors of all columns, for rows of positive weight."""
    found = pose(problem, Parts.everything(problem.weight, count_rows(problem.weight)))
    rows = problem.weight > 0
    if found.factors is None:
        return np.empty((int(rows.sum()), 0))
    return np.asarray(on_host(found.factors.scores(found.design)), dtype=float)[rows]


def _room(problem: Problem) -> int:
    """How many columns a tested model may have beside those that are always in."""
    rows, informative = problem.weight > 0, problem.loss.informative(problem.y)
    share = 1.0 if informative is None else float(informative[rows].mean())
    return int(MOST_COLUMNS * share * np.count_nonzero(rows)) - int(problem.groups.sizes[problem.always].sum())


def _remarks(
    n_tested: int, n_separated: int, n_crowded: int, repeated: list[Hashable], always: tuple[Hashable, ...], *,
    constrained: bool,
) -> tuple[str, ...]:  # fmt: skip
    remarks = []
    if repeated:
        named = some(repeated, MOST_NAMED)
        remarks.append(f"Other groups repeat {named}, so no test can tell which has an effect: leave out all but one.")
    if n_crowded:
        remarks.append(
            f"{n_crowded} of {n_tested} tests had no room for all controls, because tested models have at most a third "
            "as many columns as rows, or events: a group may be missed, or found in the place of one that was left out."
        )
    if constrained:
        remarks.append("Tests are two-sided: an effect against a constraint of the model counts as an effect.")
    if n_separated:
        remarks.append(
            f"{n_separated} of {n_tested} tests could not be made, because the other groups separate the responses "
            "perfectly; they count with a p-value of one."
        )
    if always:
        remarks.append(
            f"Groups that are always in the model are not tested: {', '.join(map(str, always))}. For their effects use "
            "covey.evidence.effect."
        )
    return tuple(remarks)
