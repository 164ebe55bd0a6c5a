"""How well a model predicts, on held-out and training rows: R^2 or its analogue for other losses, and per response."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.metrics import r2_score

from covey.estimators.classifier import class_weight_of_rows
from covey.evidence import NestedScore
from covey.evidence.nested_result import MEASURES
from covey.losses.base import Response as Observed
from covey.search.chosen import Judged
from covey.validation import FloatArray, MatrixLike, PerRow, on_host

# Explains an optimistic score that is below the held-out one.
BELOW = (
    "That it is below the held-out score is chance: the optimism is smaller than what another split of the rows would "
    "change."
)

# Test rows: X and y, and an offset if there is one.
Test: TypeAlias = tuple[Any, ...] | None


class Score(NamedTuple):
    """One score, with a sentence on its meaning."""

    label: str
    value: float
    note: str
    digits: int = 3  # decimals
    is_share: bool = False  # whether it is shown in per cent

    @property
    def text(self) -> str:
        """The value as it is shown, with as many decimals as on the console."""
        value = round(self.value, self.digits) + 0.0  # no minus before zero
        text = f"{self.value:.1%}" if self.is_share else f"{value:.{self.digits}f}"
        return text.replace("-", "−")


def quality(
    model: BaseEstimator, chosen_by: Judged | None, X: MatrixLike | None, y: PerRow, weight: PerRow, offset: PerRow,
    test: Test, nested: NestedScore | None,
) -> tuple[Score, ...]:  # fmt: skip
    """The available scores, most informative first."""
    name, found = measure(model), []
    capital = f"{name[:1].upper()}{name[1:]}"
    if test is not None:
        shift = test[2] if len(test) > 2 else None
        note = f"On {len(test[1])} test rows, which were used for nothing else."
        found.append(Score(f"{capital} on test rows", explained(model, test[0], test[1], offset=shift), note))
        if hasattr(model, "classes_"):
            accuracy = model.score(test[0], test[1], offset=shift)
            found.append(Score("Accuracy on test rows", accuracy, note, is_share=True))
    if nested is not None:
        null = nested.references.get("null")
        chance = "" if nested.measure in MEASURES or null is None else f"; chance is {null.mean:g}"
        note = (
            f"± {nested.margin:.{nested.digits}f} (90% interval){chance}. On rows that played no part "
            f"in choosing the model: the whole fit was repeated in {nested.n_folds} outer folds."
        )
        found.append(Score(f"Held-out {nested.measure.replace('^2', '²')}", nested.mean, note, nested.digits))
        if (classes := nested.class_scores) is not None:
            if classes.position is not None:
                auc = float(classes.table["auc"].iloc[0])
                note = (
                    f"How often a row of {classes.positive} has a higher probability of {classes.positive} than "
                    "another row; 0.5 is chance."
                )
                found.append(Score("Held-out AUC", auc, note))
            note = (
                f"Share of rows that are classified correctly by a model fitted without them. Always saying "
                f"{classes.commonest} is right in {classes.shares.max():.1%}."
            )
            found.append(Score("Held-out accuracy", classes.accuracy, note, is_share=True))
    if chosen_by is not None and chosen_by.r2 is not None:
        where = f"Mean over {model.n_splits_} folds" if model.n_splits_ > 1 else "On one holdout set"
        note = f"{where}. Optimistic, because the model was chosen as the best of many on these rows."
        found.append(Score(f"{capital} on validation rows", chosen_by.r2, note + _below(chosen_by.r2, name, nested)))
    if X is not None and y is not None:
        value = explained(model, X, y, weight, offset)
        note = f"On the rows the model was fitted to: always optimistic.{_below(value, name, nested)}"
        found.append(Score(f"{capital} on training rows", value, note))
    return tuple(found)


def _below(value: float, name: str, nested: NestedScore | None) -> str:
    """The explanation of an optimistic score, if the held-out one is the same measure and above it."""
    if nested is None or nested.measure.replace("^2", "²") != name or round(nested.mean - value, 3) <= 0:
        return ""
    return f" {BELOW}"


def measure(model: BaseEstimator) -> str:
    """The name of `explained`: R² for squared loss, concordance for survival times, D² for all other losses."""
    if model.loss_.survival:
        return str(model.score_name)
    return "R²" if model.loss_.quadratic else "D²"


def explained(model: BaseEstimator, X: MatrixLike, y: ArrayLike, weight: PerRow = None, offset: PerRow = None) -> float:
    """The share of the best constant's deviance that a model removes, which is R^2 for squared loss.

    For survival times, the concordance.
    """
    if not hasattr(model, "classes_"):
        return float(model.score(X, y, weight, offset))
    response, loss = coded(model, y), model.loss_
    q = row_weight(model, response, weight)
    left = float(q @ loss.deviance(response, model.decision_function(X, offset)))
    return 1 - left / (null_error(model, y, weight, offset) * float(q.sum()))


def null_error(model: BaseEstimator, y: ArrayLike, weight: PerRow = None, offset: PerRow = None) -> float:
    """The error of the best constant, in the units of the candidates' errors; NaN for survival times."""
    loss = model.loss_
    if loss.survival:
        return float("nan")
    response = Observed(loss, coded(model, y))
    if loss.several:
        return float(response.n_outputs)
    q, shift = row_weight(model, response.y, weight), response.read_offset(offset)
    shift = np.zeros_like(response.y) if shift is None else shift
    if loss.coupled:  # thresholds are the constant
        return float(loss.on(response.y, q).deviance(shift)) / float(q.sum())
    null = loss.null(response.y, q, shift) + shift
    return float(q @ loss.deviance(response.y, null)) / float(q.sum())


