"""Fitted: a fitted estimator with the rows of its fit, and what the sections of a report need to know of them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from covey.estimators.classifier import class_weight_of_rows
from covey.evidence import NestedScore
from covey.evidence.overlap import Overlaps, find_overlaps
from covey.losses.base import Response
from covey.search.chosen import Judged, judged
from covey.validation import FloatArray, IntArray, PerRow, on_host


@dataclass(frozen=True)
class Fitted:
    """A fitted estimator; and where they are known, X, y, weights and offset as given to `fit`, and a nested score."""

    model: BaseEstimator
    X: Any = None
    y: Any = None
    weight: PerRow = None
    offset: PerRow = None
    nested: NestedScore | None = None

    @cached_property
    def response(self) -> Response:
        """The response as the model's loss encodes it: numbers, 0 and 1, or one column per class."""
        model, loss = self.model, self.model.loss_
        coded = model._coded(self.y) if hasattr(model, "classes_") else loss.check(on_host(self.y))
        return Response(loss, np.asarray(coded))

    @cached_property
    def shift(self) -> FloatArray:
        """The offset in the shape of the response; zeros without one."""
        shift = self.response.read_offset(self.offset)
        return np.zeros_like(self.response.y) if shift is None else shift

    @cached_property
    def row_weight(self) -> FloatArray:
        """The weight of each row in the fit, with those of the classes."""
        model, y = self.model, self.response.y
        q = np.ones(len(y)) if self.weight is None else np.asarray(self.weight, dtype=float)
        if getattr(model, "class_weight", None) is None:
            return q
        return q * class_weight_of_rows(model.class_weight, model.classes_, model.loss_.classes(y), q)

    @cached_property
    def null_error(self) -> float:
        """The error of the best constant, in the units of the candidates' errors; NaN for survival times."""
        loss = self.model.loss_
        if loss.survival:
            return float("nan")
        y, q, shift = self.response.y, self.row_weight, self.shift
        if loss.several:
            return float(self.response.n_outputs)
        if loss.coupled:  # thresholds are the constant
            return float(loss.on(y, q).deviance(shift)) / float(q.sum())
        return float(q @ loss.deviance(y, loss.null(y, q, shift) + shift)) / float(q.sum())

    @cached_property
    def judged(self) -> Judged | None:
        """The errors of the candidates; None if there was nothing to choose from."""
        return judged(self.model, None if self.y is None else self.null_error)

    @property
    def measure(self) -> str:
        """The name of `explained`: R² for squared loss, concordance for survival times, D² for all other losses."""
        loss = self.model.loss_
        return str(self.model.score_name) if loss.survival else "R²" if loss.quadratic else "D²"

    @cached_property
    def explained(self) -> float:
        """The share of the best constant's deviance that the model removes on the rows, which is R^2 for squared loss.

        For survival times, the concordance.
        """
        model = self.model
        if not hasattr(model, "classes_"):
            return float(model.score(self.X, self.y, self.weight, self.offset))
        left = self.row_weight @ model.loss_.deviance(self.response.y, model.decision_function(self.X, self.offset))
        return 1 - float(left) / (self.null_error * float(self.row_weight.sum()))

    @cached_property
    def selected(self) -> IntArray:
        """Positions of the groups in the model, strongest first."""
        found = np.flatnonzero(self.model.group_norms_)
        return found[np.argsort(-self.model.group_strengths_[found], kind="stable")]

    @cached_property
    def names(self) -> list[Hashable]:
        """The selected groups, without those that are always in."""
        return [*self.model._found()]

    @cached_property
    def overlaps(self) -> Overlaps:
        """The groups that each selected group is most easily confused with."""
        model = self.model
        return find_overlaps(self.X, model.groups_, self.selected, self.weight, centre=model.fit_intercept)

    @property
    def is_average(self) -> bool:
        """Whether the model is a mean of several candidates."""
        return self.model.recipe_.startswith("a mean of ")

    @property
    def is_dense(self) -> bool:
        """Whether the model is a ridge on all groups."""
        return " on all groups" in self.model.recipe_
