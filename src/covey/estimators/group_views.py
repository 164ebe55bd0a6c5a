"""What a fitted model shows of its groups: a table, coefficients, contributions, and a summary in sentences."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from covey.estimators.reading import read_rows
from covey.estimators.term_views import TermViews, as_terms
from covey.search.agreement import fold_counts, split_warning
from covey.search.chosen import FittedModel, binding, interchangeable, judged, price_of_sparsity
from covey.summary import Summary, digits
from covey.tables.complaint import in_sentence
from covey.validation import FloatArray, IntArray, MatrixLike

if TYPE_CHECKING:
    from covey.groups import Groups
    from covey.path import Path
    from covey.terms.expansion import Expansion

# A model that leaves less than this share of the error on real data may have been told the response.
PERFECT = 1e-4

# The most pairs of interchangeable groups that a summary names.
MOST_PAIRS = 5


class GroupViews(TermViews):
    """The attributes and methods that describe the groups of any fitted model."""

    path_: Path
    group_norms_: FloatArray
    group_strengths_: FloatArray
    n_features_in_: int
    within: str | None

    def group_table(self) -> pd.DataFrame:
        """The selected groups, strongest first.

        Returns
        -------
        DataFrame
            Indexed by group, with the columns ``size``, ``columns`` (how many have non-zero coefficients; only with
            `within`), ``strength`` (the standard deviation of its contribution to the prediction, with the default
            ``standardize="group"``; for several responses in units of their standard deviations, followed by
            ``strength_NAME`` for each response in its own units, instead of ``norm``), ``norm`` (of its coefficients),
            ``woke_up`` (its time on the path; NaN for a group that joined the model otherwise, in a later round or
            because all are in), and, if there were folds, ``folds`` (in how many of them it was selected).
        """
        check_is_fitted(self)
        table = self._facts([self.groups_.position(name) for name in self.selected_groups_])
        table.index = pd.Index(self.selected_groups_, name="group")
        if self.within is not None:
            used = np.asarray(np.atleast_2d(self.coef_).any(axis=0))
            table.insert(1, "columns", [int(used[self.groups_[name]].sum()) for name in self.selected_groups_])
        return table

    def _facts(self, groups: Sequence[int]) -> pd.DataFrame:
        """The size, the strengths, the norm, the time and the folds of the groups at some positions."""
        at, woke = list(groups), dict(self.path_.entered)
        facts = {"size": self.groups_.sizes[at], "strength": self.group_strengths_[at]}
        several = zip(self._outputs(), getattr(self, "response_strengths_", ()), strict=False)
        facts |= {f"strength_{name}": strengths[at] for name, strengths in several}
        if not self.loss_.several:  # a norm over responses would mix their units
            facts["norm"] = self.group_norms_[at]
        facts["woke_up"] = np.array([woke.get(l, np.nan) for l in at], dtype=float)
        if self.fold_frequencies_ is not None and self.n_splits_ > 1:
            facts["folds"] = np.asarray(self.fold_frequencies_)[at]
        return pd.DataFrame(facts)

    def coefficients(self) -> pd.DataFrame:
        """The coefficients with the names of their columns.

        Returns
        -------
        DataFrame
            The intercept, then one row per column of X: ``column``, ``group``, ``coefficient`` (with several classes or
            responses, one such column each), and, where the exponential of a coefficient is an odds, rate or hazard
            ratio, that ratio. It is in the units of X, and the same as the file coefficients.csv of ``covey fit``. With
            ``terms=`` it has the encoded columns of the selected terms, which are standardised: `to_tables` has the
            model in the units of the variables.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from covey import GroupSparseRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = pd.DataFrame(rng.standard_normal((100, 3)), columns=["age", "bmi", "dose"])
        >>> model = GroupSparseRegressor().fit(X, 2 * X["bmi"] + 1)
        >>> model.coefficients().round(3)
                column group  coefficient
        0  (intercept)  None          1.0
        1          age   age          0.0
        2          bmi   bmi          2.0
        3         dose  dose          0.0
        """
        check_is_fitted(self)
        groups, expansion = self.groups_, getattr(self, "expansion_", None)
        coef = np.atleast_2d(self.coef_)
        shown = np.arange(coef.shape[1])
        if expansion is not None:
            shown = np.concatenate([shown[:0], *(groups[name] for name in self.selected_groups_)])
        names = column_names(groups, shown, expansion, getattr(self, "feature_names_in_", None))
        table: dict[str, object] = {
            "column": ["(intercept)", *names],
            "group" if expansion is None else "term": pd.Series([None, *_group_names(groups, shown)], dtype=object),
        }
        values = np.column_stack([np.atleast_1d(self.intercept_), coef[:, shown]])
        ends = [f"_{name}" for name in self._outputs()] or [""]
        table |= {f"coefficient{end}": row for end, row in zip(ends, values, strict=True)}
        if self.loss_.effect is not None:
            with np.errstate(over="ignore"):
                # the intercept's exponential is odds or a rate, not a ratio
                ratios = np.column_stack([np.full(len(values), np.nan), np.exp(values[:, 1:])])
            head = self.loss_.effect.replace(" ", "_")
            table |= {f"{head}{end}": row for end, row in zip(ends, ratios, strict=True)}
        return pd.DataFrame(table)

    def partial_effect(self, X: MatrixLike, group: Hashable) -> FloatArray:
        """The contribution of one group to the linear predictor of each row, centred over these rows.

        Parameters
        ----------
        X : array-like or any kind of design, of shape (n_rows, n_features)
        group : str or int
            The name of a group.

        Returns
        -------
        ndarray of shape (n_rows,), or (n_rows, n_outputs) with several classes or responses
            `covey.plots.PartialEffectDisplay` draws it.
        """
        check_is_fitted(self)
        if self.groups_.overlapping:
            raise ValueError(
                "Groups share columns, so the contribution of one group does not follow from the columns' coefficients."
            )
        columns = np.sort(self.groups_[group])
        coef = np.atleast_2d(self.coef_)
        effect = read_rows(self, X).predict(columns, coef[:, columns], np.zeros(len(coef)))
        effect -= effect.mean(axis=0)
        return effect[:, 0] if len(coef) == 1 else effect

    def summary(self) -> Summary:
        """How the model was fitted, one line per selected group, and whether the selection depends on the split.

        It does not say how well the model predicts: use `covey.nested_score` for that.

        Returns
        -------
        Summary
            ``print(model.summary())`` prints it, and a notebook shows it as a table, with at most the first 20 groups.
        """
        check_is_fitted(self)
        counts = fold_counts(self)
        warning = split_warning(self._found(), counts, self.n_splits_) if counts else ""
        either = [f"{a} or {b}" for a, b in interchangeable(self)[:MOST_PAIRS]]
        rivals = f"The held-out rows cannot tell which is needed: {', '.join(either)} (rivals_)." if either else ""
        price, others = price_of_sparsity(self), (binding(self), rivals, warning, too_good(self))
        if hasattr(self, "expansion_"):
            return self._terms_summary((as_terms(price), *others))
        notes = tuple(filter(None, (price, *others)))
        table = self.group_table()
        always = f", {len(self.always_groups_)} more always in" if self.always_groups_ else ""
        of = self.groups_.n_groups - len(self.always_groups_)
        head = (
            f"{type(self).__name__}: {len(self._found())} of {of} groups selected{always} "
            f"({self.n_selected_columns_} of {self.n_features_in_} columns)",
            f"Model: {self.recipe_}{self._ending(len(table))}.",
        )
        numbers = [name for name in table if str(name).startswith("strength") or name in ("norm", "woke_up")]
        shown = table.assign(**{str(name): table[name].map(digits) for name in numbers})
        if "columns" in shown:
            shown["columns"] = shown["columns"].astype(str) + " of " + shown.pop("size").astype(str)
        if "folds" in shown:
            shown["folds"] = shown["folds"].astype(str) + f" of {self.n_splits_}"
        return Summary(head, shown.reset_index(), notes, "group_table()")

    def _repr_html_(self) -> str:
        """The summary of a fitted model, for notebooks; scikit-learn's diagram if it is not fitted."""
        if hasattr(self, "path_"):
            return self.summary()._repr_html_()
        diagram: str = super()._repr_html_()  # type: ignore[misc]
        return diagram

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        if not hasattr(self, "path_"):
            bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
            return bundle
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    @property
    def n_selected_columns_(self) -> int:
        """The number of columns of the selected groups; with `within`, of those that have a coefficient."""
        if self.within is not None:
            return int(np.count_nonzero(np.atleast_2d(self.coef_).any(axis=0)))
        return len({int(j) for name in self.selected_groups_ for j in self.groups_[name]})

    def _found(self) -> list[Hashable]:
        """The selected groups except those that are always in the model."""
        return [name for name in self.selected_groups_ if name not in self.always_groups_]


