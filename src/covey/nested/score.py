"""nested_score: the whole fit, including model selection, repeated without each outer fold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import is_classifier
from sklearn.metrics import get_scorer
from sklearn.pipeline import Pipeline

from covey.estimators import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor
from covey.nested.folds import Rows, event_labels, outer_folds, row_taker
from covey.nested.judging import Response, read_response
from covey.nested.refit import FoldResult, Given, refit, rescore
from covey.nested.result import MethodScore, NestedScore
from covey.nested.spread import fold_error, pooled, row_error
from covey.selection import Folds
from covey.validation import FloatArray, as_sample_weight, on_host, pandas_frame

__all__ = ["nested_score"]


def nested_score(
    model: Any,
    X: Any,
    y: Any,
    cv: Any = 5,
    *,
    sample_weight: Any = None,
    offset: Any = None,
    split_groups: Any = None,
    scoring: Any = None,
    references: bool | Mapping[str, Any] = True,
    n_jobs: int | None = None,
    random_state: int = 0,
    return_estimator: bool = False,
    progress: Callable[[int], None] | None = None,
    verbose: int = 0,
) -> NestedScore:
    r"""Score a model on rows that played no part in choosing it, next to the null model, a lasso and a ridge.

    The whole fit, including the choice of the model, is repeated without the rows of each outer fold, which are then
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
        its own `score` method; its attributes ``score_name`` and ``null_score`` may give the name of that score and its
        value for the null model. If a `GroupSparseCox` has groups that are always in the model, the model with only
        these is scored too.
    X : array, DataFrame or sparse matrix, of shape (n_rows, n_features)
    y : array-like of shape (n_rows,), or (n_rows, n_responses)
    cv : int, splitter or iterable of (train, test)
        The outer folds. A number gives shuffled folds, stratified by class or event. Within each, the model is chosen
        by its own ``selection=``.
    sample_weight, offset : array-like, optional
        As in `fit`. The score is weighted too.
    split_groups : array-like of shape (n_rows,), optional
        Rows with the same label stay in the same fold, both outer and inner.
    scoring : str or callable, optional
        A scikit-learn scorer to use instead of the deviance. `mean` is then the plain mean over folds, as in
        `cross_val_score`.
    references : bool or dict of str to estimator
        Whether to fit a lasso and a ridge (`LassoCV`, `RidgeCV`, or their equivalents for the loss) to the same
        columns, standardised; a dictionary adds your own estimators, which are fitted to X as given.
    n_jobs : int, optional
        How many folds to run in parallel.
    random_state : int
        Seed for the folds if `cv` is a number.
    return_estimator : bool
        Whether to keep the model of each outer fold, as `estimators`.
    progress : callable, optional
        Called after each fold with the number of finished folds.
    verbose : int
        1 prints a line per fold.

    Returns
    -------
    NestedScore
        With `mean`, `std_error`, `folds`, `references` and more; prints as a small table.

    Notes
    -----
    `std_error` is wider than a textbook standard error: nine times out of ten, the score on new rows of the model
    fitted to all rows should be within it. It is 1.645 times a standard error computed from the deviances of single
    rows, with Nadeau and Bengio's correction for training rows that folds have in common. The standard deviation over
    folds divided by the square root of their number would be several times too small. ``benchmarks/nested.py`` measures
    the coverage.

    Examples
    --------
    >>> from covey import GroupSparseRegressor, nested_score
    >>> from covey.datasets import make_group_sparse
    >>> data = make_group_sparse(120, 60, 3, sigma=0.5, random_state=0)
    >>> result = nested_score(GroupSparseRegressor(groups=3), data.X, data.y)
    >>> bool(result.mean > result.references["lasso"].mean)
    True
    """
    X, y = pandas_frame(X), pandas_frame(y, "y")
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    by_rows = scoring is None and isinstance(last, GroupSparseRegressor | GroupSparseClassifier)
    has_classes = is_classifier(model)
    response = read_response(y, has_classes) if by_rows or has_classes else _untouched(y)
    n = len(response.given)
    _check(X, n, offset, scoring, references)
    _check_selection(getattr(last, "selection", None))
    weight = np.ones(n) if sample_weight is None else as_sample_weight(sample_weight, n) * n
    folds = outer_folds(
        cv, response.given, has_classes=has_classes, split_groups=split_groups, random_state=random_state,
        events=event_labels(last, response.given) if isinstance(last, GroupSparseCox) else None,
    )  # fmt: skip
    others = dict(references) if isinstance(references, Mapping) else {}
    known = isinstance(last, GroupSparseRegressor | GroupSparseClassifier)
    given = Given(
        model, row_taker(X), response, weight, sample_weight is not None, offset, split_groups,
        known and references is not False, others, random_state, return_estimator,
    )  # fmt: skip
    scorer = None if scoring is None else get_scorer(scoring) if isinstance(scoring, str) else scoring
    tasks = (
        delayed(refit)(given, train, test) if by_rows else delayed(rescore)(given, scorer, train, test)
        for train, test in folds
    )
    results = []
    for number, one in enumerate(Parallel(n_jobs=n_jobs, return_as="generator")(tasks), start=1):
        results.append(one)
        if verbose:
            found = ", ".join(map(str, one.selected)) or "no group"
            print(f"[covey] outer fold {number} of {len(folds)} ({number / len(folds):.0%}): {found}", flush=True)
        if progress is not None:
            progress(number)
    if by_rows:
        return _from_rows(results, folds, response, weight, split_groups)
    measure = getattr(last, "score_name", "score") if scoring is None else str(scoring)
    return _from_scores(results, folds, response, weight, measure)


def _untouched(y: Any) -> Response:
    """A response that the estimator reads itself: numbers, records, or a table."""
    if isinstance(y, tuple):
        raise ValueError(
            "y is a pair of arrays: give one array with an entry per row, for instance from covey.survival."
        )
    given = y if hasattr(y, "iloc") else np.asarray(on_host(y))
    return Response(given, given)


def _check(X: Any, n: int, offset: Any, scoring: Any, references: Any) -> None:
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if rows != n:
        raise ValueError(f"y has {n} entries, but X has {rows} rows.")
    if offset is None:
        return
    if scoring is not None:
        raise ValueError("scoring= cannot be combined with an offset: leave out one of them.")
    if isinstance(references, Mapping) and references:
        raise ValueError("Your own references= cannot be combined with an offset: leave them out.")


def _check_selection(selection: Any) -> None:
    """Refuse folds given as lists of rows: without the rows of an outer fold, positions change."""
    cv = selection.cv if isinstance(selection, Folds) else selection
    if hasattr(cv, "__iter__") and not isinstance(cv, str) and not hasattr(cv, "split"):
        raise ValueError(
            "selection= lists rows of the whole table, but an outer fold does not have all rows: give a number of "
            "folds or a splitter."
        )


def _from_rows(
    results: list[FoldResult], folds: list[tuple[Rows, Rows]], response: Response, weight: FloatArray, labels: Any
) -> NestedScore:
    """Combine the deviances of all test rows; a row that was tested several times counts with its mean."""
    n = len(response.given)
    tested = np.zeros(n)
    sums = {name: np.zeros(n) for name in results[0].losses}
    predictions = np.zeros(response.values.shape)
    per_fold: dict[str, list[float]] = {name: [] for name in sums}
    for one in results:
        tested[one.test] += 1
        assert one.means is not None
        predictions[one.test] += one.means
        for name, losses in one.losses.items():
            sums[name][one.test] += losses
            per_fold[name].append(pooled(losses, one.losses["null"], weight[one.test]))
    rows = tested > 0
    with np.errstate(invalid="ignore"):
        predictions = predictions / tested.reshape(-1, *[1] * (predictions.ndim - 1))
    every, null = {name: own[rows] for name, own in sums.items()}, sums["null"][rows]
    count, own_labels = weight[rows], None if labels is None else np.asarray(labels)[rows]
    k = len(folds)

    def scored(name: str) -> MethodScore:
        return MethodScore(
            pooled(every[name], null, count),
            row_error(every[name], null, count, k, own_labels),
            np.array(per_fold[name]),
            pooled(every["model"], null, count) - pooled(every[name], null, count),
            row_error(every["model"], null, count, k, own_labels, beside=every[name]),
            results[0].what.get(name, ""),
        )

    found = {name: scored(name) for name in sums}
    made = found.pop("model")
    measure = "R^2" if results[0].loss is not None and results[0].loss.quadratic else "D^2"
    return NestedScore(
        made.mean, made.std_error, made.folds, found, measure, folds, predictions, response.classes, response.values,
        weight, [one.selected for one in results], tuple(filter(None, {results[0].note})),
        [one.fitted for one in results if one.fitted is not None],
    )  # fmt: skip


def _from_scores(
    results: list[FoldResult], folds: list[tuple[Rows, Rows]], response: Response, weight: FloatArray, measure: str
) -> NestedScore:
    """Combine scores of folds by their mean, because single rows have no score."""
    per_fold = {name: np.array([one.scores[name] for one in results]) for name in results[0].scores}
    own = per_fold["model"]
    found = {
        name: MethodScore(
            float(values.mean()), fold_error(values), values, float((own - values).mean()), fold_error(own - values),
            results[0].what.get(name, ""),
        )
        for name, values in per_fold.items()
        if name != "model"
    }  # fmt: skip
    return NestedScore(
        float(own.mean()), fold_error(own), own, found, measure, folds, _predictions(results, len(weight)),
        response.classes, response.values, weight, [one.selected for one in results],
        tuple(filter(None, {results[0].note})), [one.fitted for one in results if one.fitted is not None],
    )  # fmt: skip


def _predictions(results: list[FoldResult], n: int) -> FloatArray | None:
    """The predictions of all rows, if the folds have any; the mean if a row was tested several times."""
    sums, tested = np.zeros(n), np.zeros(n)
    for one in results:
        if one.means is None:
            return None
        sums[one.test] += one.means
        tested[one.test] += 1
    return np.divide(sums, tested, out=np.full(n, np.nan), where=tested > 0)
