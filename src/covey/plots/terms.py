"""TermsDisplay: the effects of the selected variables and pairs, one small panel each."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from sklearn.base import BaseEstimator

from covey.estimators.term_views import Refits
from covey.plots.style import MARK, AxesLike, colour, fitted_step, make_axes, plain, quiet, unit_of
from covey.plots.term_panels import Dots, common_limits, draw_panel
from covey.terms.dates import Date
from covey.terms.effects import Effect
from covey.terms.encoding import Encoding
from covey.terms.reading import as_frame
from covey.validation import MatrixLike

# The most panels of one figure; the largest effects come first.
MOST_PANELS = 24
# Rows that are drawn into a heat map.
MOST_DOTS = 500


class TermsDisplay:
    """The effects of variables and pairs on the linear predictor, one panel each.

    A number is a curve with ticks at evenly spaced quantiles of its values, a category has a point per level with its
    number of rows, a pair of numbers is a heat map with contours, a number and a category one curve per level. All
    effects are centred. Panels of single variables share one scale, and so do those with curves per level. A pair is
    drawn with the effects that its two variables have alone.

    Parameters
    ----------
    effects : sequence of Effect
        As `effect` of an estimator returns them.
    unit : str
        The scale of the effects.
    dots : DataFrame, optional
        Rows to draw into heat maps.

    Attributes
    ----------
    figure_, axes_
        After `plot`; one axes per panel.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from covey import GroupSparseRegressor
    >>> from covey.plots import TermsDisplay
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"age": rng.uniform(20, 60, 200), "site": rng.choice(list("ab"), 200)})
    >>> y = np.sin(table["age"] / 8) + (table["site"] == "a") + 0.1 * rng.standard_normal(200)
    >>> display = TermsDisplay.from_estimator(GroupSparseRegressor(terms="auto").fit(table, y))
    >>> [ax.get_title(loc="left") for ax in display.axes_]
    ['age', 'site']
    """

    figure_: Figure
    axes_: list[Axes]

    def __init__(self, effects: Sequence[Effect], unit: str = "", dots: Any = None) -> None:
        self.effects, self.unit, self.dots = list(effects), unit, dots
        self.n_left = 0

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, names: Iterable[str] | None = None, *, X: MatrixLike | None = None,
        refits: Refits = None, ax: AxesLike = None,
    ) -> TermsDisplay:  # fmt: skip
        """Draw the effects of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Any of covey's three, fitted with ``terms=``; or a pipeline that ends in one.
        names : iterable of str, optional
            Variables and pairs such as ``"age:sex"``; by default all that were selected, the largest effects first, at
            most 24.
        X : table, optional
            Rows to draw into the heat maps of pairs, such as those of fit.
        refits : NestedScore or list of estimators, optional
            Models of which the bands show the range, as in `effect` of the estimator.
        ax : list of Axes, optional
            One per panel; a pair has a panel per output.
        """
        last = fitted_step(estimator)
        if not hasattr(last, "expansion_"):
            raise ValueError(f"This {type(last).__name__} has no terms: fit it with terms=, such as terms='auto'.")
        parts = {part.name: part for part in last.fitted_terms_.parts}
        wanted = list(parts) if names is None else [names] if isinstance(names, str) else list(names)
        effects = []
        terms = last.encoding_.terms
        for name in wanted:
            if name in parts:
                roots = [terms[root].name for root in parts[name].roots]
            else:
                roots = _variables(name, {term.name for term in terms if not term.parents})
            effect = last.effect(*roots, main=len(roots) == 2, refits=refits)
            effects.append(effect.divided(last.response_deviations_) if last.loss_.several else effect)
        if names is None:
            effects.sort(key=lambda one: (len(one.axes), -one.span))
        dots = None if X is None else _read(last.encoding_, X)
        unit = "responses (in SD)" if last.loss_.several else unit_of(last)
        display = cls(effects[:MOST_PANELS], unit, dots)
        display.n_left = len(effects) - len(display.effects)
        return display.plot(ax=ax)

    def plot(self, *, ax: AxesLike = None) -> TermsDisplay:
        """Draw."""
        panels = [(one, k) for one in self.effects for k in range(len(one.outputs) if len(one.axes) == 2 else 1) or [0]]
        self.figure_, self.axes_ = _grid(len(panels)) if ax is None else make_axes(ax, len(panels))
        flat = [one for one in self.effects if len(one.axes) == 1]
        lines = [one for one in self.effects if len(one.axes) == 2 and sum(axis.has_levels for axis in one.axes) == 1]
        scales = {1: common_limits(flat), 2: common_limits(lines)}
        effect_label = f"effect on the {self.unit or 'linear predictor'}"
        for axes, (one, k) in zip(self.axes_, panels, strict=True):
            across, up = draw_panel(axes, one, k, scales[len(one.axes)], self._dots(one), effect_label)
            levels = [axis.has_levels for axis in one.axes]
            # levels with long names leave less room
            longest = 10 if levels == [True, True] else 18 if len(levels) == 2 else 20 if levels[0] else 32
            title = " × ".join(plain(axis.name, longest) for axis in one.axes)
            if one.outputs and len(levels) == 2:
                title += f": {plain(one.outputs[k], 8)}"
            quiet(axes, title=title, xlabel=across, ylabel=up)
            axes.tick_params(labelsize=8)
            axes.xaxis.label.set_fontsize(8)
            axes.yaxis.label.set_fontsize(8)
        self._notes(ax is None)
        return self

    def _dots(self, one: Effect) -> Dots:
        """Rows for a heat map, evenly taken from the table."""
        names = [axis.name for axis in one.axes]
        if len(names) < 2 or self.dots is None or not set(names) <= set(self.dots.columns):
            return None
        rows = self.dots[names].dropna()
        rows = rows.iloc[:: max(1, len(rows) // MOST_DOTS)]
        return rows[names[0]].to_numpy(), rows[names[1]].to_numpy()

    def _notes(self, alone: bool) -> None:
        """A legend of the outputs, and a line that says what bands are and what is not drawn."""
        outputs = self.effects[0].outputs if self.effects else ()
        if outputs and alone:
            handles = [Line2D([], [], color=colour(k), lw=2, label=plain(name)) for k, name in enumerate(outputs)]
            self.figure_.legend(
                handles=handles, loc="outside upper right", ncols=min(len(handles), 6), frameon=False, fontsize=8
            )
        n_refits = max((one.n_refits for one in self.effects), default=0)
        said = [f"bands: the range of {n_refits} refits, each without some rows"] if n_refits else []
        # those of covey.evidence.band say what they are
        said += {one.note.partition(",")[0]: None for one in self.effects if one.low is not None and not one.n_refits}
        pairs = any(len(one.axes) == 2 for one in self.effects)
        said += ["pairs are drawn with the effects of both variables"] if pairs else []
        empty = any(one.empty is not None and one.empty.any() for one in self.effects)
        said += ["blank: no row has both levels"] if empty else []
        said += [f"{self.n_left} smaller effect{'s' * (self.n_left > 1)} not drawn"] if self.n_left else []
        if said and alone:
            self.figure_.supxlabel("; ".join(said), fontsize=8, color=MARK)


def _read(encoding: Encoding, X: MatrixLike) -> pd.DataFrame:
    """The numbers and dates of a table, as `fit` reads them."""
    frame, read = as_frame(X, encoding.variables), dict[str, Any]()
    for name in [term.name for term in encoding.terms if term.kind == "linear" and term.name in frame]:
        variable = encoding.variable(name)
        values = variable.read(frame[name])
        read[name] = pd.to_datetime(values, unit="D") if isinstance(variable, Date) else values
    return pd.DataFrame(read)


def _variables(name: str, known: Container[str]) -> list[str]:
    """The two variables of a pair that was not selected, or is named in the other order; else the name alone.

    >>> _variables("sex:age", {"age", "sex"}), _variables("a:b", {"a:b", "a", "b"}), _variables("a:c", {"a", "b"})
    (['sex', 'age'], ['a:b'], ['a:c'])
    """
    splits = [[name[:j], name[j + 1 :]] for j, letter in enumerate(name) if letter == ":" and name not in known]
    return next((pair for pair in splits if pair[0] in known and pair[1] in known), [name])


def _grid(n: int) -> tuple[Figure, list[Axes]]:
    """`n` axes in rows of at most four."""
    across = n if n <= 3 else 2 if n == 4 else 3 if n <= 12 else 4
    down = -(-max(n, 1) // max(across, 1))
    figure = plt.figure(figsize=(max(3.6 * across, 4.4), 2.7 * down), layout="constrained")
    # a panel of its own layout each: long labels of one must not narrow the others
    parts = np.ravel(figure.subfigures(down, max(across, 1), squeeze=False))
    return figure, [part.subplots() for part in parts[:n]]
