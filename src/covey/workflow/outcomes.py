"""A saved model and a table: the columns that it needs, what it predicts, and how predictions are scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.metrics import r2_score

from covey.estimators.survival import concordance_index
from covey.evidence.class_scores import ClassScores
from covey.losses import survival
from covey.losses.cox import read_survival
from covey.persistence import ModelFileError
from covey.settings import PredictSettings
from covey.tables.columns import complete_rows, labels, missing_values, number_column, numbers, numeric_frame
from covey.tables.complaint import TableError, listed, near
from covey.terms import Encoding
from covey.validation import Array, FloatArray, MatrixLike, last_step
from covey.workflow.response import read_offset
from covey.workflow.survival import read_events, read_strata


def outcome_of(fitted: Any, frame: pd.DataFrame, settings: PredictSettings) -> Outcome:
    """The outcome of a table's rows, of the kind that the model's last step can predict."""
    last = last_step(fitted)
    survives = hasattr(last, "predict_survival_function")
    kind = Classes if hasattr(last, "classes_") else Survival if survives else Outcome
    return kind(fitted, frame, settings)


def read_at(given: Sequence[str]) -> list[float]:
    """Parse times given as ``1,2,5`` or by repeating the option.

    >>> read_at(["1,2", "5"])
    [1.0, 2.0, 5.0]
    """
    times = []
    for word in (part.strip() for text in given for part in text.split(",")):
        try:
            times.append(float(word))
        except ValueError:
            raise TableError(f"--at must be a list of times such as 1,2,5; {word!r} is not a number.") from None
        if not (np.isfinite(times[-1]) and times[-1] >= 0):
            raise TableError(f"--at {word}: times must be finite and not negative.")
    return list(dict.fromkeys(times))


class Outcome:
    """What a saved model predicts for a table: numbers, one or several for each row; other kinds are subclasses."""

    def __init__(self, fitted: Any, frame: pd.DataFrame, settings: PredictSettings) -> None:
        steps = getattr(fitted, "steps", [("model", fitted)])
        self.fitted, self.estimator = fitted, steps[-1][1]
        # what the fit saved about its table; nothing for a model saved by `covey.save`
        self.facts: Mapping[str, Any] = getattr(fitted, "table_", {})
        self._steps = fitted[:-1] if len(steps) > 1 else None
        expansion = getattr(self.estimator, "expansion_", None)
        self._encoding: Encoding | None = None if expansion is None else expansion.encoding
        # intervals need the columns of the folds' models too
        self._of_folds = None if settings.interval is None else getattr(self.estimator, "held_out_", None)
        self.frame, self.notices = self._complete(frame, settings.target) if settings.drop_missing else (frame, [])
        self.offset = self._read_offset()
        self.X = self._read_columns()

    @cached_property
    def names(self) -> list[str]:
        """The columns of the fit's table."""
        names = getattr(self.fitted, "feature_names_in_", None)
        if names is None:
            raise ModelFileError("The model was fitted without column names, so no table can be matched to it.")
        if len(set(names)) < len(names):
            raise ModelFileError("The model has several columns of the same name: its file has been tampered with.")
        return [str(name) for name in names]

    @cached_property
    def needed(self) -> list[str]:
        """The columns of the table that the model uses; all of them for a pipeline that the user built."""
        coef = getattr(self.estimator, "coef_", None)
        if coef is None or self._steps is not None:
            return self.names
        used = (np.atleast_2d(coef) != 0).any(axis=0)
        if self._of_folds is not None:
            used[self._of_folds.columns] = True
        if self._encoding is not None:
            return self.estimator.expansion_.variables_in(used)
        return list(np.array(self.names)[used]) if len(self.names) == len(used) else self.names

    @property
    def strata(self) -> Sequence[str]:
        """The columns of strata of a model of survival times."""
        return (self.facts.get("survival") or {}).get("strata", ())

    @property
    def offset_names(self) -> tuple[str, ...]:
        """The column of the offset, as it was given and without the prefix of logarithms."""
        given = self.facts.get("offset") or ""
        return (given, given.removeprefix("log:")) if given else ()

    def _complete(self, frame: pd.DataFrame, target: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
        """Leave out rows that lack a value without which there is no prediction."""
        used = {*target, *self.strata, *self.offset_names}
        used |= set(self.needed) if self._steps is None and self._encoding is None else set()
        complete, notices = complete_rows(frame, [name for name in frame.columns if name in used])
        if complete.empty:
            raise TableError("--drop-missing leaves no row: every row lacks a value that the model needs.")
        return complete, notices

    def _read_offset(self) -> dict[str, FloatArray]:
        """The offset of the fit as a keyword argument; empty if the fit had none."""
        if not self.offset_names:
            return {}
        given, plain = self.offset_names
        if given not in self.frame.columns and plain not in self.frame.columns:
            none = "ones" if plain != given else "zeros"
            raise TableError(
                f"The table lacks {plain!r}, the offset of the fit: add that column, all {none} for unit exposure."
            )
        return {"offset": read_offset(self.frame, given)[1]}

    def _read_columns(self) -> MatrixLike:
        """The variables or columns that the estimator expects."""
        frame, absent = self.frame, [name for name in self.needed if name not in self.frame.columns]
        if absent:
            raise TableError(
                f"The table lacks {listed(absent)}, which the model needs; {near(absent[0], list(frame.columns))}"
            )
        if self._steps is not None:
            return self._steps.transform(frame[self.names])
        if self._encoding is not None:
            return self._variables(self._encoding.variables)
        return self._numbers(frame[self.needed])

    def _numbers(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns of a matrix; those with zero coefficients may be missing from the table, and are zero."""
        numeric = numeric_frame(frame, "the model was fitted on numbers there")
        if missing := missing_values(numeric):
            shown = listed({name: str(count) for name, count in missing.items()})
            raise TableError(
                f"Values are missing in {shown}; leave out such rows with --drop-missing, or fit the model without "
                "--groups: then missing values are allowed."
            )
        return numeric.reindex(columns=self.names, fill_value=0.0)

    def _variables(self, variables: Sequence[str]) -> pd.DataFrame:
        """The variables of the fit; those without an effect may be missing. `predict` says what is unusual in them."""
        start = (self.facts.get("survival") or {}).get("start")
        known = {*self.names, *self.facts.get("targets", ()), *self.strata, *self.offset_names, start}
        if extra := [name for name in self.frame.columns if name not in known]:
            self.notices = [*self.notices, f"The model was fitted without {listed(extra)}: ignored."]
        others = {name: None for name in variables if name not in self.needed}
        return self.frame.assign(**others)[list(variables)]

    @property
    def n_targets(self) -> int:
        """The number of columns with true values."""
        return len(self.estimator.coef_) if self.estimator.loss_.several else 1

    def check(self, target: Sequence[str], times: Sequence[float]) -> None:
        """Refuse options that do not suit the model."""
        n = self.n_targets
        if target and len(target) != n:
            raise TableError(f"The model predicts {n} response{'s' * (n > 1)}: give --target that often.")
        if times:
            raise TableError("--at is for models of survival times, which this model is not.")

    def predict(self, times: Sequence[float]) -> pd.DataFrame:
        """The columns with the predictions."""
        return self._columns(prediction=self.estimator.predict(self.X, **self.offset))

    def intervals(self, share: float) -> pd.DataFrame:
        """The columns with intervals that contain the response of this share of new rows."""
        lower, upper = self.estimator.predict(self.X, **self.offset, interval=share)
        return self._columns(lower=lower, upper=upper)

    def _columns(self, **named: ArrayLike) -> pd.DataFrame:
        """Columns with these names; of several responses, one each."""
        values = {name: np.asarray(one, dtype=float) for name, one in named.items()}
        if all(one.ndim == 1 for one in values.values()):
            return pd.DataFrame(values)
        targets = self.estimator.loss_.outputs or self.facts.get("targets") or range(self.n_targets)
        return pd.DataFrame({f"{name}_{t}": values[name][:, k] for k, t in enumerate(targets) for name in values})

    def score(self, target: Sequence[str], predictions: pd.DataFrame) -> dict[str, float]:
        """How well the predictions agree with the true values."""
        scores: dict[str, float] = {}
        for k, name in enumerate(target):
            truth = numbers(self.frame[name], "--target needs numbers").to_numpy(dtype=float)
            known = np.isfinite(truth)
            if known.sum() < 2:
                raise TableError("--target has fewer than two known values: there is nothing to score.")
            shift = self.offset["offset"][known] if self.offset else np.zeros(known.sum())
            predicted = predictions.to_numpy(dtype=float)[known]
            if self.n_targets > 1 or predicted.shape[1] == 1:  # otherwise several quantiles of one response
                predicted = predicted[:, k]
            found = self._score_one(truth[known], predicted, shift)
            scores |= {kind if len(target) == 1 else f"{kind}_{name}": value for kind, value in found.items()}
        return scores

    def _score_one(self, truth: FloatArray, mean: FloatArray, shift: FloatArray) -> dict[str, float]:
        loss = self.estimator.loss_
        if loss.quadratic:
            rmse = np.sqrt(np.mean((truth - mean) ** 2))
            return {"r2": float(r2_score(truth - shift, mean - shift)), "rmse": float(rmse)}
        y = loss.check(truth, "--target")
        shift = np.broadcast_to(shift.reshape(len(y), *[1] * (y.ndim - 1)), y.shape)
        null = loss.null(y, np.ones(len(y)), shift) + shift
        left, total = loss.deviance(y, loss.link(mean)).mean(), loss.deviance(y, null).mean()
        return {"deviance_explained": float(1 - left / (total or 1.0)), "deviance": float(left)}


class Classes(Outcome):
    """Classes, with their probabilities."""

    n_targets = 1

    def predict(self, times: Sequence[float]) -> pd.DataFrame:
        p = np.asarray(self.estimator.predict_proba(self.X, **self.offset))
        chances = {f"probability_{label}": p[:, k] for k, label in enumerate(self.estimator.classes_)}
        return pd.DataFrame({"prediction": self.estimator.predict(self.X, **self.offset), **chances})

    def intervals(self, share: float) -> pd.DataFrame:
        """The classes in the set of each row, in the order of the labels."""
        sets = self.estimator.predict(self.X, **self.offset, interval=share)
        names = np.array([str(label) for label in self.estimator.classes_], dtype=object)
        return pd.DataFrame({"set": ["|".join(names[row]) for row in sets]})

    def score(self, target: Sequence[str], predictions: pd.DataFrame) -> dict[str, float]:
        column = self.frame[target[0]]
        known = column.notna().to_numpy()
        if not known.any():
            raise TableError("--target has no known value: there is nothing to score.")
        classes = [str(label) for label in self.estimator.classes_]
        truth = [str(label) for label in labels(column[known], "--target")]
        unseen = sorted(set(truth) - set(classes))
        if unseen:
            raise TableError(
                f"--target holds {listed(unseen)}, which the model has not seen: its classes are {listed(classes)}."
            )
        p = predictions.drop(columns="prediction").to_numpy(dtype=float)[known]
        codes = np.array([classes.index(label) for label in truth])
        scores = ClassScores.of(self.estimator.classes_, codes, p, positive=self.facts.get("positive"))
        found = {"accuracy": scores.accuracy, "always_commonest": scores.shares.max(), "log_loss": scores.log_loss}
        about_positive = [] if scores.position is None else scores.table.iloc[0].dropna().items()
        return {str(name): float(value) for name, value in [*found.items(), *about_positive]}


class Survival(Outcome):
    """The log risk, and the probability of no event by a few times."""

    def check(self, target: Sequence[str], times: Sequence[float]) -> None:
        if target and len(target) != 2:
            raise TableError("The model predicts survival: give --target twice, the time and then the event.")

    def predict(self, times: Sequence[float]) -> pd.DataFrame:
        """Survival is NaN beyond the follow-up of a row's stratum; without times, it is that at the fit's quartiles."""
        model, survived = self.estimator, self.facts.get("survival")
        columns = {"prediction": np.asarray(model.predict(self.X, **self.offset), dtype=float)}
        if survived is None and model.strata_ is not None:
            return pd.DataFrame(columns)  # the file does not describe the table of the fit
        facts = survived or {"quartiles": (), "ends": [model.event_times_[-1]]}
        at, ends = np.array(list(times) or facts["quartiles"], dtype=float), np.array(facts["ends"])
        if (at > ends.max()).any():
            raise TableError(
                f"--at {at.max():g} lies beyond the follow-up of the fit, which ends at {ends.max():g}: survival by "
                "then is unknown."
            )
        strata = self._strata()
        followed = ends[0] if strata is None else ends[np.searchsorted(model.strata_, strata)]
        if len(at):
            chances = model.predict(self.X, **self.offset, at=at, strata=strata)
            for time, chance in zip(at, chances.T, strict=True):
                digits = "g" if float(f"{time:g}") == time else ".15g"  # times that differ have columns that do
                columns[f"survival_{time:{digits}}"] = np.where(time > followed, np.nan, chance)
        return pd.DataFrame(columns)

    def intervals(self, share: float) -> pd.DataFrame:
        """The time that this share of rows live at least."""
        return pd.DataFrame(
            {"lower": self.estimator.predict(self.X, **self.offset, interval=share, strata=self._strata())}
        )

    def score(self, target: Sequence[str], predictions: pd.DataFrame) -> dict[str, float]:
        facts = self.facts.get("survival") or {"event_value": (), "start": None, "strata": ()}
        needed = [*facts["strata"], *([facts["start"]] if facts["start"] is not None else [])]
        absent = [name for name in needed if name not in self.frame.columns]
        if absent:
            raise TableError(f"The table lacks {listed(absent)}, used in the fit: needed for the score.")
        time = number_column(self.frame[target[0]], "--target")
        event = read_events(self.frame[target[1]], facts["event_value"])
        start = None if facts["start"] is None else number_column(self.frame[facts["start"]], "--target")
        truth = read_survival(survival(time, event, start=start, strata=self._strata())).rows
        risk = predictions["prediction"].to_numpy(dtype=float)
        return {"concordance": concordance_index(truth, risk, np.ones(len(risk)))}

    def _strata(self) -> Array | None:
        """The stratum of each row, as the model encodes it; None if it has none, or does not know their columns."""
        known, names = self.estimator.strata_, self.strata
        if known is None or not names:
            return None
        absent = [name for name in names if name not in self.frame.columns]
        if absent:
            raise TableError(
                f"The table lacks {listed(absent)}, the strata of the fit, each with its own hazard; "
                f"{near(absent[0], list(self.frame.columns))}"
            )
        found = read_strata(self.frame, names)
        assert found is not None
        places = {str(label): label for label in known.tolist()}
        texts = [str(label) for label in (found.astype(str) if known.dtype.kind == "U" else found).tolist()]
        unknown = sorted(set(texts) - set(places))
        if unknown:
            raise TableError(
                f"--strata {' and '.join(map(repr, names))} of the fit: the table holds {listed(unknown)}, which the "
                f"model has not seen; it knows {listed(known.tolist())}."
            )
        return np.array([places[text] for text in texts], dtype=known.dtype)
