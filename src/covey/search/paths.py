"""Limit paths of several splits of the rows, advanced together.

Events are computed among the near groups, whose rows are in a table: one product gives the gradients of all splits.
Then one product with X checks all far groups at these events. If a far group should have woken, the path goes back to
that event and the group becomes near. The set of near groups only grows, so two decisions that differ in the last bit
cannot alternate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.arrays import host, namespace, stack
from covey.designs import Models
from covey.search.active import ActiveSet
from covey.search.events import EXHAUSTED, TIE, EventPath
from covey.search.pairs import PairRace
from covey.search.problem import in_parts
from covey.search.table import Table
from covey.validation import ArrayOrTensor, FloatArray

__all__ = ["Knots", "Paths"]

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


@dataclass(frozen=True)
class Knots:
    """Models of a path before its first event and after each event, in working coordinates.

    Attributes
    ----------
    groups : list of int
        The groups in the order in which they woke up, as positions among all groups.
    times : list of float
        One per model.
    W, levels : ndarray, shape (n_models, n_outputs, k) and (n_models, n_outputs)
        Coefficients of the groups, and intercepts.
    separated : list of bool
        Whether the minimum lies at infinity, for each model.
    exhausted : bool
        Whether nothing is left to explain after the last event.
    """

    groups: list[int]
    times: list[float]
    W: FloatArray
    levels: FloatArray
    separated: list[bool]
    exhausted: bool


class Paths:
    """One limit path per split.

    Parameters
    ----------
    table : Table
    starts : sequence of sequences of int
        For every split, the groups that are awake from the start, as positions among all groups.
    mains : bool
        Whether only main groups may wake.
    late : bool
        Whether late groups may wake besides: those of the groups that are awake from the start.

    Attributes
    ----------
    paths : list of EventPath
        Groups are positions among the near ones.
    late : bool
    exhausted : set of int
        The splits on which nothing is left to explain: they stay as they are.
    n_columns : int
        Where all paths have ended; set by `end_at`.
    """

    n_columns: int

    def __init__(self, table: Table, starts: Sequence[Sequence[int]], mains: bool = False, late: bool = False) -> None:
        self.table, self.posed, self.late = table, table.posed, late
        self.racing = np.arange(self.posed.ranks.size) < (self.posed.n_mains if mains else np.inf)
        self.racing[self.posed.late] = False
        if not mains:
            self.racing[list(self.posed.pieces)] = False
            table.add_all()
        more = [self.posed.late_after(groups) if late else [] for groups in starts]
        self._inner = [[] if mains else self.posed.pairs_of(groups) for groups in starts]
        near = [l for groups in (*starts, *more, *self._inner) for l in groups]
        table.add(np.unique(np.array(near, dtype=np.intp)))
        self.starts = [[table.place[int(l)] for l in groups] for groups in starts]
        active, null = list[ActiveSet](), list[ArrayOrTensor]()
        for split, start in zip(self.posed.splits, self.starts, strict=True):
            one = ActiveSet(table, table.on_split(split)[0], rough=not split.everything)
            null.append(one.score())
            one.refit(*start)
            active.append(one)
        self.race: PairRace | None = None
        if self.posed.rates is not None and not mains:
            self.race = PairRace(self.posed.rates, len(starts))
            soon = [
                pair
                for one in active
                for pair in self.race.soonest(self._rows_of(host(one.score())), self._weight(one))
            ]
            if soon:  # none are left once all pairs are groups
                table.add(self.posed.meet(sorted(set(soon))))
                self.race.leave_out(soon)
            self.racing = np.append(self.racing, np.ones(self.posed.ranks.size - self.racing.size, dtype=bool))
        self.paths: list[EventPath] = []
        for one, first_norms, some in zip(active, table.gradient_norms(stack(null, 1)), more, strict=True):
            racing = self.racing[table.groups] | np.isin(table.groups, some)
            self.paths.append(EventPath(one, self._weights(len(self.paths)), table.groups, first_norms, racing))
        self.exhausted: set[int] = set()
        self._same = 0
        self._checked = [len(groups) for groups in starts]
        self._sums = np.zeros((len(starts), self.posed.ranks.size))

    def _weights(self, split: int) -> FloatArray:
        """The weights of the near groups on a split."""
        weights, inner = self.posed.weights.copy(), self._inner[split]
        if self.posed.inner_weights.size:
            weights[inner] = self.posed.inner_weights[self.posed.ranks[inner]]
        return weights[self.table.groups]

    def _rows_of(self, scores: ArrayOrTensor) -> ArrayOrTensor:
        """Scores without those of the validation rows."""
        return scores[: self.posed.design.shape[0]]

    def _weight(self, active: ActiveSet) -> FloatArray:
        """The weights of the training rows of X."""
        return self._rows_of(active.weight)

    @property
    def all_near(self) -> bool:
        """Whether all groups that may wake are near."""
        return self.race is None and (self.table.all_near or not self._far().any())

    def active(self, split: int) -> ActiveSet:
        """The awake groups of a split."""
        return self.paths[split].active

    def groups(self, split: int) -> list[int]:
        """The awake groups of a split, as positions among all groups, in the order in which they woke up."""
        return self.table.groups[self.paths[split].groups].tolist()

    def knots(self, split: int) -> Knots:
        """The models of a split before its first event and after each event, without common factors."""
        active, begun, i = self.active(split).without_factors(), len(self.starts[split]), int(self.posed.intercept)
        models = active.coefficients(begun, len(active.groups))
        levels = models[:, :, 0] if i else np.zeros(models.shape[:2])
        times = [0.0, *self.paths[split].times[begun:]]
        exhausted = split in self.exhausted
        return Knots(self.groups(split), times, models[:, :, i:], levels, active.separated[begun:], exhausted)

    def predictors(self, split: int, which: NDArray[np.intp], first: int, last: int) -> FloatArray:
        """Predictors of the models after the first m events of a split, for every m from first to last, on some rows.

        Where nothing was left to explain earlier, those of its last model; shape (n_rows, n_outputs, n_models).
        """
        active, begun, done = self.active(split), len(self.starts[split]), self._n_events(split)
        known = active.predictors(which, begun + min(first, done), begun + min(last, done))
        return known[:, :, np.minimum(np.arange(first, last + 1), done) - min(first, done)]

    @property
    def ended(self) -> bool:
        """Whether nothing is left to explain on any split."""
        return len(self.exhausted) == len(self.paths)

    def n_events(self) -> int:
        """The number of events that every split has had that is not exhausted; if all are, the largest number.

        Groups that were awake from the start do not count.
        """
        n_events = [self._n_events(s) for s in range(len(self.paths))]
        return min((n for s, n in enumerate(n_events) if s not in self.exhausted), default=max(n_events))

    def n_wakings(self, n_events: int) -> list[int]:
        """How many of the first events took time on the path of all rows, for every number of events up to `n_events`.

        A group and its parents wake at the same time, and so do groups that are tied, up to round-off error. Events
        that only other splits have take time.
        """
        times = np.array([0.0, *self.paths[-1].times[len(self.starts[-1]) :]])[: n_events + 1]
        took = np.append(np.diff(times) > TIE * times[1:], np.ones(n_events + 1 - times.size, dtype=bool))
        return [0, *np.cumsum(took).tolist()]

    def advance(self, n_events: int, *, checked: bool = True) -> int:
        """Advance every split to `n_events` events, or until nothing is left to explain.

        If they need not be `checked`, the events of a streamed X may wait for `is_revised`. Returns how many events
        from before are still the same.
        """
        self._same = self.n_events()
        while self.n_events() < n_events and not self.ended:
            done = self.n_events()
            target = n_events if self.all_near else min(n_events, done + self._events_per_check)
            self.exhausted = set(self._wake([target] * len(self.paths)))
            if checked:
                self.is_revised()
        return self._same

    def width_after(self, n_events: int) -> int:
        """The columns after some events on all rows; if nothing was left to explain earlier, the most on any split.

        A split may need groups to explain its rows that all rows do without.
        """
        last = len(self.paths) - 1
        splits = range(last, last + 1) if self._n_events(last) >= n_events else range(len(self.paths))
        return max(self.width(s, len(self.starts[s]) + min(n_events, self._n_events(s))) for s in splits)

    def end_at(self, n_columns: int) -> None:
        """End the path of every split where its groups would have more than `n_columns` columns."""
        self.n_columns = n_columns
        short = {s for s in range(len(self.paths)) if self.width(s) < n_columns}
        while short or self.is_revised():
            short = short or {s for s in range(len(self.paths)) if self.width(s) < n_columns}
            most = [self._n_events(s) + self._events_per_check if s in short else 0 for s in range(len(self.paths))]
            ended = self._wake(most, n_columns)
            short = {s for s in short.difference(ended) if self.width(s) <= n_columns}
        for s, path in enumerate(self.paths):
            length = max(self.length(s, n_columns), len(self.starts[s]))
            if length < len(path):
                self.exhausted.discard(s)
            path.truncate(length)

    def width(self, split: int, n_groups: int = -1) -> int:
        """The number of columns of the first awake groups of a split, by default of all."""
        active = self.active(split)
        return active.widths[n_groups] - active.n_first

    def length(self, split: int, n_columns: int) -> int:
        """How many of the first awake groups of a split have at most `n_columns` columns together."""
        active = self.active(split)
        return int(np.searchsorted(np.array(active.widths) - active.n_first, n_columns, side="right")) - 1

    def _n_events(self, split: int) -> int:
        return len(self.paths[split]) - len(self.starts[split])

    def _wake(self, most: Sequence[int], n_columns: float = np.inf) -> list[int]:
        """Wake groups up to the most events of each split, while there are at most `n_columns` columns.

        Far groups are checked at the end. Returns the splits on which nothing was left to explain.
        """
        splits = range(len(self.paths))
        while True:
            ended: list[int] = []
            while pending := [
                s for s in splits if s not in ended and self._n_events(s) < most[s] and self.width(s) <= n_columns
            ]:
                scores = stack([self.active(s).score() for s in pending], 1)
                norms = self.table.gradient_norms(scores)
                for s, of_split in zip(pending, norms, strict=True):
                    woken = self.paths[s].next_groups(of_split, self.table.parents)
                    if not woken:
                        ended.append(s)
                    for group in woken:
                        self.active(s).refit(group)
            if self.all_near or not (ended or self._is_due):
                return ended
            # a far group may be missing at an event, or may be left to explain after the last one
            if not (self._check() or self._check_ends(ended)):
                return ended

    # ------------------------------------------------------------------ far groups

    @property
    def _events_per_check(self) -> int:
        """The events of every split between two checks."""
        design = self.posed.design
        if design.reads_columns:
            return EVENTS_PER_CHECK
        # if rows are compressed, residuals are computed where X is read
        size = design.shape[1] if self.table.compressed else max(design.shape) * self.posed.response.n_outputs
        return max(EVENTS_PER_CHECK, GRADIENTS // (len(self.paths) * size))

    @property
    def _is_due(self) -> bool:
        """Whether the events since the last check are too many to wait for `is_revised`."""
        design = self.posed.design
        if design.reads_columns:
            return not (design.keeps_products and self.table.compressed)
        return any(
            len(path) - first >= self._events_per_check for path, first in zip(self.paths, self._checked, strict=True)
        )

    def is_revised(self) -> bool:
        """Check the events that have not been checked yet; return whether a path went back."""
        return not self.all_near and self._check()

    def _check(self) -> bool:
        """Check all groups at the events since the last check; go back and return True if one was missing."""
        # where products are kept, all events take one pass, and a few at a time take little memory
        most = EVENTS_PER_CHECK if self.posed.design.keeps_products else max(map(len, self.paths))
        while any(len(path) > first for first, path in zip(self._checked, self.paths, strict=True)):
            if self._check_next(most):
                return True
        return False

    def _check_next(self, most: int) -> bool:
        """The same for the first of these events."""
        spans = [
            range(first, min(len(path), first + most)) for first, path in zip(self._checked, self.paths, strict=True)
        ]
        _, norms = self._gradients(spans)
        rates = np.split(np.divide(norms, self.posed.weights, out=norms), np.cumsum([len(span) for span in spans])[:-1])
        far = self._far()
        complete, next_rates, pairs = True, dict[int, FloatArray](), []
        for split, (path, span, of_events) in enumerate(zip(self.paths, spans, rates, strict=True)):
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
        self.exhausted = set()
        self._same = min(self._same, self.n_events())
        soon = [self._soonest(far, self._sums[split], rate) for split, rate in next_rates.items()]
        self._widen(np.unique(np.concatenate(soon)), sorted(set(pairs)))
        return True

    def _check_pairs(self, split: int, span: range, steps: FloatArray, good: int) -> tuple[int, list[tuple[int, int]]]:
        """How many of these events, at most `good`, no pair is late for, and the pairs that come next if one is."""
        assert self.race is not None
        weight = self._weight(self.active(split))
        scores = self._rows_of(host(self.active(split).scores(span.start, span.stop - 1)))
        first, near = self.race.first_late(split, scores[:, :good], steps[:good], weight)
        self.race.accept(split, scores[:, :good], steps[:good], weight, first)
        return first, near

    def _far(self) -> NDArray[np.bool_]:
        far = self.racing.copy()
        far[self.table.groups] = False
        return far

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

    def _check_ends(self, ended: Sequence[int]) -> bool:
        """Where the near groups have nothing left to explain, take in far groups that do; return whether any did."""
        spans = [range(len(path), len(path) + (s in ended)) for s, path in enumerate(self.paths)]
        which, norms = self._gradients(spans)
        if not which.size:
            return False
        rates, far = norms / self.posed.weights, self._far()
        rounding = max(EXHAUSTED, 1e3 * float(np.finfo(self.posed.design.dtype).eps))
        first = np.array([self.paths[s].first_rate for s in which])
        if not (far & (rates > rounding * first[:, None]).any(axis=0)).any():
            return False
        soon = [self._soonest(far, self._sums[s], rate) for s, rate in zip(which, rates, strict=True)]
        self._widen(np.unique(np.concatenate(soon)))
        return True

    def _gradients(self, spans: Sequence[range]) -> tuple[NDArray[np.intp], FloatArray]:
        """Gradient norms of all groups at the models on the first m groups of each split, for every m in its span.

        Returns the split of each model, and norms of shape (n_models, n_groups).
        """
        which = np.repeat(np.arange(len(spans)), [len(span) for span in spans])
        if not which.size:
            return which, np.empty((0, self.posed.ranks.size))
        if self.table.compressed:
            return which, self._residual_norms(spans, which)
        found = [self.active(split).scores(span.start, span.stop - 1) for split, span in enumerate(spans) if span]
        scores = namespace(found[0]).concatenate(found, 1)
        return which, self.posed.gradient_norms(self._rows_of(scores))

    def _residual_norms(self, spans: Sequence[range], which: NDArray[np.intp]) -> FloatArray:
        """The same if the table has no rows of X: residuals are computed where X is read."""
        posed, table = self.posed, self.table
        n, m = posed.design.shape[0], posed.response.n_outputs
        joined = sorted({l for path in self.paths for l in path.groups})
        place = {l: i for i, l in enumerate(joined)}
        columns, loadings, offset = posed.working.combination(table.groups[joined].tolist())
        starts, e, i = table.starts, table.extras.shape[1], int(posed.intercept)
        first = np.cumsum([0, *table.ranks[joined]])
        W, scores, levels = np.zeros((which.size, m, loadings.shape[1])), np.zeros((which.size, m, e)), []
        models = [(self.active(s), k) for s, span in enumerate(spans) for k in span]
        for row, (active, k) in enumerate(models):
            coef = active.models[k].T
            at = [np.arange(first[place[l]], first[place[l]] + starts[l + 1] - starts[l]) for l in active.groups[:k]]
            W[row][:, np.concatenate([*at, np.empty(0, dtype=np.intp)]).astype(np.intp)] = coef[:, i + e :]
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
            assert self.race is not None
            met = self.posed.meet(pairs)
            self.race.leave_out(pairs)
            groups = np.concatenate([groups, met])
            self.racing = np.append(self.racing, np.ones(met.size, dtype=bool))
            self._sums = np.hstack([self._sums, np.zeros((len(self._sums), met.size))])
        changed = table.add(groups)
        for split, path in enumerate(self.paths):
            if pairs:
                self._sums[split, met] = self._accumulated(split, met)
            if changed:
                path.active.replace_rows(table.on_split(self.posed.splits[split])[0])
            new = table.groups[before:]
            path.widen(self._weights(split), table.groups, self._sums[split][new], self.racing[new])

    def _accumulated(self, split: int, groups: NDArray[np.intp]) -> FloatArray:
        """What near groups have accumulated on a split so far."""
        path, begun = self.paths[split], len(self.starts[split])
        if len(path) == begun:
            return np.zeros(groups.size)
        steps = np.diff([0.0, *path.times])[begun:]
        scores = path.active.scores(begun, len(path) - 1)
        places = [self.table.place[int(l)] for l in groups]
        return np.asarray(steps @ self.table.gradient_norms(scores)[:, places] / self._weights(split)[places])
