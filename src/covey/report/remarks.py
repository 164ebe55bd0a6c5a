"""What to mind when reading a fit, in plain words: what was found, what it means, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.losses import MultiSquared, Squared
from covey.nested import NestedScore
from covey.nested.result import MEASURES
from covey.selection.agreement import fold_counts, split_warning
from covey.selection.judged import Judged
from covey.stability.overlap import Overlap, find_overlaps, inner_coherence

__all__ = ["Remark", "cut_short", "remarks"]

# From this canonical correlation on two groups say nearly the same.
VERY_CLOSE = 0.9

# Correlation within a group that is worth a word where groups were not orthonormalised. The paper asks for far less,
# but only an eigenvalue this far from 1 delays a group visibly.
INNER = 0.9

# Names in one sentence.
MOST_NAMES = 5

# Of at least so many groups, a share above which a model is hardly sparse.
MANY, MOST_OF = 8, 0.5

# Below this share of the error removed, a model hardly predicts.
POOR_R2 = 0.05

# Standard errors within which the model without any group cannot be told from the fitted one.
WEAK = 2.0

# A best time of a network beyond this share of max_iter may be the doing of the limit.
EDGE = 0.98


@dataclass(frozen=True)
class Remark:
    """One thing to mind.

    Attributes
    ----------
    heading : str
    meaning : str
        What was found and what it means.
    remedy : str
        What to do; empty where nothing needs doing.
    serious : bool
        Whether it can change what is concluded.
    """

    heading: str
    meaning: str
    remedy: str = ""
    serious: bool = False


def remarks(
    model: Any, chosen_by: Judged | None, X: Any = None, y: Any = None, nested: NestedScore | None = None
) -> tuple[Remark, ...]:
    """Everything worth saying, serious things first.

    Parameters
    ----------
    model : a fitted estimator
    chosen_by : Judged or None
        What its candidates were judged by.
    X, y : the data; without them nothing is said on correlated groups.
    nested : NestedScore or None
        How well rows are predicted that took no part in choosing.
    """
    selected = np.flatnonzero(model.group_norms_)
    error = "squared error" if isinstance(model.loss_, Squared | MultiSquared) else "deviance"
    found = [*_on_the_network(model), *_on_the_error(chosen_by, nested, error)]
    if selected.size == 0:
        found.append(
            Remark(
                "No group was selected",
                _nothing_found(model),
                "If you expect an effect, look at the first groups on the path, or gather more rows.",
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
        return "No candidate predicts better than the groups that are always in, as far as can be told."
    if model.loss_.coupled:
        return "No candidate orders the events better than chance, as far as can be told: every row has the same risk."
    value = "probabilities" if hasattr(model, "classes_") else "value"
    return (
        "No candidate predicts better than the mean, as far as can be told: the model gives the same "
        f"{value} for every row."
    )


def cut_short(model: Any) -> bool:
    """Whether a network's limit on iterations, and not the data, decided on its model."""
    if _network(model) is None or "time" not in model.candidates_ or len(model.candidates_.columns) <= 2:
        return False
    last, limit = model.candidates_["time"].max(), model.network.max_iter
    nothing_woke = not len(model.selected_groups_) and not model.path_.entered
    return bool(last >= limit and (nothing_woke or model.path_.times[-1] >= EDGE * limit))


def _network(model: Any) -> Any:
    return getattr(model, "network", None)


def _on_the_network(model: Any) -> list[Remark]:
    if model.path_.status == "diverged":
        remedy = "Leave step_size at 'auto', or fit without network: the default search has no steps."
        return [Remark("The path diverged", model.path_.message, remedy, True)]
    if not cut_short(model):
        return []
    return [
        Remark(
            "The path was cut short",
            f"The network ran into max_iter={model.network.max_iter}: the limit chose the model, and not the data.",
            "Fit again with a larger max_iter.",
            True,
        )
    ]


