"""How a model was chosen, as one curve and one sentence, for every way to choose."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from covey.groups import Groups
from covey.losses import Loss
from covey.search.criteria import Discrepancy, InformationCriterion
from covey.search.select import SelectionLike, read_selection
from covey.validation import FloatArray, IntArray

__all__ = [
    "FittedModel",
    "Judged",
    "binding",
    "how_chosen",
    "in_words",
    "interchangeable",
    "judged",
    "price_of_sparsity",
]

# The most constraints that a sentence names.
MOST_NAMES = 5

LABELS = {
    "mse": "mean squared error on held-out rows",
    "bic": "Bayesian information criterion",
    "ebic": "extended Bayesian information criterion",
    "gcv": "generalised cross-validation score",
    "deviance": "deviance",
    "mean_square": "mean squared residual",
    "rss": "residual sum of squares",
}

RULES = {
    "select": "the simplest sparse model that the held-out rows cannot tell from the best",
    "predict": "the mean of all, each weighted by its error",
}


@dataclass(frozen=True)
class Judged:
    """The scores of the candidates; smaller is better.

    Attributes
    ----------
    label : str
        Describes the values.
    x, values : ndarray
        Numbers of groups, and the best candidate's value for each.
    band : ndarray or None
        One standard error of the difference from the best candidate.
    at, value : float
        The number of groups of the chosen model, and its value; for a mean of models, the weighted mean of their
        values, which is an upper bound.
    n_candidates : int
    null : float or None
        The held-out error of the null model; None if it is unknown or no rows were held out.
    """

    label: str
    x: FloatArray
    values: FloatArray
    band: FloatArray | None
    at: float
    value: float
    n_candidates: int
    null: float | None = None

    @property
    def r2(self) -> float | None:
        """Share of the null model's held-out error removed, if known; optimistic, since it chose the model."""
        return None if not self.null else 1 - self.value / self.null


class FittedModel:
    """The settings and fitted attributes of all estimators that say what was chosen, and how."""

    rule: str
    selection: SelectionLike
    loss_: Loss
    groups_: Groups
    selected_groups_: list[Hashable]
    always_groups_: list[Hashable]
    recipe_: str
    shrunk_: bool
    candidates_: pd.DataFrame
    rivals_: pd.DataFrame | None
    price_: tuple[float, float] | None
    fold_frequencies_: IntArray | None
    n_splits_: int
    n_deals_: int


def judged(model: FittedModel, null: float | None = None) -> Judged | None:
    """The scores of a fitted estimator's candidates; None if there was nothing to choose from.

    If every candidate has groups, as with ``always=``, `null` supplies the error of the null model: the variance of the
    response, or the mean deviance of the best constant.
    """
    table: pd.DataFrame = model.candidates_
    name = next((name for name in LABELS if name in table), None)
    if name is None:
        return None
    table = table[np.isfinite(table[name].to_numpy(dtype=float))]  # criteria are infinite without degrees of freedom
    chosen = table["chosen"].to_numpy(dtype=bool)
    if len(table) < 2 or not chosen.any():
        return None
    weights = table["weight"].to_numpy(dtype=float) if "weight" in table else chosen / chosen.sum()
    at = float(table.loc[chosen, "groups"].iloc[0]) if chosen.sum() == 1 else float(len(model.selected_groups_))
    best = table.sort_values(["groups", name], kind="stable").drop_duplicates("groups")
    held_out = name == "mse" or (name == "deviance" and model.n_splits_ > 0)
    least = best[best["groups"] == 0]
    if len(least):
        null = float(least[name].iloc[0])
    return Judged(
        label=_label(name, model),
        x=best["groups"].to_numpy(dtype=float),
        values=best[name].to_numpy(dtype=float),
        band=best["standard_error"].to_numpy(dtype=float) if "standard_error" in best else None,
        at=at,
        value=float(weights @ table[name].to_numpy(dtype=float)),
        n_candidates=len(model.candidates_),
        # survival models are compared by differences of partial likelihoods, and shares of those mean nothing
        null=null if held_out and not model.loss_.survival else None,
    )


