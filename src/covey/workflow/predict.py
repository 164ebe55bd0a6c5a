"""Predict from a table with a saved model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import r2_score

from covey.estimators import GroupSparseCox
from covey.losses import Loss
from covey.persistence import ModelFileError, load
from covey.tables import TableError, apart, days_since, numbers, read_tables
from covey.tables.complaint import listed, near
from covey.validation import FloatArray
from covey.workflow.matching import as_fitted, columns_needed, last_step, one_hot_encoders, without_missing
from covey.workflow.response import read_labels, read_offset
from covey.workflow.settings import Told, silent
from covey.workflow.survival_predict import concordance_of, predict_survival, read_at

__all__ = ["Prediction", "load_fit", "predict_table"]


@dataclass(frozen=True)
class Prediction:
    """Predictions, with scores if the truth is known.

    Attributes
    ----------
    table : DataFrame
        The copied columns, then the column ``prediction``: a mean, or a class followed by columns
        ``probability_CLASS``. Several responses have one column ``prediction_RESPONSE`` each. For survival times, the
        log risk followed by columns ``survival_TIME``.
    scores : dict
        ``r2`` and ``rmse`` (per response), ``accuracy`` and ``log_loss`` of classes, ``deviance_explained`` and
        ``deviance``, or ``concordance``.
    notices : tuple of str
        Changes made to the table that the user should know about.
    """

    table: pd.DataFrame
    scores: dict[str, float] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


def load_fit(model: Path) -> Any:
    """Load a model from a folder written by ``covey fit``, or from a file."""
    return load(model / "model.skops" if model.is_dir() else model)


def predict_table(
    model: Path, data: Sequence[str], *, target: Sequence[str] = (), keep: Sequence[str] = (), at: Sequence[str] = (),
    drop_missing: bool = False, handle_unknown: str | None = None, sep: str | None = None, decimal: str = ".",
    told: Told = silent,
) -> Prediction:  # fmt: skip
    """Read a table and predict the response of each of its rows.

    Parameters
    ----------
    model : Path
        A folder written by ``covey fit``, or a file.
    data : sequence of str
        Files, patterns or folders.
    target : sequence of str
        The columns with the true values, if known: one per response of the model.
    keep : sequence of str
        Columns to copy next to the predictions.
    at : sequence of str
        For survival times: times at which to predict survival, such as ``"1,2,5"``; by default the quartiles of the
        times in the fit.
    drop_missing : bool
        Whether to leave out rows that lack a value the model needs.
    handle_unknown : {"error", "ignore"}, optional
        How to treat a category that was not in the fit; by default as set at the fit.
    sep, decimal : str
        Separator and decimal mark of text files.
    told : callable
    """
    told("loading")
    fitted = load_fit(model)
    told("reading")
    frame = read_tables(data, sep=sep, decimal=decimal)
    target, keep = apart(target, frame.columns), apart(keep, frame.columns)
    for name in (*keep, *target):
        if name not in frame.columns:
            raise TableError(f"The table has no column {name!r}; {near(name, list(frame.columns))}")
    told("predicting")
    try:
        frame, gone = without_missing(fitted, frame, target) if drop_missing else (frame, ())
        if handle_unknown is not None:
            for encoder in one_hot_encoders(fitted).values():
                encoder.handle_unknown = handle_unknown
        made = _predict(fitted, frame, target, keep, at)
        return replace(made, notices=(*gone, *made.notices))
    except (TableError, ModelFileError, MemoryError):
        raise
    except Exception as reason:
        if type(reason) is ValueError:  # raised by covey or scikit-learn; other libraries raise subclasses
            raise
        # the table has been checked, so the pipeline's steps must have been tampered with
        raise ModelFileError(f"{model} cannot be used: its steps do not match each other ({reason}).") from reason


def _predict(fitted: Any, frame: pd.DataFrame, target: list[str], keep: list[str], at: Any) -> Prediction:
    names = getattr(fitted, "feature_names_in_", None)
    if names is None:
        raise ModelFileError("The model was fitted without column names, so no table can be matched to it.")
    if len(set(names)) < len(names):
        raise ModelFileError("The model has several columns of the same name: its file has been tampered with.")
    needed = columns_needed(fitted)
    absent = [name for name in needed if name not in frame.columns]
    if absent:
        raise TableError(
            f"The table lacks {listed(absent)}, which the model needs; {near(absent[0], list(frame.columns))}"
        )
    about = getattr(fitted, "table_", {})
    last = last_step(fitted)
    _check_targets(target, last)
    shift = {} if not about.get("offset") else {"offset": _offset(frame, about["offset"])}
    dates = {name: day for name, day in about.get("dates", {}).items() if name in needed}
    days = frame[needed].assign(**{name: days_since(frame[name], day) for name, day in dates.items()})
    times, (X, notices) = read_at(at), as_fitted(days, fitted)
    if isinstance(last, GroupSparseCox):
        made = predict_survival(fitted, last, X, frame, shift, about.get("survival"), times)
    elif times:
        raise TableError("--at is for models of survival times, which this model is not.")
    else:
        made = _predictions(fitted, last, X, shift, about.get("targets"))
    table = pd.concat([frame[keep].reset_index(drop=True), made], axis=1)
    if not target:
        return Prediction(table, notices=notices)
    if isinstance(last, GroupSparseCox):
        risk = made["prediction"].to_numpy(dtype=float)
        scores = concordance_of(frame, target, last, risk, about.get("survival"))
    elif hasattr(last, "classes_"):
        scores = _class_scores(frame[target[0]], last, made)
    else:
        scores = _number_scores(frame, target, last, made.to_numpy(dtype=float), shift.get("offset"))
    return Prediction(table, scores, notices)


def _number_scores(frame: pd.DataFrame, target: list[str], last: Any, predicted: Any, offset: Any) -> dict[str, float]:
    truth = [numbers(frame[name], "--target needs numbers").to_numpy(dtype=float) for name in target]
    if not last.loss_.quadratic:
        return _deviance_scores(truth[0], predicted[:, 0], last.loss_, offset)
    scores = [_quality(own, predicted[:, k]) for k, own in enumerate(truth)]
    ends = [""] if len(target) == 1 else [f"_{name}" for name in target]
    return {f"{kind}{end}": v for end, own in zip(ends, scores, strict=True) for kind, v in own.items()}


def _check_targets(target: Sequence[str], last: Any) -> None:
    if isinstance(last, GroupSparseCox):
        if target and len(target) != 2:
            raise TableError("The model predicts survival: give --target twice, the time and then the event.")
        return
    expected = 1 if hasattr(last, "classes_") or np.ndim(last.coef_) == 1 else len(last.coef_)
    if target and len(target) != expected:
        raise TableError(f"The model predicts {expected} response{'s' * (expected > 1)}: give --target that often.")


def _offset(frame: pd.DataFrame, given: str) -> FloatArray:
    name = given if given in frame.columns else given.removeprefix("log:")
    if name not in frame.columns:
        none = "ones" if name != given else "zeros"
        raise TableError(
            f"The table lacks {name!r}, the offset of the fit: add that column, all {none} for unit exposure."
        )
    offset: FloatArray = read_offset(frame, given)[1]
    return offset


def _predictions(
    fitted: Any, last: Any, X: pd.DataFrame, shift: dict[str, Any], targets: Sequence[str] | None
) -> pd.DataFrame:
    """The columns with the predictions."""
    if hasattr(last, "classes_"):
        p = np.asarray(fitted.predict_proba(X, **shift))
        chances = {f"probability_{label}": p[:, k] for k, label in enumerate(last.classes_)}
        return pd.DataFrame({"prediction": fitted.predict(X, **shift), **chances})
    made = np.asarray(fitted.predict(X, **shift), dtype=float)
    if made.ndim == 1:
        return pd.DataFrame({"prediction": made})
    names = targets or range(made.shape[1])
    return pd.DataFrame({f"prediction_{name}": made[:, k] for k, name in enumerate(names)})


def _class_scores(column: pd.Series[Any], last: Any, made: pd.DataFrame) -> dict[str, float]:
    known = column.notna().to_numpy()
    if not known.any():
        raise TableError("--target has no known value: there is nothing to score.")
    classes = [str(label) for label in last.classes_]
    truth = [str(label) for label in read_labels(column[known], "--target")]
    unseen = sorted(set(truth) - set(classes))
    if unseen:
        raise TableError(
            f"--target holds {listed(unseen)}, which the model has not seen: its classes are {listed(classes)}."
        )
    codes = np.array([classes.index(label) for label in truth])
    p = made.drop(columns="prediction").to_numpy(dtype=float)[known]
    right = np.maximum(p[np.arange(len(codes)), codes], np.finfo(float).tiny)
    named = made["prediction"].to_numpy()[known]
    hit = np.mean([str(label) == own for label, own in zip(named, truth, strict=True)])
    return {"accuracy": float(hit), "log_loss": float(-np.log(right).mean())}


def _deviance_scores(truth: FloatArray, mean: FloatArray, loss: Loss, offset: FloatArray | None) -> dict[str, float]:
    known = np.isfinite(truth)
    _check_known(known)
    y = loss.check(truth[known], "--target")
    shift = np.zeros(len(y)) if offset is None else offset[known]
    null = loss.null(y, np.ones(len(y)), shift) + shift
    left, whole = loss.deviance(y, loss.link(mean[known])).mean(), loss.deviance(y, null).mean()
    return {"deviance_explained": float(1 - left / (whole or 1.0)), "deviance": float(left)}


def _quality(truth: FloatArray, predicted: FloatArray) -> dict[str, float]:
    known = np.isfinite(truth)
    _check_known(known)
    error = truth[known] - predicted[known]
    return {"r2": float(r2_score(truth[known], predicted[known])), "rmse": float(np.sqrt(np.mean(error**2)))}


def _check_known(known: Any) -> None:
    if known.sum() < 2:
        raise TableError("--target has fewer than two known values: there is nothing to score.")
