"""Nested scores: the choice and the fit of a model repeated without each outer fold."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_classifier
from sklearn.metrics import get_scorer

from covey.designs import Design
from covey.estimators import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor
from covey.estimators.classifier import class_weight_of_rows
from covey.estimators.reading import read_weight
from covey.evidence.class_scores import class_position
from covey.evidence.folds import as_table, event_labels, indexable, outer_folds
from covey.evidence.nested_result import MethodScore, NestedScore
from covey.evidence.refit import FoldResult, Study, refit
from covey.evidence.scoring import fold_margin, pooled, read_response, row_margin
from covey.progress import finished, showing
from covey.search.splits import SplitsLike
from covey.selection import Folds
from covey.terms.guessing import with_dates_and_codes
from covey.terms.reading import as_frame
from covey.validation import FloatArray, MatrixLike, PerRow, as_sample_weight, last_step, pandas_frame, read_row_labels


def nested_score(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    cv: SplitsLike = 5,
    *,
    sample_weight: PerRow = None,
    offset: PerRow = None,
    split_groups: PerRow = None,
    scoring: str | Callable[..., float] | None = None,
    references: bool | Mapping[str, BaseEstimator] = True,
    positive: object = None,
    n_jobs: int | None = None,
    random_state: int = 0,
    return_estimator: bool = False,
    progress: Callable[[int], None] | None = None,
    verbose: int | None = None,
) -> NestedScore:
    r"""Score a model on rows that played no part in choosing it, next to the null model, a lasso and a ridge.

    The fit, including the choice of the model, is repeated without the rows of each outer fold, which are then
    predicted. The score is the share of the null model's deviance that the model explains,

    .. math:: 1 - \frac{\sum_i w_i\, d(y_i, \hat\mu_i)}{\sum_i w_i\, d(y_i, \bar\mu_i)},

    where :math:`\hat\mu_i` and the null model's :math:`\bar\mu_i`, the mean of the response, come from fits without row
    i: R^2 for squared loss, D^2 for other losses. Several responses are weighted by their variance on the training
    rows. By hand: ``1 - cross_val_score(model, X, y, cv=result.splits, scoring="neg_mean_squared_error") /
    cross_val_score(DummyRegressor(), ...)`` gives `folds`. scikit-learn's ``"r2"`` is slightly different, because it
    compares with the mean of the test rows, which no model knows; ``scoring="r2"`` computes that.

    Parameters
    ----------
    model : GroupSparseRegressor, GroupSparseClassifier, or a Pipeline that ends with one
        It does not have to be fitted and is not changed. Any other estimator, such as `GroupSparseCox`, is scored by
        its `score` method; its attributes ``score_name`` and ``null_score`` may give the name of that score and its
        value for the null model. If a `GroupSparseCox` has groups that are always in the model, the model with only
        these is scored too.
    X : array, DataFrame, sparse matrix or genotypes, of shape (n_rows, n_features)
    y : array-like of shape (n_rows,), or (n_rows, n_responses)
    cv : int, splitter or iterable of (train, test)
        The outer folds. A number gives shuffled folds, stratified by class or event. Within each, the model is chosen
        by its own ``selection=``.
    sample_weight, offset : array-like, optional
        As in `fit`. The score is weighted too, also by the `class_weight` of a classifier.
    split_groups : array-like of shape (n_rows,), optional
        Rows with the same label stay in the same fold, both outer and inner.
    scoring : str or callable, optional
        A scikit-learn scorer to use instead of the deviance. `mean` is then the plain mean over folds, as in
        `cross_val_score`.
    references : bool or dict of str to estimator
        Whether to fit a lasso and a ridge (`LassoCV`, `RidgeCV`, or their equivalents for the loss) to the same
        columns, standardised (with ``terms=``, to the columns that encode the variables, without pairs); a dictionary
        adds your own estimators, which are fitted to X as given and scored as the model is.
    positive : object, optional
        The class that `class_scores` of the result are about; by default, of two, the affirmative
        one, such as yes or ja, or else the second.
    n_jobs : int, optional
        How many folds to run in parallel.
    random_state : int
        Seed for the folds if `cv` is a number.
    return_estimator : bool
        Whether to keep the model of each outer fold, as `estimators`.
    progress : callable, optional
        Called after each fold with the number of finished folds.
    verbose : int, optional
        1 prints a line per fold, 0 nothing; by default there is a progress bar where one can be drawn, on a terminal or
        in a notebook.

    Returns
    -------
    NestedScore
        With `mean`, `interval`, `folds`, `references` and more; prints as a small table. For classes, `class_scores`
        has base rate, AUC, average precision, Brier score, calibration, lift and a table of thresholds; for several
        responses, `responses` has the R^2 of each.

    Notes
    -----
    `interval`, which is `mean` plus or minus `margin`, is a 90% interval for the score on new rows of the model that is
    fitted to all rows; `folds` have models of fewer rows, so `mean` is slightly pessimistic. It takes no further fits.
    The standard error is computed from the deviances of single rows, with Nadeau and Bengio's correction for training
    rows that folds have in common, and is enlarged if folds differ by more than their rows explain. The quantile is
    that of Student's t with fewer degrees of freedom if few rows have most of the deviance. The standard deviation over
    folds divided by the square root of their number would be several times too small. Scores that single rows do not
    have (`scoring`, concordance) get Nadeau and Bengio's t interval over folds. ``benchmarks/nested.py`` measures how
    often the interval holds.

    Examples
    --------
    >>> from covey import GroupSparseRegressor, nested_score
    >>> from covey.datasets import make_group_sparse
    >>> data = make_group_sparse(120, 60, 3, sigma=0.5, random_state=0)
    >>> result = nested_score(GroupSparseRegressor(groups=3), data.X, data.y)
    >>> bool(result.mean > result.references["lasso"].mean)
    True
    """
    if not hasattr(model, "fit") or isinstance(model, type):
        raise ValueError(f"model must be an estimator, such as GroupSparseRegressor(groups=3), not {model!r}.")
    last = last_step(model)
    y = as_table(last, y) if isinstance(last, GroupSparseCox) else pandas_frame(y, "y")
    reads_terms = last is model and getattr(model, "terms", None) is not None
    X = with_dates_and_codes(as_frame(X)) if reads_terms else pandas_frame(X)
    has_deviance = isinstance(last, GroupSparseRegressor | GroupSparseClassifier)
    by_rows, has_classes = scoring is None and has_deviance, is_classifier(model)
    response = read_response(y, has_classes, by_rows)
    n = len(response.given)
    _check(X, y, n, offset, scoring, references, getattr(last, "selection", None))
    if positive is not None:
        if response.classes is None:
            raise ValueError("positive= names a class, but the response has none: leave it out.")
        class_position(response.classes, positive)
    weight = np.ones(n) if sample_weight is None else as_sample_weight(sample_weight, n) * n
    if split_groups is not None:
        split_groups = read_row_labels(split_groups, n, "split_groups")
    folds = outer_folds(
        cv, response.given, has_classes=has_classes, split_groups=split_groups, random_state=random_state,
        events=event_labels(last, response.given) if isinstance(last, GroupSparseCox) else None,
    )  # fmt: skip
    counts = None if sample_weight is None else read_weight(sample_weight, n)  # as they are: fits count rows by them
    given = {"sample_weight": counts, "offset": offset, "split_groups": split_groups}
    counted, notes = weight, []
    given_weight = getattr(last, "class_weight", None) if by_rows else None  # scorers do not know it
    if response.classes is not None and given_weight is not None:
        codes = (response.values if response.values.ndim == 1 else response.values.argmax(axis=1)).astype(int)
        counted = weight * class_weight_of_rows(given_weight, response.classes, codes, weight)
        notes.append(
            "weights of the classes count in D^2 as in the fit. They move the probabilities away from the shares of "
            "the classes, so Brier score and calibration, which are about the rows as they are, are poor on purpose"
        )
    study = Study(
        model, indexable(X), response, counted, {name: values for name, values in given.items() if values is not None},
        has_deviance and references is not False, dict(references) if isinstance(references, Mapping) else {},
        by_rows, get_scorer(scoring) if isinstance(scoring, str) else scoring, random_state, return_estimator,
    )  # fmt: skip
    tasks = [delayed(refit)(study, train, test) for train, test in folds]
    results: list[FoldResult] = []
    with showing("nested_score", verbose):
        for number, one in enumerate(finished(tasks, "outer fold", n_jobs), start=1):
            results.append(one)
            if verbose:
                found = ", ".join(map(str, one.selected)) or "no group"
                print(f"[covey] outer fold {number} of {len(folds)} ({number / len(folds):.0%}): {found}", flush=True)
            if progress is not None:
                progress(number)
    ratio = float(np.mean([np.count_nonzero(weight[test]) / np.count_nonzero(weight[train]) for train, test in folds]))
    if by_rows:
        assert results[0].loss is not None
        scores = _scores_of_rows(results, ratio, counted, split_groups)
        measure = "R^2" if results[0].loss.quadratic else "D^2"
    else:
        scores = _scores_of_folds(results, ratio)
        measure = getattr(last, "score_name", "score") if scoring is None else str(scoring)
    of_model = scores.pop("model")
    return NestedScore(
        of_model.mean, of_model.margin, of_model.folds, scores, measure, folds, _predictions(results, n),
        response.classes, response.values, weight, [one.selected for one in results],
        tuple(filter(None, [results[0].note, *notes])), [one.model for one in results if one.model is not None],
        positive, _scores_of_responses(results, ratio, weight, split_groups, getattr(y, "columns", None)),
        "groups" if getattr(last, "terms", None) is None else "terms",
    )  # fmt: skip


def _check(X: Any, y: Any, n: int, offset: PerRow, scoring: object, references: object, selection: object) -> None:
    """Refuse arguments that do not fit together."""
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_rows != n:
        raise ValueError(f"y has {n} entries, but X has {n_rows} rows.")
    if isinstance(X, Design):
        X.check_labels(y, "y")
    if isinstance(X, Design) and isinstance(references, Mapping) and references:
        raise ValueError("Estimators in references= need X in memory: leave them out.")
    others = references.values() if isinstance(references, Mapping) else ()
    if not isinstance(references, bool | Mapping) or not all(hasattr(one, "fit") for one in others):
        raise ValueError(
            "references must be True, False or a dictionary of estimators, such as {'trees': "
            f"RandomForestRegressor()}}, not {references!r}."
        )
    if offset is not None and np.shape(offset)[:1] != (n,):
        raise ValueError(f"offset has shape {np.shape(offset)}, but X has {n} rows: give one number per row.")
    if offset is not None and scoring is not None:
        raise ValueError("scoring= cannot be combined with an offset: leave out one of them.")
    if offset is not None and isinstance(references, Mapping) and references:
        raise ValueError("Estimators in references= cannot be combined with an offset: leave them out.")
    # without the rows of an outer fold, positions of rows change
    cv = selection.cv if isinstance(selection, Folds) else selection
    if hasattr(cv, "__iter__") and not isinstance(cv, str) and not hasattr(cv, "split"):
        raise ValueError(
            "selection= lists rows of the whole table, but an outer fold does not have all rows: give a number of "
            "folds or a splitter."
        )


def _scores_of_rows(
    results: list[FoldResult], ratio: float, weight: FloatArray, labels: PerRow
) -> dict[str, MethodScore]:
    """The scores of all methods from the deviances of all test rows; a row tested several times counts by its mean."""
    tested = np.concatenate([one.test for one in results])
    fold = np.repeat(np.arange(len(results)), [one.test.size for one in results])
    known = weight[tested] > 0
    tested, fold = tested[known], fold[known]
    counts = np.bincount(tested)
    share = weight[tested] / counts[tested]
    units = tested if labels is None else np.asarray(labels)[tested]
    losses = {name: np.concatenate([one.scores[name] for one in results])[known] for name in results[0].scores}
    null, n_deals = losses["null"], tested.size / np.count_nonzero(counts)
    means = {name: pooled(values, null, share) for name, values in losses.items()}

    def margin(name: str, beside: FloatArray | None = None) -> float:
        return row_margin(losses[name], null, share, fold, units, ratio=ratio, n_deals=n_deals, beside=beside)

    return {
        name: MethodScore(
            means[name],
            margin(name),
            np.array([pooled(one.scores[name], one.scores["null"], weight[one.test]) for one in results]),
            means["model"] - means[name],
            margin("model", values),
            results[0].what.get(name, ""),
        )
        for name, values in losses.items()
    }


def _scores_of_responses(
    results: list[FoldResult], ratio: float, weight: FloatArray, labels: PerRow, names: Sequence[Hashable] | None
) -> dict[Hashable, MethodScore]:
    """The score of each of several responses."""
    n, found = len(results[0].responses), {}
    for k, name in enumerate(range(n) if names is None else names[:n]):
        of_response = [replace(one, scores=one.responses[k]) for one in results]
        found[name] = _scores_of_rows(of_response, ratio, weight, labels)["model"]
    return found


def _scores_of_folds(results: list[FoldResult], ratio: float) -> dict[str, MethodScore]:
    """The mean scores of all methods over folds, because single rows have no score."""
    folds = {name: np.array([one.scores[name] for one in results]) for name in results[0].scores}
    model = folds["model"]
    return {
        name: MethodScore(
            float(values.mean()), fold_margin(values, ratio), values, float((model - values).mean()),
            fold_margin(model - values, ratio), results[0].what.get(name, ""),
        )
        for name, values in folds.items()
    }  # fmt: skip


def _predictions(results: list[FoldResult], n: int) -> FloatArray | None:
    """The predictions of all rows, if the folds have any; the mean if a row was tested several times."""
    if results[0].predictions is None:
        return None
    sums = np.zeros((n, *results[0].predictions.shape[1:]))
    counts = np.zeros((n, *[1] * (sums.ndim - 1)))
    for one in results:
        sums[one.test] += one.predictions
        counts[one.test] += 1
    return np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