def _on_the_error(chosen_by: Judged | None, nested: NestedScore | None, error: str) -> list[Remark]:
    if nested is not None and nested.measure not in MEASURES:
        return _on_the_score(nested)
    r2 = nested.mean if nested is not None else None if chosen_by is None else chosen_by.r2
    if r2 is None or r2 >= POOR_R2:
        return []
    rows = "rows that took no part in choosing" if nested is not None else "the very rows that chose it"
    return [
        Remark(
            "The model hardly predicts",
            f"On {rows} it removes {max(r2, 0.0):.0%} of the {error} that is left without any "
            "group. Which groups were selected then says little.",
            "Look for better columns or more rows before reading on.",
            True,
        )
    ]


def _on_the_score(nested: NestedScore) -> list[Remark]:
    """The same for survival times, whose score is no share of an error."""
    null = nested.references.get("null")
    if null is None or nested.mean - null.mean > nested.std_error:
        return []
    return [
        Remark(
            "The model hardly predicts",
            f"On rows that took no part in choosing, {nested.measure} is {nested.mean:.2f} ± {nested.std_error:.2f}, "
            f"and chance is {null.mean:g}. Which groups were selected then says little.",
            "Look for better columns or more rows and events before reading on.",
            True,
        )
    ]


def _on_the_evidence(model: Any) -> list[Remark]:
    """How sure the selection is: against no group at all, and over the folds."""
    if _network(model) is not None or model.average or model.n_splits_ == 0:
        return []
    table = model.candidates_
    error = "mse" if "mse" in table else "deviance"
    chosen, nothing = table[table["chosen"]].iloc[0], table[table["groups"] == 0]
    if len(nothing) and nothing[error].iloc[0] - chosen[error] <= WEAK * nothing["standard_error"].iloc[0]:
        return [
            Remark(
                "The evidence for any group is weak",
                "A model without any group lies within two standard errors of this one: the judging rows can hardly "
                "rule out that no group matters.",
                "Gather more rows, or repeat the fit with other folds, before relying on these groups.",
                True,
            )
        ]
    n, every = model.n_splits_, fold_counts(model)
    if not every:
        return []
    names = [name for name in model.selected_groups_ if name not in model.always_groups_]
    fewer = {name: every[name] for name in names if every[name] < n}
    if not fewer:
        return [Remark("The folds agree", f"Every fold selects the {_counted(len(names), 'group')} of the model.")]
    remedy = f"Rely on the groups that all {n} folds select."
    if model.rule == "min":
        remedy += " rule='1se' selects fewer groups."
    return [
        Remark(
            f"{_counted(len(fewer), 'group')} not selected in every fold",
            f"Of {n} folds, {_listed([f'{name} in {count}' for name, count in fewer.items()])}. Other rows would have "
            "given other groups in their place.",
            remedy,
            min(fewer.values()) <= n / 2,
        )
    ]


def _on_the_split(model: Any, nested: NestedScore | None) -> list[Remark]:
    """Whether the choice, repeated without parts of the rows, comes to other groups."""
    names = [name for name in model.selected_groups_ if name not in model.always_groups_]
    if nested is None or _is_dense(model) or model.average or not names:
        return []
    told = split_warning(names, nested.frequencies, nested.n_folds, "repetitions")
    if not told:
        return []
    return [
        Remark(
            "The selection depends on the split",
            f"The choice was repeated {nested.n_folds} times, each time without a part of the rows. "
            f"{told.split(': ', 1)[1][:1].upper()}{told.split(': ', 1)[1][1:]}",
            "Read the groups that nearly all repetitions select as found, and the others as candidates. "
            "covey.stability_selection says more.",
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
                f"Each of {int((model.candidates_['weight'] > 0).sum())} candidates is weighted by its error, and "
                "everything here describes their mean. A group is in it if it is in any of them, and its coefficients "
                "are shrunk.",
                "For one model with few groups fit with average=False.",
            )
        ]
    if _network(model) is None and _is_dense(model):
        return [
            Remark(
                "A dense model was chosen",
                "Many groups that each do a little predict better together than a few alone, so the model is a ridge "
                "on all groups. That a group is in it does not say that it matters; the strengths say how much each "
                "does.",
                "If you want few groups whatever it costs, choose by selection='ebic', or a number of groups, and "
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
                f"The model has {n_selected} of {n_groups} groups: it is not sparse. Either many groups matter, or "
                "groups resemble each other so much that they woke up together.",
                "" if model.n_splits_ and not judged else f"For fewer groups that predict about as well use {fewer}.",
            )
        )
    if model.shrunk_ and " is infinite " in model.recipe_:
        found.append(_on_separation(model))
    elif model.shrunk_:
        found.append(
            Remark(
                "Coefficients are shrunk",
                "Noise is strong here, and a small ridge on the selected groups predicts better than "
                f"{model.loss_.unpenalised}. Strengths and coefficients are a little smaller than "
                f"{model.loss_.unpenalised} would have them.",
            )
        )
    return found


