"""The problem in working coordinates, which all paths of a search share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from covey.arrays import host, namespace
from covey.designs import Design, Factors, ProductColumns, RepeatedColumns, count_factors, find_factors
from covey.groups import Groups
from covey.losses import Loss
from covey.losses.responses import weighted_median
from covey.preprocess import WorkingProblem, prepare
from covey.preprocess.working import read_weights, standard_response
from covey.search.constraints.cone import Cone
from covey.search.observations import Observations
from covey.search.pairs import AllPairs, PairRates
from covey.search.problem import Parts, Problem, Split, Validation, ancestors
from covey.search.settings import SETTINGS, Settings
from covey.validation import ArrayOrTensor, FloatArray, boolean, whole

__all__ = ["Posed", "pose"]


@dataclass
class Posed:
    """The data that all limit paths of one search share.

    Attributes
    ----------
    working : WorkingProblem
        Working coordinates, from all rows.
    response : Observations
        All rows in working units, with weights that add up to one; then the validation rows, if any.
    labels, counts, splits, validation
        As in `Parts`; the labels include the validation rows.
    intercept : bool
    factors : Factors or None
        Common factors that are in every model while the path decides which group comes next.
    level, scale : ndarray, shape (n_outputs of the loss,)
        The response was centred at `level` and divided by `scale`; 0 and 1 if the loss depends on its units.
    settings : Settings
    parents : mapping
        The parents of groups that have any.
    n_mains : int
        The number of main groups, which come first; others join the race after a first path without them.
    pieces : mapping
        The pieces of groups that have any. They race without these groups, after a path of the groups.
    pairs, rates : AllPairs and PairRates, or None
        Pairs that are too many to be groups, and their race.
    pair_weights, inner_weights : ndarray
        The weight of a pair, by its dimension, and that of a pair of variables that are in the model from the start.
    met : list
        The pairs that have become groups, as positions in `pairs`, in the order of the groups.
    late : list of int
        Groups that wake only on paths that start with their parents.
    cone : Cone or None
        The constraints, if there are any.
    roughness : ndarray or None
        As in `Problem`; columns of pairs that have become groups since have one.
    """

    working: WorkingProblem
    response: Observations
    labels: NDArray[np.intp]
    counts: list[float]
    splits: list[Split]
    validation: Validation | None
    intercept: bool
    factors: Factors | None
    level: FloatArray
    scale: FloatArray
    settings: Settings
    parents: dict[int, Sequence[int]]
    n_mains: int
    pieces: Mapping[int, Sequence[int]] = field(default_factory=dict)
    pairs: AllPairs | None = None
    rates: PairRates | None = None
    pair_weights: FloatArray = field(default_factory=lambda: np.ones(2))
    inner_weights: FloatArray = field(default_factory=lambda: np.empty(0))
    met: list[tuple[int, int]] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    cone: Cone | None = None
    roughness: FloatArray | None = None

    @cached_property
    def _group_of(self) -> dict[int, int]:
        return {piece: l for l, pieces in self.pieces.items() for piece in pieces}

    def divided(self, groups: Sequence[int]) -> list[int]:
        """Some groups, with the pieces of those that have any in their place."""
        return [piece for l in groups for piece in self.pieces.get(l, (l,))]

    def joined(self, groups: Sequence[int]) -> list[int]:
        """Some groups, with the group of a piece in its place."""
        return list(dict.fromkeys(self._group_of.get(l, l) for l in groups)) if self.pieces else list(groups)

    @property
    def centred(self) -> bool:
        """Whether columns are centred."""
        return self.intercept or not self.response.loss.has_intercept

    def meet(self, pairs: Sequence[tuple[int, int]]) -> NDArray[np.intp]:
        """Make pairs that are near to waking groups like all others; return their positions among all groups."""
        assert self.pairs is not None
        assert isinstance(self.design, ProductColumns)
        first, (left, right, sizes) = self.ranks.size, self.pairs.products(pairs)
        columns = self.design.add(left, right)
        if self.validation is not None:
            assert isinstance(self.validation.design, ProductColumns)
            self.validation.design.add(left, right)
        products = RepeatedColumns(self.design, columns)
        working, _ = prepare(
            products, np.zeros(products.shape[0]), Groups.from_sizes(sizes), fit_intercept=self.centred,
            sample_weight=self.working.q,
        )  # fmt: skip
        self.working.append(working, columns)
        self.working.weights = np.append(self.weights, self.pair_weights[working.ranks])
        groups = np.arange(first, first + len(pairs))
        for group, (a, b) in zip(groups.tolist(), pairs, strict=True):
            self.parents[group] = (int(self.pairs.groups[a]), int(self.pairs.groups[b]))
        self.met.extend(pairs)
        return groups

    def pairs_of(self, groups: Sequence[int]) -> list[int]:
        """The pairs of some groups; those that are no groups yet become groups."""
        inside = set(groups)
        if not inside:
            return []
        if self.pairs is not None and self.rates is not None:
            members = [a for a, group in enumerate(self.pairs.groups.tolist()) if group in inside]
            new = sorted(set(combinations(members, 2)).difference(self.met, self.pairs.left_out))
            if new:
                self.meet(new)
                self.rates.leave_out(new)
        return [l for l, parents in self.parents.items() if len(parents) > 1 and inside.issuperset(parents)]

    @property
    def n_groups(self) -> int:
        """The number of all groups, pairs that are none yet included."""
        return self.ranks.size + (0 if self.pairs is None else len(self.pairs) - len(self.met))

    def ancestors(self, group: int) -> list[int]:
        """The parents of a group, and theirs; parents before children."""
        return ancestors(self.parents, group)

    def late_after(self, groups: Sequence[int]) -> list[int]:
        """The late groups that may wake on a path that starts with these groups."""
        awake = set(groups)
        return [l for l in self.late if l not in awake and awake.issuperset(self.ancestors(l)[:-1])]

    def parents_among(self, groups: Sequence[int]) -> list[list[int]]:
        """The parents of each of some groups, as positions among them; empty if no group has parents at all."""
        if not self.parents:
            return []
        place = {l: i for i, l in enumerate(groups)}
        return [[place[p] for p in self.parents.get(l, ())] for l in groups]

    def dealt(self, parts: Parts) -> Posed:
        """The same problem with the rows in other parts."""
        return replace(self, labels=parts.labels, counts=parts.counts, splits=parts.splits)

    @property
    def design(self) -> Design:
        """X."""
        return self.working.design

    @property
    def weights(self) -> FloatArray:
        """The weights of the groups in the race."""
        return self.working.weights

    @property
    def ranks(self) -> NDArray[np.intp]:
        """The number of working columns of each group."""
        return self.working.ranks

    @property
    def all_main(self) -> bool:
        """Whether there are only main groups."""
        return self.n_mains + len(self.late) == self.ranks.size and self.pairs is None

    def is_for_mains(self, round_: int) -> bool:
        """Whether a round of the search is for main groups alone, because others join later."""
        return round_ == 0 and not self.all_main

    def n_rows(self, split: Split) -> float:
        """The number of rows that the models of a split are fitted on; a row of weight two counts as two rows."""
        return sum(self.counts[k] for k in split.train)

    def gradient_norms(self, scores: ArrayOrTensor) -> FloatArray:
        """The norm of ``X' scores`` on each group in working coordinates, over all outputs, in one pass over X.

        Parameters
        ----------
        scores : array, shape (n_rows, n_models, n_outputs)

        Returns
        -------
        ndarray, shape (n_models, n_groups)
        """
        n, k, m = scores.shape
        rows = namespace(scores).moveaxis(scores, 0, 2).reshape(k * m, n)
        if self.cone is not None:
            norms = self.cone.norms(np.asarray(self.design.correlate(host(rows))))
        else:
            norms = self.design.gradient_norms(self.working, rows)
        return norms if m == 1 else np.sqrt(np.square(norms).reshape(k, m, -1).sum(axis=1))

    def null_norms(self) -> FloatArray:
        """The norm of the gradient on each group at the null model, after common factors; shape (n_groups,)."""
        if self.factors is None and self.response.n_outputs == 1:
            return self.working.group_norms(self.working.correlation)
        n = self.design.shape[0]
        rows = self.response.rows(np.arange(n))
        scores = rows.score(rows.at_null(self.intercept))
        if self.factors is not None:
            F = self.factors.scores(self.design)
            scores = scores - rows.weight[:, None] * (F @ (F.T @ scores))
        return self.gradient_norms(scores[:, None])[0]

    def to_user(
        self, groups: Sequence[int], W: FloatArray, levels: FloatArray
    ) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
        """Convert models on some groups to models on the columns of X.

        Parameters
        ----------
        groups : sequence of int
        W, levels : ndarray, shape (..., n_contrasts, k) and (..., n_contrasts)
            Coefficients of the working columns, group by group, and intercepts.

        Returns
        -------
        columns, coef, intercept : shape (p,), (..., n_outputs, p) and (..., n_outputs)
        """
        columns, loadings, offset = self.working.combination(list(groups))
        coef = self.outputs(W @ loadings.T)
        coef = coef if self.cone is None else self.cone.snapped(groups, coef)
        return columns, coef, self.levels(levels - W @ offset)

    def outputs(self, W: FloatArray) -> FloatArray:
        """Convert coefficients of contrasts to outputs in the user's units; shape (..., n_outputs, k)."""
        return np.asarray((self.response.contrasts.T @ W) * self.scale[:, None])

    @property
    def strength_units(self) -> FloatArray:
        """What strengths of outputs are divided by where they are combined: several responses have their own units."""
        return self.scale if self.response.loss.several else np.ones_like(self.scale)

    @property
    def error_unit(self) -> float:
        """What errors are multiplied by in the user's units: squared errors of one response have units, others none."""
        loss = self.response.loss
        return float(self.scale[0] ** 2) if loss.quadratic and not loss.vector else 1.0

    def levels(self, levels: FloatArray) -> FloatArray:
        """Convert intercepts of contrasts to outputs in the user's units; shape (..., n_outputs)."""
        return np.asarray(self.level + (levels @ self.response.contrasts) * self.scale)


