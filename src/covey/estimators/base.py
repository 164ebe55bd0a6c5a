"""The base class of the estimators: from validated data to one fitted model and everything that describes it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from covey.designs import Design, as_design
from covey.designs.rows import count_rows
from covey.estimators.constraints import constraints_on
from covey.estimators.formula import number_response, read_formula
from covey.estimators.group_views import GroupViews
from covey.estimators.reading import read_always, read_rows, refuse_constant
from covey.estimators.scale import select_scaled
from covey.groups import Groups, GroupsLike
from covey.groups.checks import refuse_other_order
from covey.losses.base import Response
from covey.losses.responses import read_offset
from covey.search.held_out import FoldModels, HeldOut
from covey.search.pieces import select_within
from covey.search.problem import Problem
from covey.search.recipes import Recipe, read_recipes
from covey.search.rules import RULES
from covey.search.select import Selected, Selection, SelectionLike, read_selection, select
from covey.selection import Folds, HoldOut
from covey.terms import Constraints, Expansion, TermsLike
from covey.terms.effects import term_means
from covey.validation import FloatArray, MatrixLike, PerRow, Stored, one_of

# How far a linear predictor may leave its range in `fit`, in widths of that range: a trend may go on for half as long
# again, and the mean of a log link is at most the largest seen times the root of its ratio to the smallest.
BEYOND = 0.5

# How messages end about what needs held-out rows.
ON_HELD_OUT = "on held-out rows: give selection= a number of folds, a splitter or 'holdout'."

# What replaces the rules of version 0.2.
REPLACED = {"min": " Use 'predict' where you had 'min'.", "1se": " Use 'select' where you had '1se'."}


@dataclass(eq=False, repr=False)
class GroupSparseEstimator(GroupViews, BaseEstimator):
    """Fits, predicts and describes one model, for any loss; the fields are the parameters that all estimators have."""

    groups: GroupsLike = None
    _: KW_ONLY
    terms: TermsLike = None
    within: str | None = None
    constraints: Constraints = None
    always: Iterable[Hashable] = ()
    selection: SelectionLike = 5
    rule: str = "select"
    recipes: Iterable[Recipe] = ()
    factors: int | str = "auto"
    group_weights: ArrayLike | None = "noise"
    standardize: str | bool = "group"
    random_state: int | None = None
    verbose: int = 0

    predictor_range_: FloatArray | None = field(init=False)
    held_out_: HeldOut | None = field(init=False)

    # reads the left-hand side of a formula: a function of its text and the table
    _formula_response: ClassVar[Any] = staticmethod(number_response)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tables = self.terms is not None
        tags.input_tags.sparse = not tables
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = tables
        return tags

    @classmethod
    def from_formula(
        cls, formula: str, data: Stored, *, sample_weight: PerRow = None, offset: PerRow = None, **settings: Any
    ) -> Self:
        """Fit a model written as a formula, in which each term is a group.

        The syntax is formulaic's: columns, ``C(site)`` for categories, ``bs(age, df=6)`` and ``cr(age, df=6)`` for
        splines, ``x1:x2`` for interactions, ``.`` for all columns but the response, ``- 1`` for no intercept. The
        knots of splines and the levels of categories are learned from `data` and kept: `predict` and `score` then take
        a table with the same variables.

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
            Parameters of the estimator, except `groups`, `terms` and `fit_intercept`, which the formula determines.

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
        for name in ("groups", "terms", "fit_intercept"):
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

    def _pose(
        self, design: Design, response: Response, weight: FloatArray, offset: PerRow, split_groups: PerRow
    ) -> tuple[Problem, Callable[[Problem], Selected]]:
        """The problem of the data that `read_problem` returned, and the search that selects a model of it."""
        if self.rule not in RULES:
            raise ValueError(f"rule must be 'select' or 'predict', not {self.rule!r}.{REPLACED.get(self.rule, '')}")
        for values, name in ((offset, "offset"), (split_groups, "split_groups")):
            design.check_labels(values, name)
        loss, shift = response.loss, response.read_offset(offset)
        loss.check_estimable(response, weight, shift)
        if self.fit_intercept:
            refuse_constant(response, weight, shift, getattr(self, "response_names_", None))
        names, expansion = getattr(self, "feature_names_in_", None), getattr(self, "expansion_", None)
        options = {name: getattr(self, name) for name in ("group_weights", "standardize", "fit_intercept", "factors")}
        if expansion is None:
            groups, structure = Groups.coerce(self.groups, design.shape[1], names), {}
            always = _read_always(groups, self.always, names)
        else:
            groups, structure = expansion.groups, expansion.structure
            always = expansion.with_ancestors([*_read_always(groups, self.always), *expansion.always])
            options["factors"] = 0
        selection, recipes = self._read_selection(split_groups, shift), read_recipes(self.recipes)
        if recipes and not isinstance(selection, Folds | HoldOut):
            raise ValueError(f"recipes= are compared {ON_HELD_OUT}")
        if self.constraints:
            if self.within is not None:
                raise ValueError(
                    "constraints= is for whole groups: leave out within='columns', or give groups of one column."
                )
            if recipes:
                raise ValueError("recipes= are fitted without constraints: leave out recipes= or constraints=.")
            found = constraints_on(self.constraints, loss, groups, names, always, expansion)
            structure = structure | {"constraints": found}
        problem = Problem(design, response.y, weight, groups, always, options, loss, shift, recipes, **structure)
        search = self._search(selection, self.rule)
        if loss.has_scale:
            quick = self._search(replace(selection, deals=1)) if isinstance(selection, Folds) else search
            begins = self.rule == "select" and self.within is None
            search = partial(select_scaled, search=search, quick=quick, begins=begins)
        return problem, search

    def _search(self, selection: Selection, rule: str = "select") -> Callable[[Problem], Selected]:
        """The search that selects groups of a problem, or columns within them."""
        search = partial(select, selection=selection, rule=rule)
        return search if self.within is None else partial(select_within, search=search)

    def _read_selection(self, split_groups: PerRow, offset: PerRow) -> Selection:
        """How the model is chosen; the response of a validation set is coded like that of `fit`."""
        check_random_state(self.random_state)
        selection = read_selection(self.selection, self.random_state, split_groups)
        if split_groups is not None and isinstance(selection, HoldOut) and selection.validation is None:
            raise ValueError(
                "A hold-out does not keep rows of one split_groups label together: give selection= a number of folds, "
                "or a splitter such as sklearn.model_selection.GroupShuffleSplit(1)."
            )
        if self.within is not None:
            one_of(self.within, (None, "columns"), "within")
            if self.terms is not None:
                raise ValueError("within='columns' is for groups=; with terms=, say what each variable may become.")
            if not isinstance(selection, Folds | HoldOut):
                raise ValueError(f"within='columns' is decided {ON_HELD_OUT}")
        if not isinstance(selection, HoldOut) or not isinstance(selection.validation, tuple | list):
            return selection
        if len(selection.validation) < 2:  # the search refuses it
            return selection
        X, y, *rest = selection.validation
        if (offset is None) != (not rest or rest[0] is None):
            lacking = "the rows of fit" if offset is None else "the validation rows"
            raise ValueError(
                f"There is an offset, but not for {lacking}: give fit(X, y, offset=) and "
                "HoldOut(validation=(X, y, offset)) one, or neither."
            )
        if hasattr(self, "expansion_"):
            X = self.expansion_.design(X)
        else:
            X = as_design(X, name="X_val")
            if X.shape[1] == self.n_features_in_:  # the search refuses others
                names, remedy = getattr(self, "feature_names_in_", None), "give the columns in the order of X"
                refuse_other_order(names, X.columns, of="X", X="X_val", remedy=remedy)
        return replace(selection, validation=(X, self._coded(y, "y_val"), *rest))

    def _coded(self, y: ArrayLike, name: str = "y") -> ArrayLike:
        """Another response, in the form that the loss takes."""
        return y

    def _publish(self, problem: Problem, found: Selected, response: Response) -> Self:
        """Set the fitted attributes."""
        self.loss_, weight = found.loss, np.asarray(problem.weight, dtype=float)
        if found.met:
            encoded = problem.design.take(np.arange(problem.design.n_stored))
            self.expansion_ = self.expansion_.with_pairs(found.met, encoded, weight)
            problem = problem.with_pairs(found.met)
        groups, design = problem.groups, problem.design
        self.groups_ = groups
        self.always_groups_ = [groups.names[l] for l in problem.always]
        self._set_coefficients(found, design.dtype, response.columns)
        if self.loss_.several:
            self.response_strengths_, self.response_deviations_ = found.by_output, found.output_units
        self.recipe_, self.shrunk_ = found.recipe, found.shrunk
        self.candidates_ = found.candidates
        self.fold_frequencies_, self.n_splits_, self.n_deals_ = found.frequencies, found.n_splits, found.n_deals
        self.rivals_, self.price_ = found.rivals, found.price
        if found.binding is not None:
            self.constraints_ = found.binding
        self.path_ = found.path
        if self.verbose:
            print(f"[covey] {len(self.selected_groups_)} of {groups.n_groups} groups: {self.recipe_}")
        if hasattr(self, "expansion_"):
            chosen = [groups.position(name) for name in self.selected_groups_]
            self.term_means_ = term_means(self.expansion_, design, weight, np.atleast_2d(self.coef_), chosen)
        self.predictor_range_ = None
        if not self.loss_.identity_link and self.selected_groups_:
            seen = self._predictor(design)[weight > 0]
            self.predictor_range_ = np.stack([seen.min(axis=0), seen.max(axis=0)])
        self._calibrate(design, found.folds, response, weight, problem.offset)
        if hasattr(self, "expansion_"):
            used = (np.atleast_2d(self.coef_) != 0).any(axis=0)
            if self.held_out_ is not None:  # models of folds may have other pairs
                used[self.held_out_.columns] = True
            self.expansion_ = self.expansion_.in_use(used)
        return self

    def _set_coefficients(self, found: Selected, dtype: DTypeLike, columns: bool) -> None:
        """Set what describes the model; `columns` says whether coefficients have one row per output."""
        groups = self.groups_
        with np.errstate(over="ignore", under="ignore"):
            by_group = found.by_group.astype(dtype)
        lost = not np.isfinite(by_group).all() or ((by_group == 0) & (found.by_group != 0)).any()
        if lost or found.binding is not None:
            by_group = found.by_group  # too large or too small for the precision of X, or bounds that it does not have
        coef, norms = groups.from_contiguous(by_group), groups.apart().norms(by_group)
        self.coef_ = coef if columns else coef[0]
        self.intercept_ = found.intercept if columns else float(found.intercept[0])
        self.group_norms_ = norms[0] if len(norms) == 1 else np.linalg.norm(norms, axis=0)
        in_model = set(np.flatnonzero(self.group_norms_).tolist())
        strongest = np.argsort(-found.strengths, kind="stable").tolist()
        self.selected_groups_ = [groups.names[l] for l in strongest if l in in_model]
        self.group_strengths_ = found.strengths

    def _linear(self, X: MatrixLike, offset: PerRow) -> FloatArray:
        """The linear predictor of rows; shape (n_rows, n_outputs)."""
        check_is_fitted(self)
        design = read_rows(self, X)
        eta = self._in_range(self._predictor(design))
        return eta if offset is None else eta + read_offset(offset, design.shape[0], eta.shape[1], self.loss_)

    def _predictor(self, design: Design) -> FloatArray:
        """The linear predictor without an offset; shape (n_rows, n_outputs)."""
        coef = np.atleast_2d(self.coef_)
        used = np.flatnonzero(coef.any(axis=0))
        # in float64 for any X: the response may vary little about a large mean
        return design.predict(used, coef[:, used], np.atleast_1d(np.asarray(self.intercept_, dtype=float)))

    def _in_range(self, eta: FloatArray) -> FloatArray:
        """Linear predictors, bounded where their exponential would be far beyond anything that was seen in `fit`."""
        if self.predictor_range_ is None:
            return eta
        bounded = self._bounded(eta)
        n_outside = int((bounded != eta).reshape(len(eta), -1).any(axis=1).sum())
        if n_outside:
            warnings.warn(
                f"{n_outside} of {len(eta)} rows are so far outside the rows of fit that their linear predictor "
                "leaves the range seen there by more than half its width; it is bounded there. Check the columns of "
                "these rows, and splines that continue beyond the range of their data.",
                stacklevel=4,
            )
        return bounded

    def _bounded(self, eta: FloatArray) -> FloatArray:
        """Linear predictors, whose last axis has the outputs, not far outside their range in `fit`."""
        if self.predictor_range_ is None:
            return eta
        low, high = self.predictor_range_
        beyond = BEYOND * (high - low)
        return np.clip(eta, low - beyond, high + beyond)

    def _calibrate(
        self, design: Design, folds: FoldModels | None, response: Response, weight: FloatArray,
        offset: FloatArray | None,
    ) -> None:  # fmt: skip
        """Keep the fold models and the scores of their held-out rows, which prediction intervals are made of."""
        self.held_out_ = None
        if folds is None or self.loss_.outputs:  # quantiles are bounds themselves
            return
        y = response.y
        if folds.validation is not None:
            y, weight, offset = folds.validation.y, np.asarray(folds.validation.weight), folds.validation.offset
        eta = self._bounded(folds.eta)
        eta = eta if offset is None else eta + np.reshape(offset, (len(eta), 1, -1))
        used = weight > 0
        # outliers that the search left out are in no fold and in no model, so every model may score them
        unseen = used & ~(folds.held_out | folds.trained).any(axis=1)
        held_out = (folds.held_out | unseen[:, None]) & used[:, None]
        # a row that several folds hold out counts once
        times = held_out.sum(axis=1)
        rows = weight / np.maximum(times, 1) * (count_rows(weight) / weight.sum())
        by_fold = self._scored(y, eta, rows, held_out, folds)
        whole = not self.loss_.identity_link and bool((y[used] == np.round(y[used])).all())
        self.held_out_ = HeldOut.of(folds, by_fold, float(rows @ times), whole)

    def _scored(
        self, y: FloatArray, eta: FloatArray, rows: FloatArray, held_out: NDArray[np.bool_], folds: FoldModels
    ) -> list[tuple[FloatArray, FloatArray]]:
        """Scores of the held-out rows of every fold, shape (k, n_responses), and their weights in rows."""
        scores = [self._misfit(y[at], eta[at, k], k) for k, at in enumerate(held_out.T)]
        return [(one.reshape(len(one), -1), rows[at]) for one, at in zip(scores, held_out.T, strict=True)]

    def _misfit(self, y: FloatArray, eta: FloatArray, fold: int) -> FloatArray:
        """How badly responses agree with a fold's linear predictors; shape (n_rows,) or (n_rows, n_responses)."""
        return self.loss_.misfit(y, eta if self.loss_.vector else eta[:, 0])

    def __getstate__(self) -> dict[str, Any]:
        """The state as numbers, arrays and text, so that files need no pickle."""
        state = dict(super().__getstate__())
        for name in {"candidates_", "constraints_"} & state.keys():
            state[name] = json.dumps(state[name].to_dict("list"))
        if state.get("rivals_") is not None:
            state["rivals_"] = state["rivals_"].to_dict("list")  # names of groups need not be text
        if "expansion_" in state:
            state["expansion_"] = json.dumps(state["expansion_"].state())
        for name in {"feature_names_in_", "classes_"} & state.keys():
            if state[name].dtype == object:
                state[name] = json.dumps(state[name].tolist())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        for name in {"candidates_", "constraints_"} & state.keys():
            state[name] = pd.DataFrame(json.loads(state[name]))
        if isinstance(state.get("rivals_"), dict):
            state["rivals_"] = pd.DataFrame(state["rivals_"])
        if "expansion_" in state:
            state["expansion_"] = Expansion.from_state(json.loads(state["expansion_"]))
        for name in {"feature_names_in_", "classes_"} & state.keys():
            if isinstance(state[name], str):
                state[name] = np.array(json.loads(state[name]), dtype=object)
        super().__setstate__(state)


def _read_always(groups: Groups, always: Iterable[Hashable], columns: Iterable[str] | None = None) -> list[int]:
    """The groups that are in every model of an estimator, which may be cloned and must leave some to select."""
    if isinstance(always, Iterator):
        raise ValueError(f"always is a {type(always).__name__}, which can be read only once: give a list of groups.")
    always_in = read_always(groups, always, columns)
    if always_in and len(always_in) == groups.n_groups:
        raise ValueError(
            f"always names all {groups.n_groups} groups, so nothing is left to select: leave some out, or fit them "
            "without selection, for instance with scikit-learn's LinearRegression."
        )
    return always_in