def _label(name: str, model: FittedModel) -> str:
    if name != "deviance" or not model.n_splits_:
        return LABELS[name]
    if model.loss_.quadratic and model.loss_.vector:
        return "squared error on held-out rows, summed over responses of unit variance"
    return f"{'deviance per event' if model.loss_.survival else 'mean deviance'} on held-out rows"


def how_chosen(model: FittedModel) -> str:
    """How a fitted estimator's model was chosen.

    >>> from covey import GroupSparseRegressor
    >>> from covey.datasets import make_group_sparse
    >>> data = make_group_sparse(60, 12, 3, random_state=0)
    >>> how_chosen(GroupSparseRegressor(3, selection="ebic").fit(data.X, data.y))
    'the least extended Bayesian information criterion'
    """
    if model.n_splits_:
        rows = f"{model.n_splits_ // model.n_deals_}-fold cross-validation" if model.n_splits_ > 1 else "held-out rows"
        again = f", dealt {model.n_deals_} times" if model.n_deals_ > 1 else ""
        return f"{rows}{again}, rule {model.rule} ({RULES[model.rule]})"
    selection = read_selection(model.selection)
    if isinstance(selection, InformationCriterion):
        return f"the least {LABELS[selection.criterion]}"
    if isinstance(selection, Discrepancy):
        return "the discrepancy principle (the residual has fallen to the noise)"
    return "hand"


def price_of_sparsity(model: FittedModel) -> str:
    """What a sparse model costs, in one sentence; empty if it is not known."""
    if model.price_ is None:
        return ""
    gain, standard_error = model.price_
    expansion = getattr(model, "expansion_", None)
    count = model.groups_.n_groups if expansion is None else len(expansion.encoding.terms)
    every = f"all {count} groups" if expansion is None else f"all {count} terms of single variables"
    if count == 1:
        every = "the one group" if expansion is None else "the one term of a single variable"
    if gain <= 0:
        return f"No model of {every} predicts better."
    return f"The best model of {every} predicts {gain:.1%} ± {standard_error:.1%} better (rule='predict')."


def binding(model: FittedModel) -> str:
    """Which constraints bind, in one sentence; empty if none does."""
    table = getattr(model, "constraints_", None)
    if table is None or not table["binds"].any():
        return ""
    parts = []
    for selected, what in ((False, "kept out"), (True, "at the limit")):
        some = table[table["binds"] & (table["selected"] == selected)].sort_values("pressure", ascending=False)
        names = [f"{name} ({text})" for name, text in zip(some["name"], some["constraint"], strict=True)]
        more = [f"{len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []
        if names:
            parts.append(f"{what}: {', '.join(names[:MOST_NAMES] + more)}")
    return f"Constraints bind; {'; '.join(parts)} (constraints_)."


def interchangeable(model: FittedModel) -> list[tuple[Hashable, Hashable]]:
    """Pairs of a selected group and one that may replace it, because some rows select the one and some the other."""
    if model.rivals_ is None:
        return []
    pairs = zip(model.rivals_["without"], model.rivals_["instead"], strict=True)
    return list(dict.fromkeys((gone[0], new[0]) for gone, new in pairs if len(gone) == len(new) == 1))


def in_words(model: FittedModel) -> str:
    """A description of a fitted estimator's model, and whether its coefficients are shrunk."""
    text: str = model.recipe_
    if not len(model.selected_groups_):
        return "no group, the same prediction for every row"
    if n_always := len(model.always_groups_):
        text += f", plus {n_always} that {'is' if n_always == 1 else 'are'} always in"
    assumed = f"; {model.loss_.in_words}" if model.loss_.in_words else ""
    return f"{text}; coefficients are {'shrunk' if model.shrunk_ else 'not shrunk'}{assumed}"
