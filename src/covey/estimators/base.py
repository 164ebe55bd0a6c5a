"""The base class of the estimators: from validated data to one fitted model and everything that describes it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from covey.designs import Design
from covey.estimators.formula import number_response, read_formula
from covey.estimators.reading import read_rows
from covey.estimators.scale import select_scaled
from covey.groups import Groups
from covey.losses import Loss
from covey.losses.arrays import read_offset
from covey.losses.base import Response
from covey.path import Path
from covey.progress import showing
from covey.search.agreement import fold_counts, split_warning
from covey.search.chosen import interchangeable, price_of_sparsity
from covey.search.problem import Problem
from covey.search.recipes import read_recipes
from covey.search.rules import RULES
from covey.search.select import Selected, Selection, read_selection, select
from covey.selection import Folds, HoldOut
from covey.summary import Summary
from covey.validation import FloatArray, on_host

__all__ = ["GroupSparseEstimator"]


# What replaces the rules of version 0.2.
REPLACED = {"min": " Use 'predict' where you had 'min'.", "1se": " Use 'select' where you had '1se'."}

# The most pairs of interchangeable groups that a summary names.
MOST_PAIRS = 5


class GroupSparseEstimator(BaseEstimator):
    """Fits, predicts and describes one model, for any loss."""

    coef_: FloatArray
    intercept_: Any
    loss_: Loss
    groups_: Groups
    always_groups_: list[Any]
    selected_groups_: list[Any]
    group_norms_: FloatArray
    group_strengths_: FloatArray
    recipe_: str
    shrunk_: bool
    candidates_: pd.DataFrame
    fold_frequencies_: Any
    n_deals_: int
    rivals_: pd.DataFrame | None
    predictor_range_: FloatArray | None
    price_: tuple[float, float] | None
    n_splits_: int
    path_: Path
    n_features_in_: int
    formula_: Any

    # reads the left-hand side of a formula
    _formula_response = staticmethod(number_response)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @classmethod
    def from_formula(
        cls, formula: str, data: Any, *, sample_weight: Any = None, offset: Any = None, **settings: Any
    ) -> Self:
        """Fit a model written as a formula, in which each term is a group.

        The syntax is formulaic's: columns, ``C(site)`` for categories, ``bs(age, df=6)`` and ``cr(age, df=6)`` for
        splines, ``x1:x2`` for interactions, ``- 1`` for no intercept. The knots of splines and the levels of categories
        are learned from `data` and kept: `predict` and `score` then take a table with the same variables.

        Parameters
        ----------
        formula : str
            Such as ``"y ~ bs(age, df=6) + C(site) + x1:x2"``. The response of a classifier is a column of labels; for a
            Cox model it is ``survival(time, event)``. A formula is code: do not run one that you do not trust.
        data : DataFrame
            From pandas, polars or another library.
        sample_weight, offset : array-like, optional
            As in `fit`.
        **settings
            Parameters of the estimator, except `groups` and `fit_intercept`, which the formula determines.

        Returns
        -------
        estimator, fitted
            ``formula_`` is formulaic's specification. `covey.save` cannot write it: pickle such a model instead.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from covey import GroupSparseRegressor
        >>> rng = np.random.default_rng(0)
        >>> data = pd.DataFrame({"age": rng.uniform(20, 60, 200), "site": rng.choice(list("abc"), 200)})
        >>> data["x"], data["y"] = rng.standard_normal(200), np.sin(data["age"] / 6) + 0.1 * rng.standard_normal(200)
        >>> model = GroupSparseRegressor.from_formula("y ~ bs(age, df=8) + C(site) + x", data)
        >>> model.selected_groups_
        ['bs(age, df=8)']
        >>> model.predict(data.head(3)).shape
        (3,)
        """
        for name in ("groups", "fit_intercept"):
            if name in settings:
                raise ValueError(
                    f"{name} is set by the formula: leave it out (terms are groups, '- 1' means no intercept)."
                )
        X, y, groups, spec, constant = read_formula(formula, data, cls._formula_response)
        if "fit_intercept" in cls._get_param_names():
            settings["fit_intercept"] = constant
        model = cls(groups=groups, **settings).fit(X, y, sample_weight=sample_weight, offset=offset)
        model.formula_ = spec
        return model

    def _fit(self, design: Design, response: Response, weight: FloatArray, offset: Any, split_groups: Any) -> None:
        """Select a model of the data that `read_problem` returned, and set the fitted attributes."""
        if self.rule not in RULES:
            raise ValueError(f"rule must be 'select' or 'predict', not {self.rule!r}.{REPLACED.get(self.rule, '')}")
        loss, shift = response.loss, response.read_offset(offset)
        loss.check_estimable(response, weight, shift)
        names = getattr(self, "feature_names_in_", None)
        groups = Groups.coerce(self.groups, design.shape[1], names)
        always = _read_always(groups, self.always, names)
        options = {name: getattr(self, name) for name in ("group_weights", "standardize", "fit_intercept", "factors")}
        selection = self._read_selection(split_groups)
        search = partial(select, selection=selection, rule=self.rule)
        quick = partial(select, selection=replace(selection, deals=1)) if isinstance(selection, Folds) else search
        problem = Problem(design, response.y, weight, groups, always, options, loss, shift, read_recipes(self.recipes))
        with showing(type(self).__name__, self.verbose):
            self.loss_, found = select_scaled(problem, search, quick)
        self.groups_ = groups
        self.always_groups_ = [groups.names[l] for l in always]
        self._publish(found, design.dtype, response.columns)
        self.predictor_range_ = None
        if not self.loss_.identity_link and self.selected_groups_:
            seen = np.asarray(on_host(self._predictor(design)), dtype=float)[np.asarray(weight) > 0]
            self.predictor_range_ = np.stack([seen.min(axis=0), seen.max(axis=0)])

    def _read_selection(self, split_groups: Any) -> Selection:
        """How the model is chosen; the response of a validation set is coded like that of `fit`."""
        selection = read_selection(self.selection, self.random_state, split_groups)
        if not isinstance(selection, HoldOut) or not isinstance(selection.validation, tuple | list):
            return selection
        if len(selection.validation) < 2:  # the search refuses it
            return selection
        X, y, *rest = selection.validation
        return replace(selection, validation=(X, self._coded(y, "y_val"), *rest))

    def _coded(self, y: Any, name: str = "y") -> Any:
        """Another response, in the form that the loss takes."""
        return y

    def _publish(self, found: Selected, dtype: Any, columns: bool) -> None:
        """Set the fitted attributes; `columns` says whether coefficients have one row per output."""
        groups = self.groups_
        with np.errstate(over="ignore", under="ignore"):
            by_group = found.by_group.astype(dtype)
        if not np.isfinite(by_group).all() or ((by_group == 0) & (found.by_group != 0)).any():
            by_group = found.by_group  # too large or too small for the precision of X
        coef = np.array([groups.from_contiguous(output) for output in by_group])
        self.coef_ = coef if columns else coef[0]
        self.intercept_ = found.intercept if columns else float(found.intercept[0])
        norms = np.array([groups.apart().norms(output) for output in by_group])
        self.group_norms_ = norms[0] if len(norms) == 1 else np.linalg.norm(norms, axis=0)
        in_model = set(np.flatnonzero(self.group_norms_).tolist())
        self.selected_groups_ = [groups.names[l] for l in found.order if l in in_model]
        self.group_strengths_ = found.strengths
        self.recipe_, self.shrunk_ = found.recipe, found.shrunk
        self.candidates_ = found.candidates
        self.fold_frequencies_, self.n_splits_, self.n_deals_ = found.frequencies, found.n_splits, found.n_deals
        self.rivals_, self.price_ = found.rivals, found.price
        self.path_ = found.path
        if self.verbose:
            print(f"[covey] {len(self.selected_groups_)} of {groups.n_groups} groups: {self.recipe_}")

    def _linear(self, X: Any, offset: Any) -> Any:
        """The linear predictor of rows; shape (n_rows, n_outputs)."""
        check_is_fitted(self)
        design = read_rows(self, X)
        eta = self._in_range(self._predictor(design))
        return eta if offset is None else eta + read_offset(offset, design.shape[0], eta.shape[1], self.loss_)

    def _predictor(self, design: Design) -> Any:
        """The linear predictor without an offset; shape (n_rows, n_outputs)."""
        coef = np.atleast_2d(self.coef_)
        used = np.flatnonzero(coef.any(axis=0))
        return design.predict(used, coef[:, used], np.atleast_1d(np.asarray(self.intercept_, dtype=coef.dtype)))

    def _in_range(self, eta: Any) -> Any:
        """Linear predictors, bounded where their exponential would be far beyond anything that was seen in `fit`."""
        if self.predictor_range_ is None:
            return eta
        low, high = self.predictor_range_
        given = np.asarray(on_host(eta))
        bounded = np.clip(given, low - (high - low), high + (high - low))
        n_outside = int((bounded != given).any(axis=1).sum())
        if n_outside:
            warnings.warn(
                f"{n_outside} of {len(given)} rows are so far outside the rows of fit that their linear predictor "
                "leaves the range seen there by more than its width; it is bounded there. Check the columns of these "
                "rows, and splines that continue beyond the range of their data.",
                stacklevel=4,
            )
        return bounded.astype(given.dtype, copy=False)

    def __getstate__(self) -> dict[str, Any]:
        """The state as numbers, arrays and text, so that files need no pickle."""
        state = dict(super().__getstate__())
        if "candidates_" in state:
            state["candidates_"] = json.dumps(state["candidates_"].to_dict("list"))
            if state["rivals_"] is not None:
                state["rivals_"] = state["rivals_"].to_dict("list")  # names of groups need not be text
        for name in ("feature_names_in_", "classes_"):
            if name in state and state[name].dtype == object:
                state[name] = json.dumps(state[name].tolist())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "candidates_" in state:
            state["candidates_"] = pd.DataFrame(json.loads(state["candidates_"]))
        if isinstance(state.get("rivals_"), dict):
            state["rivals_"] = pd.DataFrame(state["rivals_"])
        for name in ("feature_names_in_", "classes_"):
            if isinstance(state.get(name), str):
                state[name] = np.array(json.loads(state[name]), dtype=object)
        super().__setstate__(state)

    def group_table(self) -> pd.DataFrame:
        """The selected groups, in the order in which they woke up.

        Returns
        -------
        DataFrame
            Indexed by group, with the columns ``size``, ``strength`` (the standard deviation of its contribution to the
            prediction, with the default ``standardize="group"``), ``norm`` (of its coefficients), ``woke_up`` (its time
            on the path; NaN for a group of a dense model that did not wake up), and, if there were folds, ``folds`` (in
            how many of them it was selected).
        """
        check_is_fitted(self)
        woke = dict(self.path_.entered)
        chosen = [self.groups_.position(name) for name in self.selected_groups_]
        table = pd.DataFrame(
            {
                "size": self.groups_.sizes[chosen],
                "strength": self.group_strengths_[chosen],
                "norm": self.group_norms_[chosen],
                "woke_up": [float(woke.get(l, np.nan)) for l in chosen],
            },
            index=pd.Index(self.selected_groups_, name="group"),
        )
        if self.fold_frequencies_ is not None and self.n_splits_ > 1:
            table["folds"] = np.asarray(self.fold_frequencies_)[chosen]
        return table

    def partial_effect(self, X: Any, group: Any) -> FloatArray:
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
        predicted = read_rows(self, X).predict(columns, coef[:, columns], np.zeros(len(coef), dtype=coef.dtype))
        effect = np.asarray(on_host(predicted), dtype=float)
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
        table = self.group_table()
        used = np.atleast_2d(self.coef_).any(axis=0)
        always = f", {len(self.always_groups_)} more always in" if self.always_groups_ else ""
        of = self.groups_.n_groups - len(self.always_groups_)
        head = (
            f"{type(self).__name__}: {len(self._found())} of {of} groups selected{always} "
            f"({np.count_nonzero(used)} of {self.n_features_in_} columns)",
            f"Model: {self.recipe_}{'' if self.shrunk_ or not len(table) else '; coefficients are not shrunk'}.",
        )
        shown = table.assign(**{name: table[name].map("{:.4g}".format) for name in ("strength", "norm", "woke_up")})
        if "folds" in shown:
            shown["folds"] = [f"{count} of {self.n_splits_}" for count in table["folds"]]
        counts = fold_counts(self)
        warning = split_warning(self._found(), counts, self.n_splits_) if counts else ""
        either = [f"{a} or {b}" for a, b in interchangeable(self)[:MOST_PAIRS]]
        rivals = f"The held-out rows cannot tell which is needed: {', '.join(either)} (rivals_)." if either else ""
        notes = tuple(filter(None, (price_of_sparsity(self), rivals, warning)))
        return Summary(head, shown.reset_index(), notes, "group_table()")

    def _repr_html_(self) -> str:
        """The summary of a fitted model, for notebooks; scikit-learn's diagram if it is not fitted."""
        if hasattr(self, "path_"):
            return self.summary()._repr_html_()
        diagram: str = super()._repr_html_()
        return diagram

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        if not hasattr(self, "path_"):
            bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
            return bundle
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _found(self) -> list[Any]:
        """The selected groups except those that are always in the model."""
        return [name for name in self.selected_groups_ if name not in self.always_groups_]


