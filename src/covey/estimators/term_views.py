"""What a model of terms shows: its terms, its variables, their effects, and tables of scores."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable
from importlib import import_module
from itertools import permutations
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from covey.estimators.reading import read_rows
from covey.search.chosen import FittedModel
from covey.summary import Summary, digits
from covey.tables.complaint import in_sentence, shortened
from covey.terms.effects import Effect, FittedTerms
from covey.terms.encoding import Encoding
from covey.terms.expansion import Expansion
from covey.terms.kinds import free_name
from covey.terms.rating import rating_tables, write_tables
from covey.validation import FloatArray, MatrixLike, last_step, some

# The most variables that a sentence of the summary names.
MOST_NAMES = 12


# Models of parts of the rows: a list of them, or a result that keeps them, such as `covey.evidence.NestedScore`.
Refits: TypeAlias = Any


class TermViews(FittedModel):
    """The attributes and methods that estimators have with ``terms=``."""

    coef_: FloatArray
    intercept_: float | FloatArray
    expansion_: Expansion
    term_means_: FloatArray

    def _expansion(self, what: str) -> Expansion:
        """The expansion of the fit; AttributeError where there is none, so that `hasattr` is right."""
        expansion = getattr(self, "expansion_", None)
        if expansion is None:
            raise AttributeError(f"{what} needs a model that has been fitted with terms=, such as terms='auto'.")
        return expansion

    @property
    def encoding_(self) -> Encoding:
        """How the table became terms: `encoding_.table()` has a line per column, `remarks` what was left out."""
        return self._expansion("encoding_").encoding

    @property
    def fitted_terms_(self) -> FittedTerms:
        """The selected terms with their coefficients, from which effects and tables are computed."""
        expansion = self._expansion("fitted_terms_")
        coef = np.atleast_2d(self.coef_)
        return FittedTerms(
            expansion, coef, np.atleast_1d(np.asarray(self.intercept_, dtype=float)),
            tuple(self.groups_.position(name) for name in self.selected_groups_), self.term_means_, self._outputs(),
        )  # fmt: skip

    def _outputs(self) -> tuple[str, ...]:
        n = len(np.atleast_2d(self.coef_))
        names: Iterable[object] = self.loss_.outputs or getattr(self, "response_names_", range(n))
        return tuple(map(str, getattr(self, "classes_", names))) if n > 1 else ()

    @property
    def terms_(self) -> pd.DataFrame:
        """The selected terms, strongest first.

        Columns: ``term``; ``kind`` (linear, curve, detail, levels, season, pair or surface); ``variables``;
        ``parents``, the terms without which it is in no model; ``df``, the number of its free coefficients;
        ``strength``, the standard deviation of its contribution; with several responses, ``strength_NAME`` for each of
        them, in its units; ``folds``, such as "4 of 5"; and ``woke_up``, its time on the path (NaN for a term that a
        later round added).
        """
        expansion, table = self._expansion("terms_"), self.group_table()  # type: ignore[attr-defined]
        terms = [expansion.terms[self.groups_.position(name)] for name in self.selected_groups_]
        n = getattr(self, "n_splits_", 0)
        folds = [f"{count} of {n}" for count in table["folds"]] if "folds" in table else [""] * len(terms)
        return pd.DataFrame(
            {
                "term": [term.name for term in terms],
                "kind": [term.kind for term in terms],
                "variables": [term.variables for term in terms],
                "parents": [tuple(expansion.terms[l].name for l in term.parents) for term in terms],
                "df": [expansion.freedom(self.groups_.position(term.name)) for term in terms],
                **{name: table[name].to_numpy() for name in table if str(name).startswith("strength")},
                "folds": folds,
                "woke_up": table["woke_up"].to_numpy(),
            }
        )

    @property
    def variables_(self) -> pd.DataFrame:
        """The variables of the model.

        Columns: ``variable``; ``shape``: straight, curved, levels, or the seasons of a date; and ``pairs``, the
        variables that it is in pairs with.
        """
        terms = self.fitted_terms_.expansion.terms
        shapes: dict[str, list[str]] = defaultdict(list)
        pairs: dict[str, list[str]] = defaultdict(list)
        for part in self.fitted_terms_.parts:
            for one, other in permutations(part.variables, 2):
                pairs[one].append(other)
            if len(part.roots) == 1:
                (name,) = part.variables
                shapes[name].append(_shape(part.name, name, {terms[l].kind for l in part.terms}))
        return pd.DataFrame(
            {
                "variable": list(shapes),
                "shape": [", ".join(some) for some in shapes.values()],
                "pairs": [tuple(dict.fromkeys(pairs[name])) for name in shapes],
            }
        )

    def effect(
        self,
        *variables: str,
        at: ArrayLike | None = None,
        main: bool = False,
        n: int | None = None,
        refits: Refits = None,
    ) -> Effect:
        """The contribution of a variable, or of a pair of variables, to the linear predictor, as data.

        It is centred: the mean over the rows of fit, weighted as there, is zero.

        Parameters
        ----------
        *variables : str
            One or two names. The year, the day and the week of a date have names such as ``"date[year]"``; ``"date"``
            is its trend.
        at : array-like, optional
            The values; for two variables a pair of arrays. By default a grid over the range of fit, or all levels.
        main : bool
            For two variables: add the effects that each of them has alone.
        n : int, optional
            The number of points of the grid: by default 200, or 60 on each side of a pair.
        refits : NestedScore or list of estimators, optional
            Models that were chosen and fitted again without some rows, such as the result of
            ``covey.nested_score(..., return_estimator=True)``. `low` and `high` are then the smallest and the largest
            effect among them. They are not confidence intervals: for these see `covey.evidence.band`. Without refits
            there is no band: the fit keeps one model only.

        Returns
        -------
        Effect
            With `values`, `effect`, `low`, `high`, `axes` (where the rows of fit are), and `to_frame()`. A variable
            that was not selected has zero effect, with a note.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from covey import GroupSparseRegressor
        >>> rng = np.random.default_rng(0)
        >>> table = pd.DataFrame({"age": rng.uniform(20, 60, 200), "site": rng.choice(list("ab"), 200)})
        >>> y = np.sin(table["age"] / 8) + (table["site"] == "a") + 0.1 * rng.standard_normal(200)
        >>> model = GroupSparseRegressor(terms="auto").fit(table, y)
        >>> model.effect("site").to_frame().round(1)
          site  effect
        0    a     0.5
        1    b    -0.5
        """
        check_is_fitted(self)
        self._expansion("effect")
        return self.fitted_terms_.effect(*variables, at=at, main=main, n=n, refits=_read_refits(refits))

    def contributions(self, X: MatrixLike) -> pd.DataFrame:
        """What each variable and each pair adds to the linear predictor of each row.

        Parameters
        ----------
        X : table with the variables of fit

        Returns
        -------
        DataFrame
            The column ``constant``, then one column per variable or pair, such as ``age`` and ``age:sex``. They add up
            to the linear predictor, without an offset. With several outputs the columns have two levels: output, name.
        """
        check_is_fitted(self)
        self._expansion("contributions")
        fitted, design = self.fitted_terms_, read_rows(self, X)
        parts = fitted.contributions(design)
        index = X.index if isinstance(X, pd.DataFrame) else None
        tables = []
        for k in range(len(fitted.coef)):
            columns = {"constant": np.full(design.shape[0], fitted.constant[k])}
            for name, values in parts.items():
                columns[free_name(name, columns)] = values[:, k]
            tables.append(pd.DataFrame(columns, index=index))
        return tables[0] if not fitted.outputs else pd.concat(tables, axis=1, keys=fitted.outputs)

    def plot_terms(
        self, names: Iterable[str] | None = None, *, X: MatrixLike | None = None, refits: Refits = None,
        ax: object = None,
    ) -> Any:  # fmt: skip
        """Draw the effects of the selected variables and pairs, or of the named ones.

        The arguments and the result are those of `covey.plots.TermsDisplay.from_estimator`.
        """
        plots = import_module("covey.plots")  # a room above this one, which imports matplotlib
        return plots.TermsDisplay.from_estimator(self, names, X=X, refits=refits, ax=ax)

    def to_tables(self, path: str | os.PathLike[str] | None = None, *, bins: int = 20) -> dict[str, pd.DataFrame]:
        """The model as a rating table: points per value or level of each variable and pair.

        The points of a row's values and the constant add up to the linear predictor: of each table take the line whose
        ``from`` and ``to`` (or ``level``) the value falls in, and add ``points + slope * (value - from)``. A pair has
        columns for each of its variables, such as ``from_1`` and ``slope_2``. Slopes of dates are per day.

        Levels, numbers with two values, straight lines and their pairs with levels are exact. Curves and pairs of
        numbers are cut into bins, in each of which they are straight, and seasons into months or hours with one value:
        more bins are more exact. Values outside the range of fit, and levels that were not in the table of fit, have no
        line; `predict` extrapolates the first and takes the mean for the second.

        Parameters
        ----------
        path : path, optional
            A file to write: ``.csv`` for one long table, ``.xlsx`` for one sheet per table (needs openpyxl). Cells of
            text that a spreadsheet would take for a formula get an apostrophe in front.
        bins : int
            The least number of bins of a curve. A pair of numbers has about half as many on each side.

        Returns
        -------
        dict of str to DataFrame
            ``"constant"`` first, then one table per variable or pair.
        """
        check_is_fitted(self)
        self._expansion("to_tables")
        tables = rating_tables(self.fitted_terms_, bins)
        if path is not None:
            write_tables(tables, path)
        return tables

    def _terms_summary(self, notes: Iterable[str]) -> Summary:
        """Which variables, straight or curved, alone or in pairs; what was left out; and the table of terms."""
        encoding, chosen, table = self.encoding_, self.variables_, self.terms_
        words = self._variables_in_words()
        found = f": {words}" if words else " are in the model; it predicts the same value for every row"
        names = [in_sentence(str(name)) for name in self.always_groups_]
        always = f", {some(names, MOST_NAMES)} always in" if names else ""
        head = (
            f"{type(self).__name__}: {len(chosen)} of {len(encoding.variables)} variables{found}.",
            f"Model: {len(table)} of {self.groups_.n_groups} terms{always}: {as_terms(self.recipe_)}"
            f"{self._ending(len(table))}.",
        )
        texts = {"term": table["term"].map(shortened), "parents": table["parents"].map(" and ".join).map(shortened)}
        strengths = [name for name in map(str, table) if name.startswith("strength")]
        numbers = {name: table[name].map(digits) for name in (*strengths, "woke_up")}
        shown = table.drop(columns="variables").assign(**texts, **numbers)
        return Summary(head, shown, (*filter(None, notes), *encoding.remarks), "terms_", "terms")

    def _variables_in_words(self) -> str:
        """Which variables are in the model, straight or curved or because they always are, and which pairs."""
        chosen, terms, words = self.variables_, self.terms_, []
        named = zip(terms["term"], terms["variables"], strict=True)
        found = {variables for name, variables in named if name not in self.always_groups_}
        for name, shape in zip(chosen["variable"], chosen["shape"], strict=True):
            # levels, and numbers with two values, are neither straight nor curved
            plain = shape == "levels" or getattr(self.encoding_.variable(name), "n_distinct", 0) == 2
            said = [] if plain else [shape]
            said += ["always in"] * ((name,) not in found)
            words.append(in_sentence(name) + (f" ({', '.join(said)})" if said else ""))
        pairs = [in_sentence(part.name) for part in self.fitted_terms_.parts if len(part.roots) == 2]
        return some(words, MOST_NAMES) + (f"; pair{'s' * (len(pairs) > 1)}: {some(pairs, MOST_NAMES)}" if pairs else "")

    def _ending(self, n_selected: int) -> str:
        """Whether coefficients are shrunk, and what the loss assumes: the end of a sentence."""
        shrunk = f"; coefficients are {'' if self.shrunk_ else 'not '}shrunk" if n_selected else ""
        return shrunk + (f"; {self.loss_.in_words}" if self.loss_.in_words else "")


def as_terms(text: str) -> str:
    """A sentence about groups as one about terms; only for sentences without names. Fields in braces stay.

    >>> as_terms("Groups: {groups} of the first 18 groups")
    'Terms: {groups} of the first 18 terms'
    """
    pattern = r"(?<!\{)\b([Gg])roup(s?)\b(?!\})"
    return re.sub(pattern, lambda found: f"{'T' if found[1] == 'G' else 't'}erm{found[2]}", text)


def _read_refits(refits: Refits) -> list[FittedTerms]:
    """The terms of models that were fitted again."""
    if refits is None:
        return []
    given = getattr(refits, "estimators", refits)  # None in scores without return_estimator=True
    models: list[BaseEstimator] = [last_step(one) for one in given or ()]
    if given is None or not all(hasattr(model, "expansion_") for model in models):
        raise ValueError(
            "refits must be models fitted with terms=, such as covey.nested_score(model, X, y, return_estimator=True)."
        )
    return [model.fitted_terms_ for model in models]


def _shape(part: str, variable: str, kinds: set[str]) -> str:
    """How a part of a variable enters: straight, curved, levels, or the name of a season."""
    if part != variable and part.startswith(f"{variable}["):
        return part[len(variable) + 1 :].rstrip("']")
    return "curved" if "curve" in kinds else "straight" if "linear" in kinds else "levels"