def pose(problem: Problem, parts: Parts, settings: Settings = SETTINGS) -> Posed:
    """Compute working coordinates, common factors and group weights."""
    design, groups, validation, loss = problem.design, problem.groups, parts.validation, problem.loss
    if problem.pairs is not None:
        # pairs that become groups are added to a copy: another search of the same problem starts without them
        design = copy(design)
        validation = validation if validation is None else replace(validation, design=copy(validation.design))
    if groups.overlapping:
        # every group gets a copy of a shared column, and the coefficients of the copies add up
        design = RepeatedColumns(design, groups.members)
        if validation is not None:
            validation = replace(validation, design=RepeatedColumns(validation.design, groups.members))
        groups = groups.apart()
    fit_intercept = boolean(problem.options["fit_intercept"], "fit_intercept")
    weight = np.asarray(problem.weight, dtype=float)
    has_intercept = fit_intercept and loss.has_intercept
    response, level, scale, total = _working_response(problem, weight, has_intercept)
    if loss.quadratic:
        shown = np.asarray(problem.y, dtype=float).reshape(len(weight), -1)[:, 0]
        shown = shown if problem.offset is None else shown - _matrix(problem.offset, len(weight))[:, 0]
    else:
        # the gradient at the null model equals the gradient of the squared loss for these values
        scores = response.score(response.at_null(has_intercept))[:, 0]
        shown = np.divide(scores, response.weight, out=np.zeros_like(scores), where=response.weight > 0)
    working, _ = prepare(
        design, shown, groups, standardize=problem.options["standardize"], fit_intercept=fit_intercept,
        sample_weight=weight,
    )  # fmt: skip
    labels = parts.labels
    if validation is not None:
        judges = _in_units(loss, validation.y, np.asarray(validation.weight) / total, validation.offset, level, scale)
        pairs = zip(_arrays(response), _arrays(judges), strict=True)
        response = Observations(loss, *(np.concatenate(pair) for pair in pairs))
        labels = np.concatenate([labels, np.where(judges.weight > 0, len(parts.counts) - 1, -1)])
    working.weights, pair_weights, inner_weights = _read_weights(problem, working.ranks, settings.first_groups)
    parents, n_mains = dict(problem.parents), groups.n_groups if problem.n_mains is None else problem.n_mains
    posed = Posed(
        working, response, labels, parts.counts, parts.splits, validation, has_intercept,
        _read_factors(problem.options["factors"], working, groups, fit_intercept), level, scale, settings, parents,
        n_mains, problem.pieces, problem.pairs, pair_weights=pair_weights, inner_weights=inner_weights,
        late=list(problem.late),
        cone=Cone(problem.constraints, working, scale) if problem.constraints else None,
        roughness=problem.roughness,
    )  # fmt: skip
    if problem.pairs is not None:
        posed.rates = PairRates(design, problem.pairs, working.q, posed.centred, pair_weights)
    return posed


