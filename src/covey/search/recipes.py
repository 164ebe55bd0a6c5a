"""Recipes: ways to make a model that can be repeated on other rows.

A recipe is carried out on the training rows of every split, scored on the rows left out, and, if it is chosen, carried
out on all rows. To add one, subclass `Recipe` and pass it to an estimator as ``recipes=[...]``; docs/extending.md has
an example.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from covey.search.observations import Observations
from covey.search.posed import Posed
from covey.search.problem import Split
from covey.search.ridges import Penalties
from covey.search.table import Table
from covey.validation import FloatArray, refuse_odd

if TYPE_CHECKING:
    from covey.search.cleaned import CleanedRound
    from covey.search.dense import DenseRidges

__all__ = ["Model", "Recipe", "Training", "read_recipes"]


@dataclass(frozen=True)
class Model:
    """A linear model of one split.

    Attributes
    ----------
    groups : list of int
        The groups in the model, as positions among all groups, in the order in which they woke up; for models on all
        groups, by decreasing norm.
    predictors : ndarray, shape (n_scored, n_outputs)
        Linear predictors of the rows on which the split is scored.
    n_columns : float
        The size of the model: of equally good models, the smaller one is chosen.
    on_columns : callable
        Returns columns of X, coefficients of shape (n_outputs, k) and intercepts of shape (n_outputs,).
    shrunk : bool
        Whether coefficients are shrunk.
    remark : str
        What a user should know about the model beside the recipe's text.
    """

    groups: list[int]
    predictors: FloatArray
    n_columns: float
    on_columns: Callable[[], tuple[NDArray[np.intp], FloatArray, FloatArray]]
    shrunk: bool = True
    remark: str = ""


class Recipe(ABC):
    """A way to make a model; subclasses are frozen dataclasses, so that equal recipes are one candidate.

    Attributes
    ----------
    n_groups : int or None
        The number of groups that the model has, not counting those that are always in; None if all may be in. Then
        ``rule="select"`` leaves the recipe out.
    """

    n_groups: int | None

    @property
    def in_round(self) -> int | None:
        """The round of the search from whose paths the recipe takes its groups; None if it needs none."""
        return None

    @property
    def family(self) -> Hashable:
        """Recipes of one family share a weight when candidates are averaged."""
        return type(self).__name__ if self.n_groups is None else self.n_groups

    @abstractmethod
    def text(self, unpenalised: str = "least squares") -> str:
        """A description; `unpenalised` is the name of a fit without a penalty."""

    @abstractmethod
    def fit(self, training: Training) -> Model:
        """Carry the recipe out."""

    def groups(self, training: Training) -> list[int]:
        """The groups of the model, as positions among all groups."""
        return self.fit(training).groups

    @classmethod
    def scored(cls, recipes: Sequence[Any], training: Training) -> tuple[FloatArray, list[float]]:
        """Predictors (n_scored, n_outputs, n_recipes) and sizes of the models of several recipes of this kind."""
        models = [recipe.fit(training) for recipe in recipes]
        for model in models:
            if not isinstance(model, Model):
                raise TypeError(
                    f"{cls.__name__}.fit returned {type(model).__name__}, and must return "
                    "training.model(groups, W, levels)."
                )
        return np.stack([model.predictors for model in models], axis=-1), [model.n_columns for model in models]


class Training:
    """The training rows of one split, with all that recipes need.

    Attributes
    ----------
    table : Table
        The near groups on all rows.
    posed : Posed
    split : Split
    always : list of int
        Groups that are in every model, unpenalised.
    penalties : Penalties
    rounds : list of CleanedRound
        The sets of groups that elimination kept, for every round of the search.
    dense : DenseRidges or None
        Ridges on all columns.
    fits : dict
        Minimisers by their groups and ridge: the groups in order, the intercept, and coefficients of shape
        (k, n_outputs). Other rounds often leave the same groups.
    infinite : list of frozenset
        Sets of groups whose minimum lies at infinity, as it does for every superset. Of all rows: on some split, or
        that of the same recipe.
    """

    def __init__(self, table: Table, number: int, always: list[int], penalties: Penalties) -> None:
        self.table, self.number, self.always, self.penalties = table, number, always, penalties
        self.posed: Posed = table.posed
        self.split: Split = self.posed.splits[number]
        self.rounds: list[CleanedRound] = []
        self.dense: DenseRidges | None = None
        self.fits: dict[tuple[frozenset[int], float], tuple[list[int], FloatArray, FloatArray]] = {}
        self.infinite: list[frozenset[int]] = []

    @property
    def always_infinite(self) -> bool:
        """Whether the minimum on the groups that are always in lies at infinity."""
        return bool(self.always) and self.is_infinite(self.always)

    def is_infinite(self, groups: Iterable[int]) -> bool:
        """Whether the minimum on some groups is known to lie at infinity."""
        return any(gone.issubset(groups) for gone in self.infinite)

    @property
    def response(self) -> Observations:
        """The response, with weight zero outside the training rows."""
        return self.table.on_split(self.split)[0]

    @property
    def scored(self) -> NDArray[np.intp]:
        """The rows of the table on which models are scored."""
        return self.table.on_split(self.split)[1]

    @property
    def rough(self) -> bool:
        """Whether models are only scored and need few digits; those of all rows are returned to the user."""
        return not self.split.everything

    def predictors(self, columns: NDArray[np.intp], W: FloatArray, levels: FloatArray) -> FloatArray:
        """Predictors of models on the rows to score; (n_scored, n_outputs, n_models).

        Parameters
        ----------
        columns : ndarray of int, shape (k,)
            Columns of the table.
        W, levels : ndarray, shape (n_models, n_outputs, k) and (n_models, n_outputs)
        """
        out = self.table.predictors(self.scored, columns, W)
        out += self.response.one[self.scored][:, None, None] * levels.T
        return out

    def model(
        self, groups: Sequence[int], W: FloatArray, levels: FloatArray, *, shrunk: bool = True, remark: str = ""
    ) -> Model:
        """A model on near groups, given as positions among all groups.

        Parameters
        ----------
        groups : sequence of int
        W, levels : ndarray, shape (n_outputs, k) and (n_outputs,)
            Coefficients of the groups' working columns, one group after another, and intercepts.
        shrunk, remark
            As in `Model`.
        """
        if far := [int(l) for l in groups if int(l) not in self.table.place]:
            raise ValueError(f"Group {far[0]} is not in training.table.groups: only these have columns in the table.")
        needed = {*self.always, *(parent for l in groups for parent in self.posed.ancestors(int(l)))}
        if lost := needed.difference(map(int, groups)):
            raise ValueError(
                f"The model lacks group {min(lost)}, which is always in, or a parent of one that is in: see "
                "training.always, and training.posed.ancestors."
            )
        columns = self.table.columns([self.table.place[int(l)] for l in groups])
        m = self.response.n_outputs
        if W.shape != (m, columns.size) or levels.shape != (m,):
            raise ValueError(
                f"training.model takes W of shape {(m, columns.size)} and levels of shape {(m,)} for these groups "
                f"(outputs first), not {W.shape} and {levels.shape}."
            )
        posed = self.posed
        if levels.any() and posed.response.loss.has_intercept and not posed.intercept:
            raise ValueError("training.model takes levels of zero if fit_intercept=False (training.posed.intercept).")
        predictors = self.predictors(columns, W[None], levels[None])[:, :, 0]
        return Model(
            list(groups), predictors, float(columns.size), lambda: posed.to_user(groups, W, levels), shrunk, remark
        )


def read_recipes(recipes: Recipe | Iterable[Recipe]) -> list[Recipe]:
    """Further candidates that a user gives, checked."""
    refuse_odd(recipes, "recipes")
    try:
        given: list[Recipe] = [recipes] if isinstance(recipes, Recipe | str) else list(recipes)
    except TypeError:
        raise ValueError(f"recipes must be a list of covey.selection.Recipe objects, not {recipes!r}.") from None
    for recipe in given:
        if not isinstance(recipe, Recipe):
            raise ValueError(f"recipes must hold covey.selection.Recipe objects, not {recipe!r}.")
        try:
            hash(recipe)
        except TypeError:
            raise ValueError(f"{type(recipe).__name__} cannot be hashed: make it a frozen dataclass.") from None
    return given