def row_weight(model: BaseEstimator, response: FloatArray, weight: PerRow) -> FloatArray:
    """The weight of each row in the fit, with those of the classes."""
    q = np.ones(len(response)) if weight is None else np.asarray(weight, dtype=float)
    if getattr(model, "class_weight", None) is None:
        return q
    return q * class_weight_of_rows(model.class_weight, model.classes_, model.loss_.classes(response), q)


def coded(model: BaseEstimator, y: ArrayLike) -> FloatArray:
    """The response as the model's loss encodes it: numbers, 0 and 1, or one column per class."""
    return np.asarray(model._coded(y) if hasattr(model, "classes_") else model.loss_.check(on_host(y)))


def in_memory(values: object) -> FloatArray:
    """A vector as a numpy array, also from Dask or a GPU."""
    return np.asarray(on_host(values), dtype=float)


class Response(NamedTuple):
    """One of several responses, with R^2 on held-out rows, if there are any, and on the training rows.

    Its groups are in decreasing order of their strength for this response, in its units: name, strength, the column
    with the largest coefficient, and that coefficient.
    """

    name: str
    held_out: str
    r2: float | None
    groups: tuple[tuple[str, float, str, float], ...]


def responses(
    model: BaseEstimator, X: MatrixLike | None, y: PerRow, weight: PerRow, offset: PerRow, outputs: tuple[str, ...],
    nested: NestedScore | None = None,
) -> tuple[Response, ...]:  # fmt: skip
    """The responses of a model; empty for a single response or classes."""
    if not model.loss_.several:
        return ()
    groups, coefs = model.groups_, model.coef_
    r2: list[float | None] = [None] * len(coefs)
    if X is not None and y is not None:
        observed = Observed(model.loss_, coded(model, y))
        shift, fitted = observed.read_offset(offset), in_memory(model.predict(X))
        left = observed.y if shift is None else observed.y - shift
        shares = r2_score(left, fitted, sample_weight=weight, multioutput="raw_values")
        r2 = np.atleast_1d(shares).tolist()
    scores = [] if nested is None else [*nested.responses.values()]
    found = []
    for k, (name, coef) in enumerate(zip(outputs, coefs, strict=True)):
        strengths, parts = model.response_strengths_[k], []
        for l in np.flatnonzero(model.group_norms_):
            columns = groups.members[groups.starts[l] : groups.starts[l + 1]]
            most = columns[np.argmax(np.abs(coef[columns]))]
            parts.append((str(groups.names[l]), float(strengths[l]), groups.column_name(int(most)), float(coef[most])))
        held_out = f"{scores[k].mean:.3f} ± {scores[k].margin:.3f}" if scores else ""
        found.append(Response(name, held_out, r2[k], tuple(sorted(parts, key=lambda part: -part[1]))))
    return tuple(found)
