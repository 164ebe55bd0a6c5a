"""NestedScore: the scores of the model and of the methods it is compared with, and whether groups help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from covey.evidence.class_scores import ClassScores, plain_number
from covey.evidence.folds import Rows
from covey.validation import Array, FloatArray, some

# Measures that are shares of the null model's error.
MEASURES = ("R^2", "D^2")

# What measures are that not everybody knows.
MEANINGS = {
    "D^2": "D^2 is the share of the null model's deviance that is removed.",
    "concordance": "Concordance is the share of comparable pairs of rows that are in the right order.",
}

# The most responses whose scores are printed.
MOST_RESPONSES = 12

# The name of the model that has only the groups that are always in.
ALONE = "always in"


@dataclass(frozen=True, repr=False)
class Score:
    """What the nested score of the model and those of other methods have in common."""

    mean: float
    margin: float
    folds: FloatArray

    @property
    def interval(self) -> tuple[float, float]:
        """A 90% interval for the score on new rows of the model that is fitted to all rows."""
        return self.mean - self.margin, self.mean + self.margin


@dataclass(frozen=True)
class MethodScore(Score):
    """The nested score of one method.

    Attributes
    ----------
    mean : float
        The score over all test rows: the mean of `folds`, weighted by the null model's deviance.
    margin : float
        Half the width of `interval`.
    folds : ndarray, shape (n_folds,)
        The score of each outer fold.
    difference, difference_margin : float
        The model's score minus this one on the same rows, and half the width of a 90% interval for it.
    what : str
        A description of the method.
    """

    difference: float = 0.0
    difference_margin: float = 0.0
    what: str = ""


@dataclass(frozen=True, repr=False)
class NestedScore(Score):
    """The score of a model on rows that played no part in choosing or fitting it.

    Attributes
    ----------
    mean : float
        The share of the null model's deviance that the model removes, over all test rows.
    margin : float
        Half the width of `interval`.
    folds : ndarray, shape (n_folds,)
        The score of each outer fold.
    references : dict of str to MethodScore
        The null model, lasso, ridge and any other methods, on the same rows.
    measure : str
        "R^2" for squared loss, "D^2" for others (the share of the deviance), or the name of the score.
    splits : list of (train, test)
        The outer folds, for repeating the computation by hand.
    predictions : ndarray or None
        For every row, the prediction of the models fitted without it: the mean of the response, class probabilities (of
        the second class if there are two), or the log risk for survival times. NaN for rows that were in no test fold.
    classes : ndarray or None
    positive : object
        The class that `class_scores` are about; None for the default.
    response, weight : ndarray
        The observed response, and the row weights.
    selected : list of tuple
        The groups that each outer fold's model selected, without those that are always in the model.
    notes : tuple of str
        What is missing, and why.
    estimators : list
        The models fitted without each outer fold, if ``return_estimator=True``.
    responses : dict of str to MethodScore
        The R^2 of each of several responses, by name or position; empty for one response.
    selects : {"groups", "terms"}
        What the models select.
    """

    references: Mapping[str, MethodScore]
    measure: str
    splits: list[tuple[Rows, Rows]]
    predictions: FloatArray | None = None
    classes: Array | None = None
    response: Any = None
    weight: Any = None
    selected: list[tuple[Hashable, ...]] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    estimators: list[BaseEstimator] = field(default_factory=list)
    positive: object = None
    responses: Mapping[Hashable, MethodScore] = field(default_factory=dict)
    selects: str = "groups"

    @property
    def n_folds(self) -> int:
        """The number of outer folds."""
        return len(self.folds)

    @property
    def frequencies(self) -> dict[Hashable, int]:
        """In how many outer folds each group was selected, most frequent first; groups never selected are omitted."""
        return dict(Counter(name for one in self.selected for name in one).most_common())

    @property
    def digits(self) -> int:
        """The number of decimals in printed figures."""
        return _digits(self.margin)

    def table(self) -> pd.DataFrame:
        """One row per method: its mean and the margin of its 90% interval, and how far the model is above it."""
        methods = {"model": MethodScore(self.mean, self.margin, self.folds, np.nan, np.nan), **self.references}
        values = {
            name: (one.mean, one.margin, one.difference, one.difference_margin, one.what)
            for name, one in methods.items()
        }
        columns = ["mean", "margin", "model_above", "margin_above", "what"]
        return pd.DataFrame.from_dict(values, orient="index", columns=columns)

    @cached_property
    def class_scores(self) -> ClassScores | None:
        """Base rate, AUC, average precision, Brier score, calibration, lift and thresholds; None without classes."""
        if self.classes is None or self.predictions is None:
            return None
        p, values = self.predictions, self.response
        if p.ndim == 1:
            p, values = np.column_stack([1 - p, p]), np.column_stack([1 - values, values])
        rows = ~np.isnan(p[:, 0]) & (self.weight > 0)  # some splitters do not test every row
        return ClassScores.of(self.classes, values[rows].argmax(axis=1), p[rows], self.weight[rows], self.positive)

    @property
    def verdict(self) -> str:
        """How the model compares with the best of the other methods, in a sentence."""
        if np.isnan(self.margin):
            return "Scores of a single fold have no margin, so they do not say which method predicts better."
        null = self.references.get("null")
        if null is not None and self.mean - null.mean <= self.margin:
            return "The model predicts no better than the null model, as far as these rows can tell."
        rivals = {name: one for name, one in self.references.items() if name != "null"}
        if not rivals:
            nothing = "chance" if null is not None and null.what == "chance" else "the null model"
            return f"The model predicts better than {nothing}." if null is not None else ""
        name = ALONE if ALONE in rivals else max(rivals, key=lambda key: rivals[key].mean)
        rival = rivals[name]
        digits = _digits(rival.difference_margin)
        gap = f"{abs(rival.difference):.{digits}f} ± {rival.difference_margin:.{digits}f}"
        unclear, better = abs(rival.difference) <= rival.difference_margin, rival.difference > 0
        if name == ALONE:
            if rival.difference == rival.difference_margin == 0:
                return "In no outer fold is anything selected besides what is always in."
            if unclear:
                return (
                    f"These rows cannot tell whether the selected {self.selects} add to what is always in: "
                    f"{self.measure} differs by {gap}."
                )
            if better:
                return f"The selection adds to what is always in: {self.measure} is higher by {gap}."
            return f"The selection does not help: what is always in predicts better alone, by {gap}."
        of_columns = name in ("lasso", "ridge")  # the caller's methods may know the groups
        if unclear:
            who = f"A {name} of single columns" if of_columns else repr(name)
            hint = f", which does not mean that the {self.selects} do not matter" if of_columns else ""
            return f"{who} predicts as well (the difference is {gap}){hint}."
        if better:
            left = (1 - rival.mean) / (1 - self.mean) if self.measure in MEASURES and self.mean < 1 else 0.0
            error = f", which leaves {left:.3g} times the error" if left else ""
            what = f"Keeping columns together in {self.selects} helps" if of_columns else "The model predicts best"
            other = f"the {name}" if of_columns else repr(name)
            return f"{what}: {self.measure} is {gap} above that of {other}, the best of the others{error}."
        who = f"The {name}, which does not know the {self.selects}," if of_columns else repr(name)
        return f"{who} predicts better: its {self.measure} is higher by {gap}."

    def as_dict(self) -> dict[str, object]:
        """The figures as plain values, as in run.json."""

        def figures(one: Score) -> dict[str, object]:
            folds = [plain_number(value) for value in one.folds]
            return {"mean": plain_number(one.mean), "margin": plain_number(one.margin), "folds": folds}

        return {
            "measure": self.measure,
            **figures(self),
            "references": {name: {**figures(one), "what": one.what} for name, one in self.references.items()},
            **({"responses": {str(k): figures(one) for k, one in self.responses.items()}} if self.responses else {}),
            **({"classes": self.class_scores.as_dict()} if self.class_scores is not None else {}),
            "selected": {str(name): count for name, count in self.frequencies.items()},
            "verdict": self.verdict,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        names = {name: "null model" if name == "null" else name for name in ("model", *self.references)}
        width, digits = max(map(len, names.values())), self.digits
        lines = [
            f"{self.measure} on rows that took no part in choosing or fitting the model "
            f"({self.n_folds} outer folds; ± is a 90% interval)"
        ]
        for name, one in {"model": self, **self.references}.items():
            what = f"   {one.what}" if isinstance(one, MethodScore) and one.what else ""
            margin = "" if np.isnan(one.margin) else f" ± {one.margin:.{digits}f}"
            mean = round(one.mean, digits) + 0.0  # no minus before zero
            lines.append(f"  {names[name]:<{width}}  {mean:{digits + 3}.{digits}f}{margin}{what}".rstrip())
        if self.measure in MEANINGS:
            lines.append(MEANINGS[self.measure])
        if self.responses:
            each = [f"{name} {one.mean:.{digits}f} ± {one.margin:.{digits}f}" for name, one in self.responses.items()]
            lines.append(f"Each response: {some(each, MOST_RESPONSES)}.")
        lines += filter(None, [self.verdict, *(f"Note: {note}." for note in self.notes)])
        return "\n".join([*lines, *([] if self.class_scores is None else [str(self.class_scores)])])

    __repr__ = __str__


def _digits(margin: float) -> int:
    """The number of decimals for a figure with this margin: those that are certain, but at least three.

    >>> _digits(0.05), _digits(0.0002), _digits(1e-17)  # the last is the rounding of a margin of zero
    (3, 5, 3)
    """
    return 3 if not 1e-7 < margin < 1e-3 else min(int(np.ceil(-np.log10(margin))) + 1, 6)
