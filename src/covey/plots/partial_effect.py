"""PartialEffectDisplay: a group's contribution to the prediction against its underlying variable."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from covey.designs import as_design
from covey.plots.style import GREY, MARK, Display, colour, fitted_step, make_axes, plain, quiet, unit_of
from covey.validation import FloatArray, MatrixLike, on_host, pandas_frame


class PartialEffectDisplay(Display):
    """The effect of one group on the linear predictor: a curve for a number, one dot per level of a category.

    It is centred: zero is the mean over the drawn rows.

    Parameters
    ----------
    values : array-like of shape (n_rows,)
        The variable.
    effect : ndarray of shape (n_rows,) or (n_rows, n_outputs)
    name : str
        The name of the variable.
    outputs : sequence of str, optional
        Names of the classes or responses, if there are several.
    unit : str
        The scale of the effect.

    Attributes
    ----------
    figure_, ax_
        After `plot`.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import SplineTransformer
    >>> from covey import GroupSparseRegressor, TermGroups
    >>> from covey.plots import PartialEffectDisplay
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"age": rng.uniform(20, 60, 100), "dose": rng.uniform(0, 1, 100)})
    >>> splines = SplineTransformer().set_output(transform="pandas")
    >>> model = make_pipeline(splines, GroupSparseRegressor(groups=TermGroups(table.columns)))
    >>> display = PartialEffectDisplay.from_estimator(model.fit(table, np.sin(table["age"] / 8)), table, "age")
    >>> display.ax_.get_xlabel()
    'age'
    """

    def __init__(
        self, values: ArrayLike, effect: FloatArray, name: str = "", outputs: Sequence[object] = (),
        unit: str = "",
    ) -> None:  # fmt: skip
        self.values, self.effect = pd.Series(np.asarray(values)), np.asarray(effect)
        if len(self.values) != len(self.effect):
            raise ValueError(f"values has {len(self.values)} entries, but X has {len(self.effect)} rows.")
        self.name, self.outputs, self.unit = name, outputs, unit

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, X: MatrixLike, group: Hashable = None, *, values: ArrayLike | None = None,
        ax: Axes | None = None,
    ) -> PartialEffectDisplay:  # fmt: skip
        """Draw the effect of a group of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted `GroupSparseRegressor`, `GroupSparseClassifier` or `GroupSparseCox`, also one from
            `from_formula`; or a pipeline that ends in one.
        X : as for the estimator's `predict`
        group : str or int, optional
            The name of a group; by default the strongest one.
        values : array-like of shape (n_rows,), optional
            The variable that the group expands. Optional if X contains it, as a column that a pipeline or a
            formula expands into the group, or as the group's only column.
        ax : Axes, optional
        """
        last = fitted_step(estimator)
        if hasattr(last, "expansion_"):
            raise ValueError("A variable may have several terms: use plot_terms of the model, which draws their sum.")
        if group is None:
            group = last.groups_.names[int(np.argmax(last.group_strengths_))]
        given = pandas_frame(X)
        expanded = estimator[:-1].transform(given) if last is not estimator else given
        name = str(group)
        if values is None:
            name, values = _variable(last, given, expanded, group)
        return cls(values, last.partial_effect(expanded, group), name, last._outputs(), unit_of(last)).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> PartialEffectDisplay:
        """Draw."""
        self.figure_, (self.ax_,) = make_axes(ax, 1, width=5.2, height=3.6)
        effects = self.effect[:, None] if self.effect.ndim == 1 else self.effect
        numeric = pd.api.types.is_numeric_dtype(self.values) and not pd.api.types.is_bool_dtype(self.values)
        if numeric:
            order = np.argsort(self.values.to_numpy(), kind="stable")
            x = self.values.to_numpy()[order]
        else:
            known = self.values.astype(object).where(self.values.notna(), "missing")
            levels, first = np.unique(known.to_numpy().astype(str), return_index=True)
            order, x = first, np.arange(len(levels))
            self.ax_.set_xticks(x, [plain(level) for level in levels])
        for k in range(effects.shape[1]):
            label = None if effects.shape[1] == 1 else plain(self.outputs[k] if self.outputs else k)
            self.ax_.plot(x, effects[order, k], "-" if numeric else "o", color=colour(k), lw=1.6, label=label)
        self.ax_.axhline(0.0, color=MARK, lw=0.8, ls=":")
        if numeric:  # a rug that shows the rows
            self.ax_.plot(
                x, np.zeros(len(x)), "|", color=GREY, ms=6, transform=self.ax_.get_xaxis_transform(), clip_on=False
            )
        if effects.shape[1] > 1:
            self.ax_.legend(fontsize=8, frameon=False)
        quiet(self.ax_, xlabel=plain(self.name), ylabel=f"effect on the {self.unit or 'linear predictor'}")
        return self


def _variable(model: BaseEstimator, given: MatrixLike, expanded: MatrixLike, group: Hashable) -> tuple[str, Any]:
    """The name and values of the variable that a group expands."""
    columns = model.groups_[group]
    if isinstance(given, pd.DataFrame):
        names = [str(name) for name in given.columns]
        if str(group) in names:
            return str(group), given.iloc[:, names.index(str(group))]
        inside = [name for name in names if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", str(group))]
        if hasattr(model, "formula_") and len(inside) == 1:
            return inside[0], given[inside[0]]
    if len(columns) == 1:
        j = int(columns[0])
        if isinstance(expanded, pd.DataFrame):
            return str(expanded.columns[j]), expanded.iloc[:, j]
        return str(group), np.ravel(on_host(as_design(expanded).take(columns)))
    raise ValueError(
        f"Group {group!r} has {len(columns)} columns, and X has no column of its name: give values=, the variable that "
        "it expands, one entry per row."
    )
