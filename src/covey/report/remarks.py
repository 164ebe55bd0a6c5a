"""What to keep in mind when reading a fit: what was found, what it means, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from covey.nested import NestedScore
from covey.nested.result import MEASURES
from covey.report.quality import is_squared
from covey.selection.agreement import fold_counts, split_warning
from covey.selection.judged import Judged
from covey.stability.overlap import Overlap, Overlaps, find_overlaps, inner_coherence

__all__ = ["Remark", "remarks"]

# Canonical correlation from which two groups carry nearly the same information.
VERY_CLOSE = 0.9

# Correlation within a group that deserves a remark if groups were not orthonormalised. The paper requires far less, but
# only an eigenvalue this far from 1 delays a group visibly.
INNER = 0.9

# The most names in one sentence.
MOST_NAMES = 5

# With at least this many groups, a model with more than this share of them is hardly sparse.
MANY, MOST_OF = 8, 0.5

# A model that removes less than this share of the error hardly predicts.
POOR_R2 = 0.05

# Standard errors within which the null model cannot be distinguished from the fitted one.
WEAK = 2.0


@dataclass(frozen=True)
class Remark:
    """One thing to keep in mind.

    Attributes
    ----------
    heading : str
    meaning : str
        What was found and what it means.
    remedy : str
        What to do; empty if nothing is needed.
    serious : bool
        Whether it can change the conclusions.
    """

    heading: str
    meaning: str
    remedy: str = ""
    serious: bool = False


@dataclass(frozen=True)
class Fit:
    """What remarks are based on: a fitted estimator, the errors of its candidates, the data and the nested score."""

    model: Any
    judged: Judged | None
    X: Any
    y: Any
    nested: NestedScore | None

    @cached_property
    def selected(self) -> Any:
        """Positions of the groups in the model, strongest first."""
        found = np.flatnonzero(self.model.group_norms_)
        return found[np.argsort(-self.model.group_strengths_[found], kind="stable")]

    @cached_property
    def names(self) -> list[Any]:
        """The selected groups, without those that are always in."""
        return [name for name in self.model.selected_groups_ if name not in self.model.always_groups_]

    @property
    def is_dense(self) -> bool:
        """Whether the model is a ridge on all groups."""
        return " on all groups" in self.model.recipe_

    @property
    def is_infinite(self) -> bool:
        """Whether a ridge replaces infinite estimates."""
        return self.model.shrunk_ and " is infinite " in self.model.recipe_

    @cached_property
    def overlaps(self) -> Overlaps:
        """The groups that each selected group is most easily confused with."""
        model = self.model
        return find_overlaps(self.X, self.y, model.groups_, self.selected, centre=model.fit_intercept)

    @property
    def comparable(self) -> list[Overlap]:
        """Pairs of groups with fewer columns than there are rows."""
        return [pair for pair in self.overlaps.pairs if pair.chance < 1]


def remarks(
    model: Any, chosen_by: Judged | None, X: Any = None, y: Any = None, nested: NestedScore | None = None
) -> tuple[Remark, ...]:
    """All remarks on a fit, serious ones first.

    Parameters
    ----------
    model : a fitted estimator
    chosen_by : Judged or None
        The errors of its candidates.
    X, y : the data; without them there are no remarks on correlated groups.
    nested : NestedScore or None
        The score on rows that played no part in choosing the model.
    """
    fit = Fit(model, chosen_by, X, y, nested)
    checks = [*ON_THE_SCORE, *(ON_THE_MODEL if fit.selected.size else ())]
    checks += ON_THE_GROUPS if fit.selected.size and X is not None else ()
    found = [remark for check in checks if (remark := check(fit)) is not None]
    return tuple(sorted(found, key=lambda remark: not remark.serious))


def hardly_predicts(fit: Fit) -> Remark | None:
    nested = fit.nested
    if nested is not None and nested.measure not in MEASURES:
        null = nested.references.get("null")
        if null is None or nested.mean - null.mean > nested.std_error:
            return None
        found = (
            f"On held-out rows, {nested.measure} is {nested.mean:.2f} ± {nested.std_error:.2f}, and chance is "
            f"{null.mean:g}."
        )
        more = "more rows and events"
    else:
        r2 = nested.mean if nested is not None else None if fit.judged is None else fit.judged.r2
        if r2 is None or r2 >= POOR_R2:
            return None
        where = "held-out rows" if nested is not None else "the rows used to choose it"
        error = "squared error" if is_squared(fit.model) else "deviance"
        found, more = f"On {where} it removes {max(r2, 0.0):.0%} of the null model's {error}.", "more rows"
    return Remark(
        "The model hardly predicts",
        f"{found} The selected groups then mean little.",
        f"Look for better columns or {more} before interpreting the groups.",
        True,
    )


def nothing_selected(fit: Fit) -> Remark | None:
    model = fit.model
    if fit.selected.size:
        return None
    if model.always_groups_:
        meaning = "No candidate predicts measurably better than the groups that are always in."
    elif model.loss_.coupled:
        meaning = "No candidate orders the events measurably better than chance: every row is given the same risk."
    else:
        value = "probabilities" if hasattr(model, "classes_") else "value"
        meaning = (
            f"No candidate predicts measurably better than the mean: the model gives the same {value} for every row."
        )
    remedy = "If you expect an effect, look at the first groups on the path, or collect more rows."
    return Remark("No group was selected", meaning, remedy, True)


def weak_evidence(fit: Fit) -> Remark | None:
    if fit.model.average or fit.model.n_splits_ == 0:
        return None
    table = fit.model.candidates_
    error = "mse" if "mse" in table else "deviance"
    chosen, nothing = table[table["chosen"]].iloc[0], table[table["groups"] == 0]
    if not len(nothing) or nothing[error].iloc[0] - chosen[error] > WEAK * nothing["standard_error"].iloc[0]:
        return None
    return Remark(
        "The evidence for any group is weak",
        "The error of the model without any group is within two standard errors of this one, so the data can hardly "
        "rule out that no group matters.",
        "Collect more rows, or repeat the fit with other folds, before relying on these groups.",
        True,
    )


def agreement_of_folds(fit: Fit) -> Remark | None:
    model, counts = fit.model, fold_counts(fit.model)
    if not counts or model.average or weak_evidence(fit) is not None:
        return None
    n, fewer = model.n_splits_, {name: counts[name] for name in fit.names if counts[name] < model.n_splits_}
    if not fewer:
        return Remark("The folds agree", f"Every fold selects the model's {_counted(len(fit.names), 'group')}.")
    remedy = f"Rely on the groups that are selected in all {n} folds."
    return Remark(
        f"{_counted(len(fewer), 'group')} not selected in every fold",
        f"Out of {n} folds: {_listed([f'{name} in {count}' for name, count in fewer.items()])}. With other rows, "
        "other groups might have been selected instead.",
        f"{remedy} rule='1se' selects fewer groups." if model.rule == "min" else remedy,
        min(fewer.values()) <= n / 2,
    )


def depends_on_the_split(fit: Fit) -> Remark | None:
    nested = fit.nested
    if nested is None or fit.is_dense or fit.model.average or not fit.names:
        return None
    _, _, which = split_warning(fit.names, nested.frequencies, nested.n_folds, "repetitions").partition(": ")
    if not which:
        return None
    return Remark(
        "The selection depends on the split",
        f"The choice of the model was repeated in {nested.n_folds} outer folds. {which[0].upper()}{which[1:]}",
        "Treat groups that are selected in nearly all outer folds as findings, and the others as candidates. "
        "covey.stability_selection tells you more.",
        True,
    )


def averaged(fit: Fit) -> Remark | None:
    if not (fit.model.average and fit.model.shrunk_):
        return None
    return Remark(
        "The model is a mean of models",
        f"It averages {int((fit.model.candidates_['weight'] > 0).sum())} candidates, weighted by their errors, and "
        "everything on this page describes the average. It contains every group that is in any candidate, with "
        "shrunken coefficients.",
        "For a single model with few groups, fit with average=False.",
    )


def dense(fit: Fit) -> Remark | None:
    if averaged(fit) is not None or not fit.is_dense:
        return None
    return Remark(
        "A dense model was chosen",
        "Many small contributions together predict better than a few groups, so the model is a ridge on all groups. "
        "Being in the model does not mean that a group matters; the strengths show how much each contributes.",
        "If you want few groups even at the cost of accuracy, use selection='ebic' or a number of groups, and compare "
        "the held-out errors.",
        True,
    )


def most_selected(fit: Fit) -> Remark | None:
    model, n_selected = fit.model, fit.selected.size
    n_groups = len(model.group_norms_) - len(model.always_groups_)
    if averaged(fit) or fit.is_dense or n_groups < MANY or n_selected <= MOST_OF * n_groups:
        return None
    remedy = ""
    if not model.n_splits_ or model.rule == "min":
        fewer = "rule='1se'" if model.n_splits_ else "selection=5 with rule='1se'"
        remedy = f"For fewer groups that predict about as well, use {fewer}."
    return Remark(
        "Most groups were selected",
        f"The model has {n_selected} of {n_groups} groups, so it is not sparse. Either many groups matter, or groups "
        "are so similar that they woke up together.",
        remedy,
    )


def shrunk(fit: Fit) -> Remark | None:
    if not fit.model.shrunk_ or averaged(fit) or fit.is_dense or fit.is_infinite:
        return None
    fitted = fit.model.loss_.unpenalised
    return Remark(
        "Coefficients are shrunk",
        f"The noise is strong, and a small ridge on the selected groups predicts better than {fitted}. Strengths and "
        f"coefficients are slightly smaller than those of {fitted}.",
    )


def infinite(fit: Fit) -> Remark | None:
    if not fit.is_infinite or averaged(fit) or fit.is_dense:
        return None
    ridge = "infinite, and a small ridge was used instead"
    if hasattr(fit.model, "classes_"):
        return Remark(
            "The classes are perfectly separated",
            "On the training rows the selected groups separate the classes perfectly. Maximum likelihood estimates are "
            f"then {ridge}. It determines the size of the coefficients, and how close the probabilities are to 0 and "
            "1.",
            "Rely on the predicted classes, not on the probabilities; more rows would pin down the coefficients.",
            True,
        )
    rare = "Look for a rare level of a category and merge it with others"
    if fit.model.loss_.coupled:
        return Remark(
            "Maximum partial likelihood estimates are infinite",
            "At every event, some combination of the selected columns is largest in the row with the event. Its best "
            f"coefficient is {ridge}, which determines the size of these hazard ratios.",
            f"{rare}; fewer groups or more events also help.",
            True,
        )
    return Remark(
        "Maximum likelihood estimates are infinite",
        "For some combination of the selected columns the response is zero in all rows. Its best coefficient is "
        f"{ridge}, which determines the size of these coefficients.",
        f"{rare}.",
        True,
    )


def too_wide(fit: Fit) -> Remark | None:
    if fit.comparable or not fit.overlaps.pairs:
        return None
    return Remark(
        "Groups too wide to compare",
        f"Two groups together have more columns than there are rows ({len(fit.y)}), so any two groups explain each "
        "other.",
        "Reduce wide groups to their leading principal components, or collect more rows.",
        True,
    )


def overlapping(fit: Fit) -> Remark | None:
    if not fit.comparable:
        return None
    worst, close = fit.comparable[0], [pair for pair in fit.comparable if pair.is_close]
    names = [_quoted(name) for name in fit.model.groups_.names]
    how = (
        "The number is the largest canonical correlation of the two groups' columns (1 is complete overlap; unrelated "
        f"groups of these sizes reach {worst.chance:.2f} with {len(fit.y)} rows)."
    )
    if not close:
        return Remark(
            "Selected groups are distinct",
            f"No selected group is close to another. The closest are {names[worst.group]} and {names[worst.other]}, "
            f"at {worst.correlation:.2f}. {how}",
        )
    pairs = [
        f"{names[pair.group]} with {names[pair.other]} ({pair.correlation:.2f}, "
        f"{'both' if pair.other in fit.selected else 'not'} selected)"
        for pair in close[:MOST_NAMES]
    ]
    more = f"; and {len(close) - MOST_NAMES} more" if len(close) > MOST_NAMES else ""
    return Remark(
        f"{_counted(len(close), 'selected group')} overlap{'s' if len(close) == 1 else ''} with another group",
        f"These groups carry much the same information: {'; '.join(pairs)}{more}. {how} The data can hardly tell which "
        "group of a pair matters, and one may have been selected in place of the other.",
        "Treat each pair as one finding. Merge the two groups, or fit without one of them and see whether the "
        "held-out error changes. If many groups overlap, a common factor may drive them: factors=1 keeps the leading "
        "factor in the model while the groups are ordered.",
        any(pair.correlation >= VERY_CLOSE for pair in close),
    )


def dependent(fit: Fit) -> Remark | None:
    if not fit.overlaps.dependent:
        return None
    names = [fit.model.groups_.names[l] for l in fit.overlaps.dependent]
    return Remark(
        "Linearly dependent columns",
        f"In {_listed(names)} some columns are linear combinations of others. Predictions and strengths are not "
        "affected, but the individual coefficients are only one of many equally good solutions.",
        "Do not interpret individual coefficients there. If you need them, drop the redundant columns.",
    )


def correlated(fit: Fit) -> Remark | None:
    if fit.model.standardize == "group":
        return None
    groups = fit.model.groups_
    names = [groups.names[l] for l, value in inner_coherence(fit.X, groups, fit.selected) if value >= INNER]
    if not names:
        return None
    return Remark(
        "Correlated columns within groups",
        f"The columns within {_listed(names)} are strongly correlated, and the fit did not orthonormalise them. Such a "
        "group wakes up late or in a poor direction.",
        "Fit with standardize='group', which orthonormalises each group; coefficients still refer to your columns.",
        True,
    )


Checks = tuple[Callable[[Fit], Remark | None], ...]

ON_THE_SCORE: Checks = (hardly_predicts, nothing_selected)
# if there are groups in the model
ON_THE_MODEL: Checks = (
    weak_evidence, agreement_of_folds, depends_on_the_split, averaged, dense, most_selected, infinite, shrunk
)  # fmt: skip
# if there are groups in the model, and the data are known
ON_THE_GROUPS: Checks = (too_wide, overlapping, dependent, correlated)


def _quoted(name: object) -> str:
    return f"“{name}”"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _listed(names: Iterable[object]) -> str:
    """The first few names, for a sentence."""
    quoted = [_quoted(name) for name in names]
    if len(quoted) > MOST_NAMES:
        return f"{', '.join(quoted[:MOST_NAMES])} and {len(quoted) - MOST_NAMES} more"
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