def _group_names(groups: Groups, columns: IntArray) -> list[Hashable]:
    """The name of each column's group; of several, all of them in a text."""
    if not groups.overlapping:
        return [groups.names[l] for l in groups.labels[columns]]
    inside: list[list[str]] = [[] for _ in range(groups.n_columns)]
    for name in groups.names:
        for j in groups[name]:
            inside[j].append(str(name))
    return [", ".join(inside[j]) for j in columns]


def column_names(
    groups: Groups, columns: IntArray, expansion: Expansion | None, given: Sequence[str] | None = None
) -> list[str]:
    """The names of columns; those of a pair have its name and a number."""
    if expansion is None:
        return [groups.column_name(j) if given is None else str(given[j]) for j in columns]
    names = expansion.encoding.column_names
    found = []
    for j in columns:
        if j < len(names):
            found.append(names[j])
        else:
            term = expansion.terms[groups.labels[j]]
            found.append(f"{term.name} {j - term.columns.start + 1}")
    return found


def too_good(model: FittedModel) -> str:
    """A question about a model without errors; empty if it has some."""
    found = judged(model)
    if found is None or found.r2 is None or found.r2 < 1 - PERFECT or not model.selected_groups_:
        return ""
    name = in_sentence(str(model.selected_groups_[0]))
    return f"Hardly any error is left on held-out rows: is {name} a copy of the response, or known only after it?"
