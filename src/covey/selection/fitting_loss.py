"""Candidates for any other loss: elimination in its quadratic model chooses the sets, Newton's method fits them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.layout import offsets
from covey.limit.cleaning import eliminate
from covey.limit.dense_loss import DenseLossRows, LossKernel
from covey.limit.least_squares import DEPENDENT
from covey.limit.likelihood import SEPARATED_RIDGE, Likelihood
from covey.limit.lockstep import Near, Paths
from covey.limit.newton import Fit, minimise
from covey.limit.posed_loss import PosedLoss
from covey.limit.ridges import Penalties
from covey.progress import tell
from covey.selection.fitting import CleanedModels, Fitting, is_tried
from covey.selection.judge import CoupledScores, LossScores, Scores
from covey.selection.recipe import Cleaned
from covey.validation import FloatArray

__all__ = ["LossFitting"]

# All sets of up to this size are fitted, and larger ones along a geometric series.
ALL_SIZES = 12

# Elimination also starts from a prefix if the path is more than this many times as long; otherwise both would drop much
# the same groups.
LONGER = 1.5

# If the groups separate the responses perfectly, elimination uses the quadratic model of a fit with this ridge.
ELIMINATION_RIDGE = 0.03

# The most multiplications allowed for one Newton step on all columns.
MOST_WORK = 2e9


class LossFitting(Fitting):
    """Maximum likelihood and ridges; tables hold linear predictors, (n_rows, n_outputs, n_models)."""

    def __init__(self, near: Near, n_always: int) -> None:
        super().__init__(near, n_always)
        # classes and counts of real data were predicted better if rare categories are shrunk the most
        loss = near.rows.response.loss
        self.penalties = Penalties(near.posed.problem, equal_shares=loss.known_dispersion)
        # models fitted on each split, reused in later rounds
        self._known: dict[int, dict[tuple[tuple[int, ...], float], tuple[FloatArray, bool]]] = {}

    def scores(self, split: int) -> Scores:
        """The rows that a split is scored on."""
        rows, own = self.near.rows, self.posed.splits[split]
        judges = rows.judging(own)
        response = rows.response.rows(judges)
        if not response.loss.coupled:
            return LossScores(response)
        return CoupledScores(response, np.isin(rows.part[judges], own.test))

    def knots(self, paths: Paths, split: int, first: int, last: int) -> FloatArray:
        """Predictors of the models after some events."""
        objective, begun = paths.objective(split), len(paths.starts[split])
        judges = self.near.rows.judging(self.posed.splits[split])
        made = [objective.predictor(begun + m)[judges] for m in range(first, last + 1)]
        return np.stack(made, axis=-1)

    def cleaned(
        self, paths: Paths, round_: int, prefixes: Sequence[Sequence[int]], ridges: Sequence[float]
    ) -> list[CleanedModels]:
        """Sets of groups by elimination, fitted by maximum likelihood and ridges."""
        # for all groups at once, so that a design on disk is read only once
        self.penalties.learn([l for split in range(len(prefixes)) for l in paths.groups(split)])
        made = []
        for split, lengths in enumerate(prefixes):
            known = self._known.setdefault(split, {})
            fits = _Fits(self, paths.objective(split), paths.groups(split), known)
            for prefix in lengths:
                if prefix == lengths[-1] or lengths[-1] > LONGER * prefix:
                    fits.add(prefix, round_, ridges)
            made.append(fits.models())
            tell(f"candidates of round {round_ + 1}", "fit", split + 1, len(prefixes))
        return made

    def predictions(self, models: CleanedModels, split: int) -> FloatArray:
        """Predictors of candidates."""
        rows = self.near.rows
        judges = rows.judging(self.posed.splits[split])
        Z = rows.Z[np.ix_(judges, models.columns)]
        n, m, k = models.W.shape
        flat = Z @ models.W.reshape(n * m, k).T + models.levels.ravel()
        return np.asarray(flat.reshape(len(judges), n, m).transpose(0, 2, 1))

    def hold_rows(self) -> None:
        """Nothing to do: rows are never compressed."""

    @property
    def slow_dense(self) -> bool:
        """True: every Newton step needs a factorisation."""
        return True

    def can_be_dense(self) -> bool:
        """Whether models on all columns are affordable: a Newton step costs n min(n, p)^2."""
        design = self.posed.problem.design
        n, r = design.shape[0], int(self.posed.problem.ranks.sum())
        return (self.near.all or bool(design.reads_columns)) and n * min(n, r) ** 2 <= MOST_WORK

    def dense_rows(self, groups: Any) -> DenseLossRows:
        """Some groups on columns of unit variance."""
        rows = self.near.rows if groups is self.near.groups else self.posed.rows(groups)
        return DenseLossRows(rows, groups, self.penalties, self.posed.intercept)

    def kernel(self, shares: FloatArray) -> LossKernel:
        """Inner products of the rows."""
        assert isinstance(self.posed, PosedLoss)
        return LossKernel(self.posed, self.penalties, shares)


class _Fits:
    """Fits the candidates of one path."""

    def __init__(
        self,
        fitting: LossFitting,
        objective: Likelihood,
        groups: Sequence[int],
        known: dict[tuple[tuple[int, ...], float], tuple[FloatArray, bool]],
    ) -> None:
        self.objective, self.n_always, self.groups, self._stored = objective, fitting.n_always, groups, known
        self.tolerance = objective.rows.tolerance(objective.split)
        self.response, rows = objective.response, objective.rows
        self.intercept = int(fitting.posed.intercept)
        self.columns = rows.columns(objective.joined)
        self.starts = offsets(rows.ranks[objective.joined])
        self.A = np.hstack([np.ones((len(rows.Z), self.intercept)), rows.Z[:, self.columns]])
        # the quadratic form of ridges, in units of the null model's curvature
        sizes = [np.arange(rank) for rank in rows.ranks[objective.joined]]
        self.M = fitting.penalties.block(groups, sizes) * objective.curvature
        first = int(self.starts[self.n_always])
        self.M[:first, :first] = 0.0
        self.recipes: list[Cleaned] = []
        self.coefs: list[FloatArray] = []
        self.sizes: list[int] = []
        self.sets: dict[Cleaned, list[int]] = {}
        self.separated: set[Cleaned] = set()
        self._known: dict[tuple[tuple[int, ...], float], FloatArray] = {}
        # sets of groups whose minimum lies at infinity, as it does for every superset
        self._infinite: set[tuple[int, ...]] = set()
        self._gone: list[frozenset[int]] = []
        self._ranks: dict[tuple[int, ...], int] = {}
        # the centred Gram matrix, needed if columns are linearly dependent
        self._gram: FloatArray | None = None
        if objective.deficient:
            q = self.response.weight / self.response.total_weight
            self._means = q @ self.A[:, self.intercept :] * self.intercept
            centred = self.A[:, self.intercept :] - self._means
            self._gram = centred.T @ (q[:, None] * centred)

    def add(self, prefix: int, round_: int, ridges: Sequence[float]) -> None:
        """Eliminate from the first `prefix` groups, and fit the nested sets."""
        k, i = int(self.starts[prefix]), self.intercept
        begin = np.zeros((i + k, self.response.n_outputs))
        known = self.objective.coefs[prefix]
        begin[i:] = known[self.objective.n_extras :]
        begin[:i] = known[:i]
        everything = list(range(prefix))
        coef, ridge = self._fitted(everything, begin), 0.0
        if tuple(everything) in self._infinite:
            # with perfect separation there is no curvature left
            ridge = ELIMINATION_RIDGE
            coef = self._fitted(everything, coef, ridge)
        K, c = self._quadratic(everything, coef, ridge)
        dropped, _ = eliminate(K, c, self.starts[: prefix + 1], self.n_always)
        nested = [everything]
        for group in dropped:
            nested.append([l for l in nested[-1] if l != group])
        # from the smallest set on: each fit starts from the one before, and separation carries over to larger sets
        coefs: dict[float, FloatArray] = {}
        for place, left in reversed(list(enumerate(nested))):
            size = len(left) - self.n_always
            recipe = Cleaned(round_, prefix, size, 0.0)
            tried = size > 0 and is_tried(size, place)
            if not (tried or size <= ALL_SIZES):
                continue
            for ridge in (0.0, *ridges) if tried else (0.0,):
                start = coefs.get(ridge, self._null)
                made = self._fitted(left, start[np.concatenate([np.arange(i), i + self._at(left)])], ridge)
                self._put(recipe._replace(ridge=ridge), left, made)
                coefs[ridge] = self.coefs[-1]
            self.sets[recipe] = left
            if tuple(left) in self._infinite:
                self.separated.add(recipe)

    @cached_property
    def _null(self) -> FloatArray:
        """The null model."""
        out = np.zeros((self.A.shape[1], self.response.n_outputs))
        out[: self.intercept] = self.response.null
        return out

    def _put(self, recipe: Cleaned, left: Sequence[int], coef: FloatArray) -> None:
        wide = np.zeros((self.A.shape[1], self.response.n_outputs))
        wide[: self.intercept] = coef[: self.intercept]
        wide[self.intercept + self._at(left)] = coef[self.intercept :]
        self.recipes.append(recipe)
        self.coefs.append(wide)
        self.sizes.append(self._ranks.get(tuple(left), len(coef) - self.intercept))

    def _at(self, left: Sequence[int]) -> NDArray[np.intp]:
        """The positions of the columns of some groups of the path."""
        return np.concatenate(
            [np.arange(self.starts[l], self.starts[l + 1]) for l in left] or [np.empty(0, dtype=np.intp)]
        )

    def _fitted(self, left: Sequence[int], start: FloatArray, ridge: float = 0.0) -> FloatArray:
        """The minimiser on some groups, with a small ridge if it lies at infinity."""
        key = (tuple(left), ridge)
        if key in self._known:
            return self._known[key]
        at = self._at(left)
        # another path may have the same groups in a different order
        order = np.argsort([self.groups[l] for l in left], kind="stable")
        stored = (tuple(int(self.groups[left[j]]) for j in order), ridge)
        turn = np.concatenate([np.arange(self.intercept), self._turned(left, order)])
        if stored in self._stored and self._gram is None:
            kept, infinite = self._stored[stored]
            coef = np.empty_like(kept)
            coef[turn] = kept
            if infinite:
                self._note_infinite(left)
            self._known[key] = coef
            return coef
        A = self.A[:, np.concatenate([np.arange(self.intercept), self.intercept + at])]
        fit: Fit | None = None
        if not ridge and not any(gone <= set(left) for gone in self._gone):
            fit = minimise(self.response, A, None, start, self.tolerance)
        if fit is None or fit.status != "converged":
            penalty = np.zeros((A.shape[1], A.shape[1]))
            inner = penalty[self.intercept :, self.intercept :]
            if ridge:
                inner += ridge * self.M[np.ix_(at, at)]
            else:
                inner[np.diag_indices(at.size)] = SEPARATED_RIDGE * self.objective.curvature
                self._note_infinite(left)
            fit = minimise(self.response, A, penalty, start, self.tolerance)
        coef = fit.coef
        if self._gram is not None and not ridge:
            coef, self._ranks[tuple(left)] = self._least(at, coef)
        self._known[key] = coef
        self._stored[stored] = coef[turn], tuple(left) in self._infinite
        return coef

    def _note_infinite(self, left: Sequence[int]) -> None:
        self._infinite.add(tuple(left))
        self._gone.append(frozenset(left))

    def _turned(self, left: Sequence[int], order: NDArray[np.intp]) -> NDArray[np.intp]:
        """The rows of the coefficients that belong to some groups, taken in another order."""
        sizes = np.diff(self.starts)[list(left)]
        begins = self.intercept + offsets(sizes)[:-1]
        own = [np.arange(begins[j], begins[j] + sizes[j]) for j in order]
        return np.concatenate([*own, np.empty(0, dtype=np.intp)]).astype(np.intp)

    def _least(self, at: NDArray[np.intp], coef: FloatArray) -> tuple[FloatArray, int]:
        """The least-norm coefficients that give the same predictions, and the rank of their columns."""
        assert self._gram is not None
        i, K = self.intercept, self._gram[np.ix_(at, at)]
        own, _, rank, _ = np.linalg.lstsq(K, K @ coef[i:], rcond=DEPENDENT)
        levels = coef[:i] + (self._means[at] @ (coef[i:] - own))[None, :][:i]
        return np.vstack([levels, own]), int(rank)

    def _quadratic(self, left: Sequence[int], coef: FloatArray, ridge: float) -> tuple[FloatArray, FloatArray]:
        """The second derivative of the loss on some groups, intercept eliminated, and its product with `coef`."""
        i = self.intercept
        A = self.A[:, : i + int(self.starts[len(left)])]
        H = self.response.gram(A @ coef, A)
        K = H[i:, i:]
        if i and H[0, 0] > 0:
            K = K - np.outer(H[1:, 0], H[0, 1:]) / H[0, 0]
        if ridge:
            K = K + ridge * self.M[: len(K), : len(K)]
        return K, K @ coef[i:]

    def models(self) -> CleanedModels:
        """All candidates."""
        made = np.array(self.coefs).transpose(0, 2, 1)
        i = self.intercept
        levels = made[:, :, 0] if i else np.zeros(made.shape[:2])
        return CleanedModels(
            self.recipes, made[:, :, i:], levels, self.columns, self.sizes, self.sets, frozenset(self.separated)
        )
