"""How well a model predicts, on held-out and training rows: R^2 or its analogue for other losses, and per response."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.metrics import r2_score

from covey.evidence import NestedScore
from covey.evidence.nested_result import MEASURES
from covey.report.fitted import Fitted
from covey.validation import FloatArray, on_host

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


def quality(fit: Fitted, test: Test) -> tuple[Score, ...]:
    """The available scores, most informative first."""
    model, nested, chosen_by, name, found = fit.model, fit.nested, fit.judged, fit.measure, []
    capital = f"{name[:1].upper()}{name[1:]}"
    if test is not None:
        shift = test[2] if len(test) > 2 else None
        note = f"On {np.shape(test[0])[0]} test rows, which were used for nothing else."
        found.append(Score(f"{capital} on test rows", Fitted(model, test[0], test[1], offset=shift).explained, note))
        if hasattr(model, "classes_"):
            accuracy = model.score(test[0], test[1], offset=shift)
            found.append(Score("Accuracy on test rows", accuracy, note, is_share=True))
    if nested is not None:
        null = nested.references.get("null")
        known = [] if np.isnan(nested.margin) else [f"± {nested.margin:.{nested.digits}f} (90% interval)"]
        if nested.measure not in MEASURES and null is not None:
            known.append(f"{null.what or 'that of the null model'} is {null.mean:.3g}".replace("-", "−"))
        note = (
            f"{'; '.join(known)}{'. ' * bool(known)}On rows that played no part in choosing the model: the whole fit "
            f"was repeated in {nested.n_folds} outer folds."
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
    if fit.X is not None:
        note = f"On the rows the model was fitted to: always optimistic.{_below(fit.explained, name, nested)}"
        found.append(Score(f"{capital} on training rows", fit.explained, note))
    return tuple(found)


def _below(value: float, name: str, nested: NestedScore | None) -> str:
    """The explanation of an optimistic score, if the held-out one is the same measure and above it."""
    if nested is None or nested.measure.replace("^2", "²") != name or round(nested.mean - value, 3) <= 0:
        return ""
    return f" {BELOW}"


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


def responses(fit: Fitted, outputs: tuple[str, ...]) -> tuple[Response, ...]:
    """The responses of a model; empty for a single response or classes."""
    model, nested = fit.model, fit.nested
    if not model.loss_.several:
        return ()
    groups, coefs = model.groups_, model.coef_
    r2: list[float | None] = [None] * len(coefs)
    if fit.X is not None:
        left, fitted = fit.response.y - fit.shift, in_memory(model.predict(fit.X))
        shares = r2_score(left, fitted, sample_weight=fit.weight, multioutput="raw_values")
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
