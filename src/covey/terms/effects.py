"""Effects: what a variable, or a pair of variables, adds to the linear predictor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from covey.designs import Design
from covey.layout import offsets
from covey.tables.complaint import listed, near
from covey.terms.expansion import Expansion
from covey.terms.kinds import free_name
from covey.terms.parts import Axis, Part, Raw, empty_cells, evaluate, find_parts, part_columns
from covey.validation import Array, FloatArray, whole

# Points of a curve, and of each side of a pair.
N_POINTS, N_SIDE = 200, 60
# Columns whose means are computed at a time.
TILE = 4096


@dataclass(frozen=True)
class Effect:
    """The contribution of a variable or a pair of variables to the linear predictor.

    It is centred: its weighted mean over the rows of fit is zero. The effects of all variables and pairs and the
    constant ``FittedTerms.constant`` add up to the linear predictor.

    Attributes
    ----------
    name : str
        Such as ``age`` or ``age:sex``.
    terms : tuple of str
        The selected terms that it adds up; none if the model does not have the variable or pair.
    axes : tuple of Axis
        One or two: name, kind, values, and where the rows of fit are (quantiles of a number, counts of levels).
    effect : ndarray of shape (n_values,) or (n_first, n_second)
        With one more axis if the model has several outputs.
    low, high : ndarray or None
        The smallest and the largest effect over the refits that were given, or the band of `covey.evidence.band`; else
        None.
    missing : ndarray or None
        The effect of a missing number or date, if it differs from that of the mean: a number, or one per output.
    outputs : tuple of str
        Names of several classes or responses.
    n_refits, n_in : int
        The number of refits that were given, and of those that have the variable or pair.
    note : str
        What a reader should know.
    empty : ndarray of bool, or None
        For a pair: the combinations of two levels that no row of fit has, of which the pair says nothing.
    """

    name: str
    terms: tuple[str, ...]
    axes: tuple[Axis, ...]
    effect: FloatArray
    low: FloatArray | None = None
    high: FloatArray | None = None
    missing: float | FloatArray | None = None
    outputs: tuple[str, ...] = ()
    n_refits: int = 0
    n_in: int = 0
    note: str = ""
    empty: NDArray[np.bool_] | None = None

    @property
    def values(self) -> Any:
        """The values of the variable; a pair of them for two variables."""
        return self.axes[0].values if len(self.axes) == 1 else tuple(axis.values for axis in self.axes)

    def by_output(self, values: FloatArray) -> FloatArray:
        """Effects with an axis of outputs at the end, also for a single output."""
        return values if self.outputs else values[..., None]

    def divided(self, by: FloatArray) -> Effect:
        """The effects on several outputs, each divided by a number, such as the standard deviation of a response."""
        low, high, missing = (None if part is None else part / by for part in (self.low, self.high, self.missing))
        return replace(self, effect=self.effect / by, low=low, high=high, missing=missing)

    @property
    def span(self) -> float:
        """The difference of the largest and the smallest effect."""
        return float(np.ptp(self.effect)) if self.effect.size else 0.0

    def to_frame(self) -> pd.DataFrame:
        """One row per value or pair of values (and output): the values, the effect, and the band if there is one."""
        grids = np.meshgrid(*(np.arange(len(axis.values)) for axis in self.axes), indexing="ij")
        m = max(1, len(self.outputs))
        table: dict[str, object] = {
            axis.name: np.repeat(np.asarray(axis.values)[grid.ravel()], m)
            for axis, grid in zip(self.axes, grids, strict=True)
        }
        if self.outputs:
            table[free_name("output", table)] = np.tile(np.array(self.outputs, dtype=object), grids[0].size)
        for name, values in (("effect", self.effect), ("low", self.low), ("high", self.high)):
            if values is not None:
                table[free_name(name, table)] = np.ravel(values)
        return pd.DataFrame(table)

    def __repr__(self) -> str:
        sizes = " x ".join(str(len(axis.values)) for axis in self.axes)
        low, high = (float(self.effect.min()), float(self.effect.max())) if self.effect.size else (0.0, 0.0)
        return f"Effect({self.name}: {sizes} values, {low:.4g} to {high:.4g}{f'; {self.note}' if self.note else ''})"


@dataclass(frozen=True)
class FittedTerms:
    """The terms of a fitted model: an expansion, coefficients, and the means of contributions over the rows of fit."""

    expansion: Expansion
    coef: FloatArray  # shape (n_outputs, n_columns)
    intercept: FloatArray  # shape (n_outputs,)
    selected: tuple[int, ...]  # the terms in the model, strongest or earliest first
    means: FloatArray  # the weighted mean of each selected term's contribution; shape (n_outputs, n_selected)
    outputs: tuple[str, ...] = ()  # names of several outputs

    @property
    def parts(self) -> list[Part]:
        """Variables first, then pairs."""
        return find_parts(self.expansion, self.selected)

    @property
    def constant(self) -> FloatArray:
        """The linear predictor where all effects are zero, one number per output."""
        return np.asarray(self.intercept + self.means.sum(axis=1))

    def mean(self, part: Part) -> FloatArray:
        """The mean of a part's contribution, one number per output."""
        places = [self.selected.index(term) for term in part.terms]
        return np.asarray(self.means[:, places].sum(axis=1))

    def find(self, names: Sequence[str]) -> Part:
        """The part of one or two variables; without terms if the model does not have it."""
        encoding = self.expansion.encoding
        mains = {term.name: j for j, term in enumerate(encoding.terms) if not term.parents}
        if not 1 <= len(names) <= 2 or not all(isinstance(name, str) for name in names):
            raise ValueError(f"effect takes the names of one or two variables, such as 'age', not {names!r}.")
        for name in names:
            if name not in mains:
                if name in encoding.dropped:
                    raise ValueError(f"The variable {name!r} is left out: {encoding.dropped[name]}.")
                raise ValueError(f"There is no variable {name!r}; {near(name, list(mains))}")
        roots = tuple(sorted(mains[name] for name in names))
        if len(set(roots)) < len(names):
            raise ValueError(f"effect: {names[0]!r} is given twice; name two different variables.")
        name = ":".join(encoding.terms[root].name for root in roots)
        nothing = Part(name, tuple(encoding.terms[root].variables[0] for root in roots), roots, ())
        return next((part for part in self.parts if part.roots == roots), nothing)

    def effect(
        self, *names: str, at: ArrayLike | None = None, main: bool = False, n: int | None = None,
        refits: Sequence[FittedTerms] = (),
    ) -> Effect:  # fmt: skip
        """The effect of a variable or a pair; the axes are in the order of the names."""
        part = self.find(names)
        if main and len(names) == 1:
            raise ValueError("main=True adds the effects of the two variables to that of their pair: name two.")
        terms = self.expansion.encoding.terms
        roots = sorted(part.roots, key=lambda root: names.index(terms[root].name))
        axes = self._axes(roots, at, n if n is None else whole(n, "n", least=2))
        values = self._values(part, axes, main)
        again = [one._again(names, axes, main) for one in refits]
        among = np.stack([_squeezed(one, self.outputs) for one, _ in again]) if again else None
        missing = None
        if len(axes) == 1 and axes[0].flagged:
            absent = np.array(["NaT"], dtype="datetime64[s]") if axes[0].kind == "date" else np.array([np.nan])
            gap = self._centred(part, [absent])[0]
            missing = gap if self.outputs else float(gap[0])
        empty = empty_cells(self.expansion, roots, [axis.raw for axis in axes]) if len(axes) == 2 else None
        note = "" if part.terms else f"the model does not have {part.name}, so its effect is zero"
        if part.terms and len(part.roots) == 1:
            pairs = [one.name for one in self.parts if part.roots[0] in one.roots and one != part]
            note = f"without {listed(pairs)}" if pairs else ""
        return Effect(
            part.name, tuple(self.expansion.terms[term].name for term in part.terms), axes,
            _squeezed(values, self.outputs), None if among is None else among.min(axis=0),
            None if among is None else among.max(axis=0), missing, self.outputs, len(refits),
            sum(has for _, has in again), note, empty,
        )  # fmt: skip

    def _axes(self, roots: Sequence[int], at: Any, n: int | None) -> tuple[Axis, ...]:
        """The axes of one or two main terms."""
        if at is None:
            size = n or (N_POINTS if len(roots) == 1 else N_SIDE)
            return tuple(Axis.of(self.expansion, root, size) for root in roots)
        given = (at,) if len(roots) == 1 else tuple(at)
        if len(given) != len(roots):
            names = " and of ".join(self.expansion.encoding.terms[root].name for root in roots)
            raise ValueError(f"at must hold the values of {names}, not {len(given)} arrays.")
        return tuple(Axis.at(self.expansion, root, values) for root, values in zip(roots, given, strict=True))

    def _again(self, names: Sequence[str], axes: tuple[Axis, ...], main: bool) -> tuple[FloatArray, bool]:
        """The effect of a refit, and whether it has the variable; a refit that left the variable out has none."""
        known = {term.name for term in self.expansion.encoding.terms if not term.parents}
        if not known.issuperset(names):
            return np.zeros((*(len(axis.values) for axis in axes), len(self.coef))), False
        part = self.find(names)
        return self._values(part, axes, main), bool(part.terms)

    def _values(self, part: Part, axes: tuple[Axis, ...], main: bool) -> FloatArray:
        """The centred effect on the axes, outputs last."""
        turned = len(axes) == 2 and axes[0].name != self.expansion.encoding.terms[part.roots[0]].name
        raw = [axis.raw for axis in (axes[::-1] if turned else axes)]
        values = self._centred(part, raw)
        for one in self.parts if main else ():
            if len(one.roots) == 1 and one.roots[0] in part.roots:
                side = part.roots.index(one.roots[0])
                values = values + np.expand_dims(self._centred(one, [raw[side]]), 1 - side)
        return values.swapaxes(0, 1) if turned else values

    def _centred(self, part: Part, raw: Sequence[Raw]) -> FloatArray:
        return evaluate(self.expansion, self.coef, part, raw) - self.mean(part)

    def contributions(self, design: Design) -> dict[str, FloatArray]:
        """The centred contribution of each part to each row; (rows, outputs)."""
        found: dict[str, FloatArray] = {}
        for part in self.parts:
            columns = part_columns(self.expansion, part)
            found[part.name] = np.asarray(design.take(columns) @ self.coef[:, columns].T) - self.mean(part)
        return found


def _squeezed(values: FloatArray, outputs: tuple[str, ...]) -> FloatArray:
    return values if outputs else values[..., 0]


def term_means(
    expansion: Expansion, design: Design, weight: Array, coef: FloatArray, selected: Sequence[int]
) -> FloatArray:
    """The weighted mean of each selected term's contribution over the rows of a design; (outputs, selected)."""
    share = np.asarray(weight, dtype=float) / float(np.sum(weight))
    if not len(selected):
        return np.zeros((len(coef), 0))
    columns = np.concatenate([expansion.terms[l].places for l in selected])
    tiles = [columns[k : k + TILE] for k in range(0, columns.size, TILE)]
    means = np.concatenate([share @ design.take(tile) for tile in tiles]) * coef[:, columns]
    starts = offsets([expansion.terms[l].width for l in selected])
    return np.asarray(np.add.reduceat(means, starts[:-1], axis=1))