def _read_weights(problem: Problem, ranks: NDArray[np.intp], first: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The weights of the groups, of pairs that are no groups yet, and of pairs of variables that are in the model.

    Pairs have weights by their dimension. Those of variables that are in the model are few, and compete like variables.
    """
    given = problem.groups.in_order(problem.options["group_weights"], "group_weights")
    families, pairs = problem.families, problem.pairs
    counts = np.zeros(0, dtype=np.intp) if pairs is None else pairs.count_dimensions()
    if families is None or not (given is None or isinstance(given, str)):
        return read_weights(given, ranks, first, families), np.ones(counts.size), np.empty(0)
    dimensions = np.arange(max(counts.size, int(ranks.max(initial=0)) + 1))
    families = np.repeat(
        [*families, 0 if pairs is None else pairs.family, families[0]],
        [*np.ones_like(families), counts.size, dimensions.size],
    )
    weights = read_weights(
        given, np.concatenate([ranks, dimensions[: counts.size], dimensions]), first, families,
        np.concatenate([np.ones(ranks.size), counts, np.zeros(dimensions.size)]),
    )  # fmt: skip
    every, of_pairs, inner = np.split(weights, np.cumsum([ranks.size, counts.size]))
    return every, of_pairs, inner


def _arrays(response: Observations) -> tuple[FloatArray, ...]:
    return response.y, response.weight, response.offset, response.one


def _matrix(offset: FloatArray | None, n_rows: int) -> FloatArray:
    return np.asarray(offset, dtype=float).reshape(n_rows, -1)


def _working_response(
    problem: Problem, weight: FloatArray, intercept: bool
) -> tuple[Observations, FloatArray, FloatArray, float]:
    """The response in working units, its level and scale, and the total weight of the rows."""
    loss, n, total = problem.loss, len(weight), float(weight.sum())
    y, q = np.asarray(problem.y, dtype=float), weight / total
    m = y.shape[1] if loss.vector else 1
    level, scale = np.zeros(m), np.ones(m)
    if loss.identity_link:
        shown = y.reshape(n, m) if problem.offset is None else y.reshape(n, m) - _matrix(problem.offset, n)
        if loss.quadratic:
            standard = [standard_response(column, q, centre=intercept) for column in shown.T]
            level, scale = np.array([one[1] for one in standard]), np.array([one[2] for one in standard])
            # not `_in_units`: here the round-off error of a constant response is zero
            units = np.column_stack([one[0] for one in standard]).reshape(y.shape)
            return Observations(loss, units, q, np.zeros((n, m)), np.ones(n)), level, scale, total
        if intercept:
            # a large level would cost the residuals digits; outliers do not move the median
            level = np.array([weighted_median(column, q) for column in shown.T])
    return _in_units(loss, y, q, problem.offset, level, scale), level, scale, total


def _in_units(
    loss: Loss, y: FloatArray, weight: FloatArray, offset: FloatArray | None, level: FloatArray, scale: FloatArray
) -> Observations:
    """A response in working units; under a quadratic loss the offset is subtracted from it."""
    y, n = np.asarray(y, dtype=float), len(weight)
    shift = np.zeros((n, level.size))
    if offset is not None:
        shift += _matrix(offset, n)
    if loss.identity_link:
        shape, shift = y.shape, shift / scale
        y = (y.reshape(n, -1) - level) / scale
        if loss.quadratic:
            y, shift = y - shift, np.zeros_like(shift)
        y = y.reshape(shape)
    return Observations(loss, y, weight, shift, np.ones(n))


def _read_factors(factors: int | str, working: WorkingProblem, groups: Groups, intercept: bool) -> Factors | None:
    """The common factors requested by ``factors=``; None if there are none."""
    design, q = working.design, working.q
    means = np.zeros(design.shape[1])
    means[working.layout.members] = working.mean
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
