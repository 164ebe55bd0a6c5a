"""The check of the groups that are far: their gradients are computed now and then, at many events at once.

One product with X gives the gradients of all groups at all events since the last check. If a far group should have
woken, the path goes back to that event and the group becomes near. The set of near groups only grows, so two decisions
that differ in the last bit cannot alternate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from covey.arrays import host, namespace
from covey.designs import Models
from covey.layout import offsets, spans
from covey.search.active import ActiveSet
from covey.search.events import EXHAUSTED, TIE, EventPath
from covey.search.pairs import PairRace
from covey.search.problem import in_parts
from covey.search.table import Table
from covey.validation import ArrayOrTensor, FloatArray

__all__ = ["FarGroups"]

# Events between two checks of the far groups: with more, going back costs more; with fewer, X is read more often.
EVENTS_PER_CHECK = 12

# An X that is streamed is read as rarely as possible: for as many events as have their residuals and gradients in
# memory (256 MiB).
GRADIENTS = 2**25

# When a group was missing, the far groups that would wake next become near: this many columns per split, but at least
# LEAST_GROWTH groups.
GROWTH, LEAST_GROWTH = 80, 5

# If X is streamed or on a device, this many times as many columns: another missing group would be two more passes over
# X, which take most of the time there.
STREAMED_GROWTH = 4


class FarGroups:
    """The groups, and pairs that are no groups yet, that may wake on some paths and have no columns in the table.

    Parameters
    ----------
    table : Table
    active : list of ActiveSet
        The groups that are awake from the start, one set per split.
    racing : ndarray of bool, shape (n_groups,)
        The groups that may wake by themselves.
    inner : list of list of int
        For every split, the pairs of groups that are awake from the start.
    with_pairs : bool
        Whether pairs may wake that are no groups yet.

    Attributes
    ----------
    paths : list of EventPath
        The paths of these splits.
    """

    paths: list[EventPath]

    def __init__(
        self, table: Table, active: list[ActiveSet], racing: NDArray[np.bool_], inner: list[list[int]], with_pairs: bool
    ) -> None:
        self.table, self.posed, self.racing, self._inner = table, table.posed, racing, inner
        self.race: PairRace | None = None
        if self.posed.rates is not None and with_pairs:
            race = self.race = PairRace(self.posed.rates, len(active))
            # pairs of groups that are awake have become groups by now
            self.racing = np.append(racing, np.ones(self.posed.ranks.size - racing.size, dtype=bool))
            starts = [(self._rows_of(host(one.score())), self._rows_of(one.weight)) for one in active]
            if soon := {pair for start in starts for pair in race.soonest(*start)}:  # none if all pairs are groups
                table.add(self._meet(sorted(soon)))
        self._checked = [len(one.groups) for one in active]
        self._begun = list(self._checked)
        self._sums = np.zeros((len(active), self.posed.ranks.size))

    def weights(self, split: int) -> FloatArray:
        """The weights of the near groups on a split."""
        weights, inner = self.posed.weights.copy(), self._inner[split]
        if self.posed.inner_weights.size:
            weights[inner] = self.posed.inner_weights[self.posed.ranks[inner]]
        return weights[self.table.groups]

    @property
    def are_none(self) -> bool:
        """Whether all groups that may wake are near."""
        return self.race is None and (self.table.all_near or not self._mask().any())

    @property
    def events_per_check(self) -> int:
        """The events of every split between two checks."""
        design = self.posed.design
        if design.reads_columns:
            return EVENTS_PER_CHECK
        # if rows are compressed, residuals are computed where X is read
        size = design.shape[1] if self.table.compressed else max(design.shape) * self.posed.response.n_outputs
        return max(EVENTS_PER_CHECK, GRADIENTS // (len(self.paths) * size))

    @property
    def is_due(self) -> bool:
        """Whether the events since the last check are too many to wait for `is_revised`."""
        design = self.posed.design
        if design.reads_columns:
            return not (design.keeps_products and self.table.compressed)
        return any(
            len(path) - first >= self.events_per_check for path, first in zip(self.paths, self._checked, strict=True)
        )

    def check(self) -> bool:
        """Check the events since the last check; go back and return True if a group was missing at one of them."""
        # where products are kept, all events take one pass, and a few at a time take little memory
        most = EVENTS_PER_CHECK if self.posed.design.keeps_products else max(map(len, self.paths))
        while any(len(path) > first for first, path in zip(self._checked, self.paths, strict=True)):
            if self._check_next(most):
                return True
        return False

    def _check_next(self, most: int) -> bool:
        """The same for the first of these events."""
        events = [
            range(first, min(len(path), first + most)) for first, path in zip(self._checked, self.paths, strict=True)
        ]
        _, norms = self._gradients(events)
        rates = np.split(
            np.divide(norms, self.posed.weights, out=norms), np.cumsum([len(span) for span in events])[:-1]
        )
        far = self._mask()
        complete, next_rates, pairs = True, dict[int, FloatArray](), []
        for split, (path, span, of_events) in enumerate(zip(self.paths, events, rates, strict=True)):
            if not span:
                continue
            steps = np.diff([0.0, *path.times])[span.start : span.stop]
            good = self._n_in_time(split, far, of_events, steps)
            if self.race is not None:
                good, near = self._check_pairs(split, span, steps, good)
                pairs += near
            complete = complete and good == len(span)
            self._sums[split] += steps[:good] @ of_events[:good]
            self._checked[split] += good
            next_rates[split] = of_events[min(good, len(span) - 1)]
        if complete:
            return False
        for path, first in zip(self.paths, self._checked, strict=True):
            path.truncate(first)
        soon = [self._soonest(far, self._sums[split], rate) for split, rate in next_rates.items()]
        self._widen(np.unique(np.concatenate(soon)), sorted(set(pairs)))
        return True

    def _check_pairs(self, split: int, span: range, steps: FloatArray, good: int) -> tuple[int, list[tuple[int, int]]]:
        """How many of these events, at most `good`, no pair is late for, and the pairs that come next if one is."""
        assert self.race is not None
        active = self.paths[split].active
        weight, scores = self._rows_of(active.weight), self._rows_of(host(active.scores(span.start, span.stop - 1)))
        first, near = self.race.first_late(split, scores[:, :good], steps[:good], weight)
        self.race.accept(split, scores[:, :good], steps[:good], weight, first)
        return first, near

    def _n_in_time(self, split: int, far: NDArray[np.bool_], rates: FloatArray, steps: FloatArray) -> int:
        """How many of the next events to check come before any far group should have woken.

        A far group should have woken if it is earlier, or at the same time with a smaller position.
        """
        before, first = self._sums[split], self._checked[split]
        # sums only grow: few groups reach 1 at all
        some = np.flatnonzero(far & (before + steps @ rates > 1 - TIE))
        sums = before[some] + np.cumsum(steps[:, None] * rates[:, some], axis=0)
        earlier = np.vstack([before[some], sums[:-1]])
        woken = self.table.groups[self.paths[split].groups[first : first + steps.size]]
        tie = (sums > 1 - TIE) & (earlier <= 1 - TIE) & (some < woken[:, None])
        late = ((sums > 1 + TIE) | tie).any(axis=1)
        return int(late.argmax()) if late.any() else steps.size

    def _soonest(self, far: NDArray[np.bool_], sums: FloatArray, rates: FloatArray) -> NDArray[np.intp]:
        """The far groups that would wake next if the model did not change."""
        wait = np.full(rates.size, np.inf)
        np.divide(np.maximum(1 - sums, 0.0), rates, out=wait, where=far & (rates > 0))
        order = np.flatnonzero(np.isfinite(wait))
        design = self.posed.design
        growth = GROWTH if design.reads_columns and not design.on_device else STREAMED_GROWTH * GROWTH
        most = growth + LEAST_GROWTH  # every group has at least one column
        if order.size > most:
            order = order[wait[order] <= np.partition(wait[order], most)[most]]
        order = order[np.argsort(wait[order], kind="stable")]
        ranks = self.posed.ranks[order]
        return order[: max(LEAST_GROWTH, int(np.searchsorted(np.cumsum(ranks), growth)))]

    def check_ends(self, ended: Sequence[int]) -> bool:
        """Where the near groups have nothing left to explain, take in far groups that do; return whether any did."""
        events = [range(len(path), len(path) + (s in ended)) for s, path in enumerate(self.paths)]
        which, norms = self._gradients(events)
        if not which.size:
            return False
        rates, far = norms / self.posed.weights, self._mask()
        rounding = max(EXHAUSTED, 1e3 * float(np.finfo(self.posed.design.dtype).eps))
        first = np.array([self.paths[s].first_rate for s in which])
        if not (far & (rates > rounding * first[:, None]).any(axis=0)).any():
            return False
        soon = [self._soonest(far, self._sums[s], rate) for s, rate in zip(which, rates, strict=True)]
        self._widen(np.unique(np.concatenate(soon)))
        return True

    def _gradients(self, events: Sequence[range]) -> tuple[NDArray[np.intp], FloatArray]:
        """Gradient norms of all groups at the models on the first m groups of each split, for every m in its span.

        Returns the split of each model, and norms of shape (n_models, n_groups).
        """
        which = np.repeat(np.arange(len(events)), [len(span) for span in events])
        if not which.size:
            return which, np.empty((0, self.posed.ranks.size))
        if self.table.compressed:
            return which, self._residual_norms(events, which)
        found = [self.paths[s].active.scores(span.start, span.stop - 1) for s, span in enumerate(events) if span]
        scores = namespace(found[0]).concatenate(found, 1)
        return which, self.posed.gradient_norms(self._rows_of(scores))

    def _residual_norms(self, events: Sequence[range], which: NDArray[np.intp]) -> FloatArray:
        """The same if the table has no rows of X: residuals are computed where X is read."""
        posed, table = self.posed, self.table
        n, m = posed.design.shape[0], posed.response.n_outputs
        joined = sorted({l for path in self.paths for l in path.groups})
        place = {l: i for i, l in enumerate(joined)}
        columns, loadings, offset = posed.working.combination(table.groups[joined].tolist())
        starts, e, i = offsets(table.ranks[joined]), table.extras.shape[1], int(posed.intercept)
        W, scores, levels = np.zeros((which.size, m, loadings.shape[1])), np.zeros((which.size, m, e)), []
        models = [(self.paths[s].active, k) for s, span in enumerate(events) for k in span]
        for row, (active, k) in enumerate(models):
            coef = active.models[k].T
            at = spans(starts, np.array([place[l] for l in active.groups[:k]], dtype=np.intp))
            W[row][:, at] = coef[:, i + e :]
            scores[row] = coef[:, i : i + e]
            levels.append(coef[:, 0] if i else np.zeros(m))
        coefs, intercepts = W @ loadings.T, np.array(levels) - W @ offset
        if posed.factors is not None:
            extra = scores @ posed.factors.loadings.T
            columns, coefs = np.concatenate([columns, posed.factors.columns]), np.concatenate([coefs, extra], axis=2)
            intercepts = intercepts - extra @ posed.factors.means
        weights = [np.where(in_parts(posed.labels[:n], s.train), posed.response.weight[:n], 0.0) for s in posed.splits]
        squares: FloatArray | None = None
        y, step = posed.response.y[:n].reshape(n, m), max(1, GRADIENTS // (which.size * posed.design.shape[1]))
        for a in range(0, m, step):  # products with all responses may take too much memory
            some = slice(a, a + step)
            kept = table.kept if step >= m else None
            linear = Models(y[:, some], weights, which, columns, coefs[:, some], intercepts[:, some], kept)
            for product in posed.design.residual_products(linear).transpose(1, 0, 2):
                norms = posed.working.all_norms(product) if posed.cone is None else posed.cone.norms(product)
                np.square(norms, out=norms)
                squares = norms if squares is None else np.add(squares, norms, out=squares)
        assert squares is not None
        totals = np.array([weight.sum() for weight in weights])
        return np.divide(np.sqrt(squares, out=squares), totals[which][:, None], out=squares)

    def _widen(self, groups: NDArray[np.intp], pairs: Sequence[tuple[int, int]] = ()) -> None:
        """Make groups near, with the sums that they have accumulated so far; pairs become groups."""
        before, table = self.table.groups.size, self.table
        if pairs:
            met = self._meet(pairs)
            groups = np.concatenate([groups, met])
            self._sums = np.hstack([self._sums, np.zeros((len(self._sums), met.size))])
        changed = table.add(groups)
        for split, path in enumerate(self.paths):
            if pairs:
                self._sums[split, met] = self._accumulated(split, met)
            if changed:
                path.active.replace_rows(table.on_split(self.posed.splits[split])[0])
            new = table.groups[before:]
            path.widen(self.weights(split), table.groups, self._sums[split][new], self.racing[new])

    def _accumulated(self, split: int, groups: NDArray[np.intp]) -> FloatArray:
        """What near groups have accumulated on a split so far."""
        path, begun = self.paths[split], self._begun[split]
        if len(path) == begun:
            return np.zeros(groups.size)
        steps = np.diff([0.0, *path.times])[begun:]
        scores = path.active.scores(begun, len(path) - 1)
        places = [self.table.place[int(l)] for l in groups]
        return np.asarray(steps @ self.table.gradient_norms(scores)[:, places] / self.weights(split)[places])

    def _mask(self) -> NDArray[np.bool_]:
        """Which groups are far and may wake."""
        far = self.racing.copy()
        far[self.table.groups] = False
        return far

    def _rows_of(self, scores: ArrayOrTensor) -> ArrayOrTensor:
        """Scores or weights without those of the validation rows."""
        return scores[: self.posed.design.shape[0]]

    def _meet(self, pairs: Sequence[tuple[int, int]]) -> NDArray[np.intp]:
        """Make pairs groups; return their positions among all groups."""
        assert self.race is not None
        met = self.posed.meet(pairs)
        self.race.leave_out(pairs)
        self.racing = np.append(self.racing, np.ones(met.size, dtype=bool))
        return met
