"""The estimator of a fit: its parameters, read from the texts of the options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from inspect import signature

import numpy as np
from sklearn.base import BaseEstimator

from covey.estimators import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor
from covey.estimators.base import GroupSparseEstimator
from covey.estimators.classifier import ClassWeight
from covey.evidence.class_scores import class_position, positive_position
from covey.losses import Loss, Ordinal, get_loss
from covey.search.select import SelectionLike
from covey.selection import Size
from covey.settings import FitSettings
from covey.tables.complaint import TableError
from covey.terms import Constraints
from covey.terms.requirements import SHAPES, opposite
from covey.validation import Array
from covey.workflow.problem import Problem
from covey.workflow.response import Response

SELECTIONS = ("holdout", "ebic", "bic", "gcv", "discrepancy")

# A name may hold any of these marks, so that the last one counts.
MARK = re.compile(r"(.*?)(<=|>=|=)((?:(?!<=|>=|=).)*)", re.DOTALL)
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
BOUNDS = re.compile(rf"({NUMBER})?:({NUMBER})?")


def check_settings(settings: FitSettings) -> None:
    """Refuse settings that are impossible or would have no effect."""
    if settings.factors is not None and not settings.groups:
        raise TableError("--factors has no effect without --groups.")
    read_constraints(settings.constraint)
    selection = read_selection(settings.selection)
    if settings.rule is not None and not isinstance(selection, int) and selection != "holdout":
        raise TableError(f"--rule has no effect with --selection {settings.selection}.")


def make_estimator(settings: FitSettings, problem: Problem, positive: object = None) -> BaseEstimator:
    """The estimator for these settings and this response; constraints are about the odds of the positive class."""
    response = problem.response
    if response.family != "gaussian" and settings.selection == "discrepancy":
        raise TableError(
            f"--selection discrepancy needs squared loss, but the family is {response.family}: use 5, bic or ebic."
        )
    constraints = read_constraints(settings.constraint)
    if constraints and positive is not None and labels_of(response).tolist()[1:] != [positive]:
        # an estimator's constraints are about the odds of the second class in its order
        constraints = {name: opposite(value) for name, value in constraints.items()}
    values = settings.parameters() | {
        "loss": _loss(response),
        "terms": problem.terms,
        "groups": problem.given_groups,
        "always": problem.find_terms(settings.always),
        "selection": read_selection(settings.selection),
        "class_weight": _class_weight(settings, response),
        "constraints": constraints,
    }
    kind: type[GroupSparseEstimator] = GroupSparseClassifier if response.has_classes else GroupSparseRegressor
    kind = kind if response.survival is None else GroupSparseCox
    return kind(**{name: values[name] for name in signature(kind).parameters if name in values})


def _loss(response: Response) -> str | Loss:
    """The estimator's `loss`: a name, or an object if options gave it parameters."""
    if response.has_classes:
        return response.loss if response.family == "ordinal" else "multinomial"
    return response.loss.name if response.loss == get_loss(response.loss.name) else response.loss


def read_selection(text: str) -> SelectionLike:
    """The estimator's `selection` for the text of the option."""
    kind, _, number = text.partition(":")
    if kind == "size" and number.isdigit():
        return Size(int(number))
    if text.isdigit():
        if int(text) < 2:
            raise TableError(f"--selection must be at least 2 folds, not {text}.")
        return int(text)
    if text not in SELECTIONS:
        raise TableError(
            f"--selection must be a number of folds, one of {', '.join(SELECTIONS)}, or size:3 for three terms or "
            f"groups, not {text}."
        )
    return text


def labels_of(response: Response) -> Array:
    """The labels in the order of the estimator's `classes_`."""
    order = response.loss.order if isinstance(response.loss, Ordinal) else None
    return np.unique(response.y) if order is None else np.array(order)


def find_positive(settings: FitSettings, response: Response) -> object:
    """The class that --positive names, or that of two that is positive by default."""
    if settings.positive is not None:
        return _find_class(response, settings.positive, "--positive")
    position = positive_position(labels_of(response)) if response.has_classes else None
    return None if position is None else labels_of(response).tolist()[position]


def _find_class(response: Response, text: str, option: str) -> object:
    """The label with this text."""
    _refuse_without_classes(response, option)
    labels = np.unique(response.y)
    return labels.tolist()[class_position(labels, text, option)]


def _refuse_without_classes(response: Response, option: str) -> None:
    if not response.has_classes:
        raise TableError(f"{option} is for classes, but the family is {response.family}: leave it out.")


def _class_weight(settings: FitSettings, response: Response) -> ClassWeight:
    """The estimator's `class_weight` for the text of the option."""
    if not settings.class_weight:
        return None
    _refuse_without_classes(response, "--class-weight")
    if settings.class_weight == ("balanced",):
        return "balanced"
    weights = {}
    for part in ",".join(settings.class_weight).split(","):
        label, _, number = part.rpartition("=")
        if not re.fullmatch(NUMBER, number.strip()):
            raise TableError(f"--class-weight must be balanced, or a list such as ill=10,well=1; {part!r} is neither.")
        weights[_find_class(response, label.strip(), "--class-weight")] = float(number)
    return weights


def read_constraints(given: Sequence[str]) -> Constraints:
    """The estimator's `constraints` for the texts of the option; several of one name are joined.

    >>> read_constraints(["price<=0", "dose=0:2", "age=increasing,concave", "age<=3"])
    {'price': '<=0', 'dose': (0.0, 2.0), 'age': ['increasing', 'concave', '<=3']}
    """
    found: dict[str, list[object]] = {}
    for text in given:
        parts = MARK.fullmatch(text)
        if parts is None or not parts[1].strip() or not parts[3].strip():
            raise TableError(f"--constraint {text!r} must be such as 'price<=0', dose=0:2 or age=increasing.")
        name, mark, what = parts[1].strip(), parts[2], parts[3].strip()
        if mark != "=" and not re.fullmatch(NUMBER, what):
            raise TableError(f"--constraint {text!r}: a number such as 0 must follow {mark}.")
        values = (
            [f"{mark}{what}"] if mark != "=" else [_shape_or_bounds(word.strip(), text) for word in what.split(",")]
        )
        found.setdefault(name, []).extend(values)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()} or None


def _shape_or_bounds(word: str, text: str) -> object:
    """A shape, or bounds such as 0:2, where an end may be left out."""
    if word in SHAPES:
        return word
    bounds = BOUNDS.fullmatch(word)
    if bounds is None or bounds[1] is bounds[2] is None:
        raise TableError(f"--constraint {text!r}: {word!r} is not {', '.join(SHAPES)}, or bounds such as 0:2.")
    return tuple(None if end is None else float(end) for end in bounds.groups())