def _on_separation(model: Any) -> Remark:
    """What it means that maximum likelihood is infinite."""
    if hasattr(model, "classes_"):
        return Remark(
            "The classes are told apart without error",
            "On the rows of the fit the selected groups separate the classes, so that maximum likelihood is infinite "
            "and a small ridge was taken instead. The size of the coefficients, and how near to 0 and 1 the "
            "probabilities are, is the ridge's doing.",
            "Rely on the predicted classes rather than on the probabilities; more rows settle the coefficients.",
            True,
        )
    if model.loss_.coupled:
        return Remark(
            "Maximum partial likelihood is infinite",
            "Some combination of the selected columns is largest, at every event, in the row that has it, so that its "
            "best coefficient is infinite and a small ridge was taken instead. The size of such hazard ratios is the "
            "ridge's doing.",
            "Look for a rare level of a category, and put it together with others; fewer groups or more events help.",
            True,
        )
    return Remark(
        "Maximum likelihood is infinite",
        "Some combination of the selected columns has rows of zero only, so that its best coefficient is infinite and "
        "a small ridge was taken instead. The size of such coefficients is the ridge's doing.",
        "Look for a rare level of a category, and put it together with others.",
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
                f"In {_listed(names)} some columns are combinations of others. Predictions and strengths are not "
                "affected, but the coefficients within are one of many equally good choices.",
                "Do not read single coefficients there; drop the redundant columns if you need them.",
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
                f"The columns of two groups together outnumber the {n} rows, so any two groups explain each other.",
                "Reduce wide groups to their leading directions, or gather more rows.",
                True,
            )
        ]
    close = [pair for pair in judged if pair.is_close]
    worst = judged[0]
    how = (
        "The number is the correlation of the best-matching combinations of the two groups' columns (1 is complete; "
        f"unrelated groups of these sizes reach {worst.chance:.2f} with {n} rows)."
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
            f"These groups carry much the same information: {listed}{more}. {how} Between such groups the data can "
            "hardly tell which one matters, and one may have woken up in the other's place.",
            "Read each pair as one finding. Put the two into one group, or fit without one of them and see whether the "
            "held-out error changes. Where many groups overlap, a common factor may drive them: factors=1 holds the "
            "leading one in the model while the order of the groups is found.",
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
            f"The columns of {_listed(names)} are strongly correlated among themselves, and the fit took them as they "
            "are. Such a group wakes up late or in a poor direction.",
            "Fit with standardize='group', which orthonormalises each group; coefficients stay those of your columns.",
            True,
        )
    ]


def _quoted(name: object) -> str:
    return f"“{name}”"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _listed(names: Iterable[object]) -> str:
    """Names for a sentence, the first few."""
    quoted = [_quoted(name) for name in names]
    if len(quoted) > MOST_NAMES:
        return f"{', '.join(quoted[:MOST_NAMES])} and {len(quoted) - MOST_NAMES} more"
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
