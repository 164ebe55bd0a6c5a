"""ClassScores: how good predicted class probabilities are, for people who have to act on them."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn import metrics
from sklearn.linear_model import LogisticRegression

from covey.losses import Binomial
from covey.validation import Array, FloatArray, PerRow

# Of two classes with these names, a reader expects scores and effects of the first kind.
YES = {
    "1", "+", "yes", "y", "ja", "j", "oui", "o", "si", "sí", "s", "sim", "true", "t", "wahr", "vrai", "on",
    "positive", "positiv", "pos", "case", "cases", "present", "dead", "abnormal", "ill", "sick", "malignant",
    "event",
}  # fmt: skip
NO = {
    "0", "-", "no", "n", "nein", "non", "nao", "não", "false", "f", "falsch", "faux", "off", "negative",
    "negativ", "neg", "control", "controls", "absent", "alive", "normal", "healthy", "well", "benign",
    "censored",
}  # fmt: skip
NOT = re.compile(r"(?:no|non|not|nicht|kein|keine|never)[\s_-]+(.+)")

# Shares of the rows with the highest probabilities, for the table of thresholds; each needs a few rows.
SHARES, FEWEST_ROWS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5), 5

# Lift is measured among this share of the rows.
TENTH = 0.1

# If the positive class has more than this share of the rows, a reader probably wants the scores of the other one.
COMMON = 0.8

# Quantile of the normal distribution for a 90% interval.
NORMAL_90 = 1.645

# Log odds of probabilities nearer to 0 or 1 than this would be infinite.
EPS = np.finfo(float).eps

NAN = float("nan")

# Log odds that differ by less than this do not order rows: models without variables in several folds.
FLAT = 0.1

# The columns of a printed table: their headings, formats and meanings.
SHOWN = {
    "base_rate": ("base rate", "{:.1%}", ""),
    "auc": ("AUC", "{:.3f}", "0.5 is chance"),
    "average_precision": ("average precision", "{:.3f}", "the base rate is chance"),
    "brier": ("Brier score", "{:.3f}", "{chance:.3f} if the base rate is predicted for every row"),
    "slope": ("calibration slope", "{:.2f}", "1 is right; below it, probabilities are too extreme"),
    "intercept": ("intercept", "{:.2f}", "0 is right; above it, probabilities are too low"),
    "lift": ("lift", "{:.1f}", "how many times as common in the tenth of the rows with the highest probabilities"),
}


def class_position(classes: Array, label: object, name: str = "positive") -> int:
    """The position of a class, given as its label or as the text of its label.

    >>> class_position(np.array([0, 1]), "0")
    0
    """
    labels = np.asarray(classes).tolist()
    found = [k for k, one in enumerate(labels) if one == label] or [
        k for k, one in enumerate(labels) if str(one) == str(label)
    ]
    if not found:
        raise ValueError(f"{name} must be one of the classes {', '.join(map(repr, labels))}, not {label!r}.")
    return found[0]


def positive_position(classes: Array) -> int | None:
    """The position of the class that scores are about by default: of two, the affirmative one, or else the second.

    Of classes that are not sorted somebody has given the order, and the second is the higher one.

    >>> [positive_position(np.array(names)) for names in (["Ja", "Nein"], ["no", "yes"], ["default", "no default"])]
    [0, 1, 0]
    >>> positive_position(np.array(["cat", "dog"])), positive_position(np.array(["a", "b", "c"]))
    (1, None)
    """
    if len(classes) != 2:
        return None
    first, second = (str(label).strip().casefold() for label in np.asarray(classes).tolist())
    denied, is_sorted = NOT.fullmatch(second), np.argsort(classes)[0] == 0
    is_first = (first in YES and second in NO) or (denied is not None and denied[1] == first)
    return 0 if is_first and is_sorted else 1


@dataclass(frozen=True, repr=False)
class ClassScores:
    """Scores of class probabilities that were predicted by models without the predicted rows; all are weighted.

    Attributes
    ----------
    classes : ndarray
        The labels.
    codes : ndarray of int, shape (n_rows,)
        The class of each row, as an index into `classes`.
    probabilities : ndarray, shape (n_rows, n_classes)
    weight : ndarray, shape (n_rows,)
    position : int or None
        The positive class, as an index; None if there are more than two classes and none was chosen.
    """

    classes: Array
    codes: NDArray[np.intp]
    probabilities: FloatArray
    weight: FloatArray
    position: int | None

    @classmethod
    def of(
        cls, classes: Array, codes: ArrayLike, probabilities: ArrayLike, weight: PerRow = None, positive: object = None
    ) -> ClassScores:
        """The scores of some rows; without `positive`, one of two classes is: see `positive_position`."""
        codes = np.asarray(codes, dtype=np.intp)
        position = positive_position(classes) if positive is None else class_position(classes, positive)
        weight = np.ones(len(codes)) if weight is None else np.asarray(weight, dtype=float)
        return cls(np.asarray(classes), codes, np.asarray(probabilities, dtype=float), weight, position)

    @property
    def positive(self) -> object:
        """The label of the positive class, or None."""
        return None if self.position is None else self.classes.tolist()[self.position]

    @property
    def predicted(self) -> NDArray[np.intp]:
        """The most likely class of each row."""
        return np.asarray(self.probabilities.argmax(axis=1))

    @property
    def accuracy(self) -> float:
        """The share of rows whose most likely class is correct."""
        return float(metrics.accuracy_score(self.codes, self.predicted, sample_weight=self.weight))

    @property
    def log_loss(self) -> float:
        """The negative mean logarithm of the true class's probability."""
        labels = np.arange(len(self.classes))
        return float(metrics.log_loss(self.codes, self.probabilities, sample_weight=self.weight, labels=labels))

    @property
    def shares(self) -> FloatArray:
        """The share of each class."""
        return np.bincount(self.codes, self.weight, len(self.classes)) / self.weight.sum()

    @property
    def commonest(self) -> object:
        """The label of the most common class."""
        return self.classes.tolist()[int(self.shares.argmax())]

    @property
    def gain(self) -> tuple[float, float]:
        """By how much the accuracy exceeds that of always saying the commonest class, and the margin of 90%."""
        right = (self.predicted == self.codes).astype(float) - (self.codes == self.shares.argmax())
        share = self.weight / self.weight.sum()
        gain = float(share @ right)
        return gain, float(NORMAL_90 * np.sqrt(np.square(share) @ np.square(right - gain)))

    def confusion(self) -> NDArray[np.intp]:
        """The number of rows by true class (first axis) and predicted class (second axis)."""
        return np.asarray(metrics.confusion_matrix(self.codes, self.predicted, labels=np.arange(len(self.classes))))

    @cached_property
    def table(self) -> pd.DataFrame:
        """One line for the positive class, or for each class against all others.

        Columns: ``base_rate``, the share of the class; ``auc``, the probability that a row of the class has a higher
        predicted probability than another row (0.5 by chance); ``average_precision`` (the base rate by chance);
        ``brier``, the mean squared error of the probability; ``slope`` and ``intercept`` of the calibration: the slope
        of a logistic regression of the class on the predicted log odds (1 if these are right, less if probabilities are
        too extreme), and what has to be added to all log odds for the right mean (0 if it is right); and ``lift``,
        how many times as common as in all rows the class is in the tenth of the rows with the highest probabilities.
        """
        which = range(len(self.classes)) if self.position is None else [self.position]
        lines = [self._scores(k) for k in which]
        return pd.DataFrame(lines, index=pd.Index(self.classes[list(which)], name="class"))

    def _scores(self, k: int) -> dict[str, float]:
        is_it, p, weight = (self.codes == k).astype(float), np.clip(self.probabilities[:, k], 0, 1), self.weight
        known = bool(is_it[weight > 0].any() and not is_it[weight > 0].all())
        slope, intercept = _calibration(is_it, p, weight) if known else (NAN, NAN)
        return {
            "base_rate": float(self.shares[k]),
            "auc": float(metrics.roc_auc_score(is_it, p, sample_weight=weight)) if known else NAN,
            "average_precision": float(metrics.average_precision_score(is_it, p, sample_weight=weight))
            if known
            else NAN,
            "brier": float(metrics.brier_score_loss(is_it, p, sample_weight=weight)),
            "slope": slope,
            "intercept": intercept,
            "lift": self._above(k, self._threshold(k, TENTH))["lift"],
        }

    @cached_property
    def thresholds(self) -> pd.DataFrame:
        """What follows from saying the positive class from a probability on; empty without one, or for a flat model.

        The thresholds are 0.5 and those that a hundredth to one half of the rows reach. Columns: ``threshold``;
        ``flagged``, the share of the rows at or above it; ``precision``, the share of the positive class among these;
        ``recall``, the share of the positive class that is among these; ``specificity``, the share of the other rows
        that are not; and ``lift``, the precision divided by the base rate.
        """
        if self.position is None or self.is_flat:
            return pd.DataFrame()
        wanted = [self._threshold(self.position, share) for share in SHARES if share * self.weight.sum() >= FEWEST_ROWS]
        return pd.DataFrame([self._above(self.position, t) for t in sorted({0.5, *wanted}, reverse=True)])

    @cached_property
    def is_flat(self) -> bool:
        """Whether all rows have about the same probabilities, so that there is nothing to order them by."""
        log_odds = Binomial().link(np.clip(self.probabilities, EPS, 1 - EPS))
        return bool((np.ptp(log_odds, axis=0) < FLAT).all())

    def _threshold(self, k: int, share: float) -> float:
        """The probability that at least this share of the rows reaches."""
        order = np.argsort(-self.probabilities[:, k], kind="stable")
        reached = np.cumsum(self.weight[order]) / self.weight.sum()
        return float(self.probabilities[order[np.argmax(reached >= share - 1e-9)], k])

    def _above(self, k: int, threshold: float) -> dict[str, float]:
        said = self.probabilities[:, k] >= threshold
        matrix = metrics.confusion_matrix(self.codes == k, said, labels=[False, True], sample_weight=self.weight)
        (true_no, false_yes), (false_no, true_yes) = matrix.tolist()
        n_yes, n_said = true_yes + false_no, true_yes + false_yes
        precision = true_yes / n_said if n_said else NAN
        return {
            "threshold": threshold,
            "flagged": n_said / self.weight.sum(),
            "precision": precision,
            "recall": true_yes / n_yes if n_yes else NAN,
            "specificity": true_no / (true_no + false_yes) if true_no + false_yes else NAN,
            "lift": precision * self.weight.sum() / n_yes if n_yes else NAN,
        }

    @property
    def remark(self) -> str:
        """How the accuracy compares with always saying the commonest class."""
        return " ".join(self._remarks())

    def _remarks(self) -> list[str]:
        gain, margin = self.gain
        always = f"Always saying {self.commonest} is right in {self.shares.max():.1%} of the rows"
        if self.is_flat:
            found = [
                f"Every row has about the same probabilities, so {self.commonest} is always the most likely class."
            ]
        elif gain > margin:
            found = [f"The most likely class is right in {self.accuracy:.1%} of the rows.", f"{always}."]
        else:
            how = "less" if gain < -margin else "about as"
            found = [
                f"{always}, and the model's most likely class is right {how} often ({self.accuracy:.1%}).",
                "Judge this model by how it orders the rows, and act from a probability that suits the costs of "
                "mistakes, not from 0.5.",
            ]
        if self.position is not None and len(self.classes) == 2 and self.shares[self.position] >= COMMON:
            rare = self.classes[1 - self.position]
            hint = f"for those of {rare}, the rarer class, say positive={str(rare)!r}."
            found.append(f"These are scores of {self.positive}; {hint}")
        return found

    def as_dict(self) -> dict[str, object]:
        """The scores as plain values, as in run.json."""

        def plain(table: pd.DataFrame) -> list[dict[Hashable, float | None]]:
            return [{name: plain_number(value) for name, value in line.items()} for line in table.to_dict("records")]

        scores = plain(self.table)
        return {
            "positive": None if self.position is None else str(self.positive),
            "accuracy": self.accuracy,
            "commonest": str(self.commonest),
            "commonest_share": float(self.shares.max()),
            "log_loss": self.log_loss,
            "confusion": self.confusion().tolist(),
            "scores": dict(zip(map(str, self.table.index), scores, strict=True))
            if self.position is None
            else scores[0],
            "thresholds": plain(self.thresholds),
        }

    def __str__(self) -> str:
        shown = pd.DataFrame(
            {head: [_text(value, number) for value in self.table[name]] for name, (head, number, _) in SHOWN.items()},
            index=self.table.index,
        )
        if self.position is None:
            lines = ["Held-out probabilities of each class against the others:", shown.rename_axis(None).to_string()]
            return "\n".join([*lines, *self._remarks()])
        base = self.table["base_rate"].iloc[0]
        lines = [f"Held-out probabilities of {self.positive}, {base:.1%} of the rows (the base rate)"]
        if not self.is_flat:
            for head, _, meaning in [*SHOWN.values()][1:]:
                lines.append(f"  {head:<17}  {shown[head].iloc[0]:>6}   {meaning.format(chance=base * (1 - base))}")
        return "\n".join([*lines, *self._remarks()])

    __repr__ = __str__


def _calibration(is_it: FloatArray, p: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """The calibration slope, NaN if there is none, and the calibration intercept at slope one."""
    loss = Binomial()
    log_odds = loss.link(np.clip(p, EPS, 1 - EPS))
    intercept = float(np.ravel(loss.null(is_it, weight, log_odds))[0])
    separated = log_odds[is_it > 0].min() > log_odds[is_it == 0].max()
    if separated or np.ptp(log_odds) < FLAT:
        return NAN, intercept
    # without a penalty; the log odds are scaled for the solver
    scale = float(np.abs(log_odds).max())
    line = LogisticRegression(C=np.inf, tol=1e-8).fit(log_odds[:, None] / scale, is_it, sample_weight=weight)
    return float(line.coef_[0, 0]) / scale, intercept


def _text(value: float, number: str) -> str:
    """A score as it is printed: a dash if there is none, and no minus before zero."""
    text = "-" if np.isnan(value) else number.format(value)
    return text if re.search("[1-9]", text) else text.removeprefix("-") or text


def plain_number(value: float) -> float | None:
    """None instead of NaN, which JSON does not have."""
    return float(value) if np.isfinite(value) else None