def _read_always(groups: Groups, always: Any, columns: Any = None) -> list[int]:
    """The groups that are in every model, given by name or by the name of a column that is a group by itself."""
    named = [always] if isinstance(always, str) else always
    if isinstance(named, Iterator):
        raise ValueError(f"always is a {type(named).__name__}, which can be read only once: give a list of groups.")
    if columns is not None and isinstance(named, Iterable):
        known, places = set(groups.names), {str(name): j for j, name in enumerate(columns)}
        named = [name if name in known else _group_of(groups, name, places) for name in named]
    always_in = groups.positions(named, "always")
    if always_in and len(always_in) == groups.n_groups:
        raise ValueError(
            f"always names all {groups.n_groups} groups, so nothing is left to select: leave some out, or fit them "
            "without selection, for instance with scikit-learn's LinearRegression."
        )
    return always_in


def _group_of(groups: Groups, name: Any, places: dict[str, int]) -> Any:
    """The name of the group that consists of a column; the name unchanged if there is no such column."""
    if not isinstance(name, str) or name not in places:
        return name
    label = np.repeat(np.arange(groups.n_groups), groups.sizes)[np.flatnonzero(groups.members == places[name])]
    if label.size == 1 and groups.sizes[label[0]] == 1:
        return groups.names[label[0]]
    inside = " and ".join(repr(groups.names[l]) for l in label[:3])
    raise ValueError(
        f"always names the column {name!r}, which is one of several in group {inside}: name the group, or make the "
        "column a group by itself."
    )
