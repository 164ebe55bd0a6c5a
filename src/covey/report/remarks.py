"""What to keep in mind when reading a fit: what was found, what it means, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.losses import MultiSquared, Squared
from covey.nested import NestedScore
from covey.nested.result import MEASURES
from covey.search.agreement import fold_counts, split_warning
from covey.search.chosen import Judged
from covey.stability.overlap import Overlap, find_overlaps, inner_coherence

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

# If the best time is beyond this share of max_iter, the limit may have determined it.
EDGE = 0.98


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
    selected = np.flatnonzero(model.group_norms_)
    error = "squared error" if isinstance(model.loss_, Squared | MultiSquared) else "deviance"
    found = [*_on_the_error(chosen_by, nested, error)]
    if selected.size == 0:
        found.append(
            Remark(
                "No group was selected",
                _nothing_found(model),
                "If you expect an effect, look at the first groups on the path, or collect more rows.",
                True,
            )
        )
    else:
        found += [*_on_the_evidence(model), *_on_the_split(model, nested), *_on_the_kind(model, selected.size)]
        if X is not None:
            found += _on_the_groups(model, selected[np.argsort(-model.group_strengths_[selected], kind="stable")], X, y)
    return tuple(sorted(found, key=lambda remark: not remark.serious))


def _nothing_found(model: Any) -> str:
    if model.always_groups_:
        return "No candidate predicts measurably better than the groups that are always in."
    if model.loss_.coupled:
        return "No candidate orders the events measurably better than chance: every row is given the same risk."
    value = "probabilities" if hasattr(model, "classes_") else "value"
    return f"No candidate predicts measurably better than the mean: the model gives the same {value} for every row."


def _on_the_error(chosen_by: Judged | None, nested: NestedScore | None, error: str) -> list[Remark]:
    if nested is not None and nested.measure not in MEASURES:
        return _on_the_score(nested)
    r2 = nested.mean if nested is not None else None if chosen_by is None else chosen_by.r2
    if r2 is None or r2 >= POOR_R2:
        return []
    rows = "held-out rows" if nested is not None else "the rows used to choose it"
    return [
        Remark(
            "The model hardly predicts",
            f"On {rows} it removes {max(r2, 0.0):.0%} of the null model's {error}. The selected groups then mean "
            "little.",
            "Look for better columns or more rows before interpreting the groups.",
            True,
        )
    ]


def _on_the_score(nested: NestedScore) -> list[Remark]:
    """The same for survival times, where the score is not a share of an error."""
    null = nested.references.get("null")
    if null is None or nested.mean - null.mean > nested.std_error:
        return []
    return [
        Remark(
            "The model hardly predicts",
            f"On held-out rows, {nested.measure} is {nested.mean:.2f} ± {nested.std_error:.2f}, and chance is "
            f"{null.mean:g}. The selected groups then mean little.",
            "Look for better columns or more rows and events before interpreting the groups.",
            True,
        )
    ]


def _on_the_evidence(model: Any) -> list[Remark]:
    """How certain the selection is: compared with the null model, and across folds."""
    if model.average or model.n_splits_ == 0:
        return []
    table = model.candidates_
    error = "mse" if "mse" in table else "deviance"
    chosen, nothing = table[table["chosen"]].iloc[0], table[table["groups"] == 0]
    if len(nothing) and nothing[error].iloc[0] - chosen[error] <= WEAK * nothing["standard_error"].iloc[0]:
        return [
            Remark(
                "The evidence for any group is weak",
                "The error of the model without any group is within two standard errors of this one, so the data can "
                "hardly rule out that no group matters.",
                "Collect more rows, or repeat the fit with other folds, before relying on these groups.",
                True,
            )
        ]
    n, every = model.n_splits_, fold_counts(model)
    if not every:
        return []
    names = [name for name in model.selected_groups_ if name not in model.always_groups_]
    fewer = {name: every[name] for name in names if every[name] < n}
    if not fewer:
        return [Remark("The folds agree", f"Every fold selects the model's {_counted(len(names), 'group')}.")]
    remedy = f"Rely on the groups that are selected in all {n} folds."
    if model.rule == "min":
        remedy += " rule='1se' selects fewer groups."
    return [
        Remark(
            f"{_counted(len(fewer), 'group')} not selected in every fold",
            f"Out of {n} folds: {_listed([f'{name} in {count}' for name, count in fewer.items()])}. With other rows, "
            "other groups might have been selected instead.",
            remedy,
            min(fewer.values()) <= n / 2,
        )
    ]


def _on_the_split(model: Any, nested: NestedScore | None) -> list[Remark]:
    """Whether the outer folds select different groups."""
    names = [name for name in model.selected_groups_ if name not in model.always_groups_]
    if nested is None or _is_dense(model) or model.average or not names:
        return []
    told = split_warning(names, nested.frequencies, nested.n_folds, "repetitions")
    if not told:
        return []
    return [
        Remark(
            "The selection depends on the split",
            f"The choice of the model was repeated in {nested.n_folds} outer folds. "
            f"{told.split(': ', 1)[1][:1].upper()}{told.split(': ', 1)[1][1:]}",
            "Treat groups that are selected in nearly all outer folds as findings, and the others as candidates. "
            "covey.stability_selection tells you more.",
            True,
        )
    ]


def _is_dense(model: Any) -> bool:
    return " on all groups" in model.recipe_


def _on_the_kind(model: Any, n_selected: int) -> list[Remark]:
    """Whether the model is sparse, shrunk, or a mean of models."""
    n_groups = len(model.group_norms_) - len(model.always_groups_)
    if model.average and model.shrunk_:
        return [
            Remark(
                "The model is a mean of models",
                f"It averages {int((model.candidates_['weight'] > 0).sum())} candidates, weighted by their errors, and "
                "everything on this page describes the average. It contains every group that is in any candidate, with "
                "shrunken coefficients.",
                "For a single model with few groups, fit with average=False.",
            )
        ]
    if _is_dense(model):
        return [
            Remark(
                "A dense model was chosen",
                "Many small contributions together predict better than a few groups, so the model is a ridge on all "
                "groups. Being in the model does not mean that a group matters; the strengths show how much each "
                "contributes.",
                "If you want few groups even at the cost of accuracy, use selection='ebic' or a number of groups, and "
                "compare the held-out errors.",
                True,
            )
        ]
    found = []
    if n_groups >= MANY and n_selected > MOST_OF * n_groups:
        judged = model.n_splits_ and model.rule == "min"
        fewer = "rule='1se'" if judged else "selection=5 with rule='1se'"
        found.append(
            Remark(
                "Most groups were selected",
                f"The model has {n_selected} of {n_groups} groups, so it is not sparse. Either many groups matter, or "
                "groups are so similar that they woke up together.",
                "" if model.n_splits_ and not judged else f"For fewer groups that predict about as well, use {fewer}.",
            )
        )
    if model.shrunk_ and " is infinite " in model.recipe_:
        found.append(_on_separation(model))
    elif model.shrunk_:
        found.append(
            Remark(
                "Coefficients are shrunk",
                "The noise is strong, and a small ridge on the selected groups predicts better than "
                f"{model.loss_.unpenalised}. Strengths and coefficients are slightly smaller than those of "
                f"{model.loss_.unpenalised}.",
            )
        )
    return found


def _on_separation(model: Any) -> Remark:
    """The consequence of infinite maximum likelihood estimates."""
    if hasattr(model, "classes_"):
        return Remark(
            "The classes are perfectly separated",
            "On the training rows the selected groups separate the classes perfectly. Maximum likelihood estimates are "
            "then infinite, and a small ridge was used instead. It determines the size of the coefficients, and how "
            "close the probabilities are to 0 and 1.",
            "Rely on the predicted classes, not on the probabilities; more rows would pin down the coefficients.",
            True,
        )
    if model.loss_.coupled:
        return Remark(
            "Maximum partial likelihood estimates are infinite",
            "At every event, some combination of the selected columns is largest in the row with the event. Its best "
            "coefficient is infinite, and a small ridge was used instead, which determines the size of these hazard "
            "ratios.",
            "Look for a rare level of a category and merge it with others; fewer groups or more events also help.",
            True,
        )
    return Remark(
        "Maximum likelihood estimates are infinite",
        "For some combination of the selected columns the response is zero in all rows. Its best coefficient is "
        "infinite, and a small ridge was used instead, which determines the size of these coefficients.",
        "Look for a rare level of a category and merge it with others.",
        True,
    )


def _on_the_groups(model: Any, selected: Any, X: Any, y: Any) -> list[Remark]:
    groups, n = model.groups_, len(y)
    overlaps = find_overlaps(X, y, groups, selected, centre=model.fit_intercept)
    found = _on_overlaps(model, overlaps.pairs, n)
    if overlaps.dependent:
        names = [groups.names[l] for l in overlaps.dependent]
        found.append(
            Remark(
                "Linearly dependent columns",
                f"In {_listed(names)} some columns are linear combinations of others. Predictions and strengths are "
                "not affected, but the individual coefficients are only one of many equally good solutions.",
                "Do not interpret individual coefficients there. If you need them, drop the redundant columns.",
            )
        )
    if model.standardize != "group":
        found += _on_correlated_columns(groups, selected, X)
    return found


def _on_overlaps(model: Any, pairs: tuple[Overlap, ...], n: int) -> list[Remark]:
    if not pairs:
        return []
    names, chosen = model.groups_.names, set(np.flatnonzero(model.group_norms_).tolist())
    judged = [pair for pair in pairs if pair.chance < 1]
    if not judged:
        return [
            Remark(
                "Groups too wide to compare",
                f"Two groups together have more columns than there are rows ({n}), so any two groups explain each "
                "other.",
                "Reduce wide groups to their leading principal components, or collect more rows.",
                True,
            )
        ]
    close = [pair for pair in judged if pair.is_close]
    worst = judged[0]
    how = (
        "The number is the largest canonical correlation of the two groups' columns (1 is complete overlap; unrelated "
        f"groups of these sizes reach {worst.chance:.2f} with {n} rows)."
    )
    if not close:
        pair = f"{_quoted(names[worst.group])} and {_quoted(names[worst.other])}"
        return [
            Remark(
                "Selected groups are distinct",
                f"No selected group is close to another. The closest are {pair}, at {worst.correlation:.2f}. {how}",
            )
        ]

    def told(pair: Overlap) -> str:
        both = "both selected" if pair.other in chosen else "not selected"
        return f"{_quoted(names[pair.group])} with {_quoted(names[pair.other])} ({pair.correlation:.2f}, {both})"

    listed = "; ".join(told(pair) for pair in close[:MOST_NAMES])
    more = f"; and {len(close) - MOST_NAMES} more" if len(close) > MOST_NAMES else ""
    return [
        Remark(
            f"{_counted(len(close), 'selected group')} overlap{'s' if len(close) == 1 else ''} with another group",
            f"These groups carry much the same information: {listed}{more}. {how} The data can hardly tell which group "
            "of a pair matters, and one may have been selected in place of the other.",
            "Treat each pair as one finding. Merge the two groups, or fit without one of them and see whether the "
            "held-out error changes. If many groups overlap, a common factor may drive them: factors=1 keeps the "
            "leading factor in the model while the groups are ordered.",
            any(pair.correlation >= VERY_CLOSE for pair in close),
        )
    ]


def _on_correlated_columns(groups: Any, selected: Any, X: Any) -> list[Remark]:
    worst = [(l, value) for l, value in inner_coherence(X, groups, selected) if value >= INNER]
    if not worst:
        return []
    names = [groups.names[l] for l, _ in worst]
    return [
        Remark(
            "Correlated columns within groups",
            f"The columns within {_listed(names)} are strongly correlated, and the fit did not orthonormalise them. "
            "Such a group wakes up late or in a poor direction.",
            "Fit with standardize='group', which orthonormalises each group; coefficients still refer to your columns.",
            True,
        )
    ]


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
