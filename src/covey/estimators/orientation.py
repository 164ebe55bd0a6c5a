"""A model of two classes, written for the odds of either of them."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from covey.terms.requirements import opposite_text

__all__ = ["for_odds_of"]


def for_odds_of(model: BaseEstimator, label: object) -> BaseEstimator:
    """The same model with coefficients, effects and path for the odds of a class, which comes last in `classes_`.

    An estimator's coefficients are for ``classes_[1]``, the second in sorted order, as scikit-learn's scorers take for
    granted; where effects are shown, the reader's positive class is clearer. The model itself is returned if there is
    nothing to change: for that class, more than two classes, or another kind of response.
    """
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        turned = for_odds_of(last, label)
        return model if turned is last else Pipeline([*model.steps[:-1], (name, turned)])
    classes = getattr(model, "classes_", None)
    if classes is None or len(classes) != 2 or label is None or classes.tolist()[1] == label:
        return model
    turned, path = copy(model), model.path_
    turned.classes_ = classes[::-1]
    turned.coef_, turned.intercept_ = -model.coef_, -model.intercept_
    turned.path_ = replace(
        path, coefs=-path.coefs, intercepts=-path.intercepts, parts=None if path.parts is None else -path.parts
    )
    if model.predictor_range_ is not None:
        turned.predictor_range_ = -model.predictor_range_[::-1]
    if hasattr(model, "constraints_"):
        table = model.constraints_
        texts = [f"{opposite_text(text)} for the odds of {classes[0]}" for text in table["constraint"]]
        turned.constraints_ = table.assign(constraint=texts)
    if hasattr(model, "term_means_"):
        turned.term_means_ = -model.term_means_
    return turned
