"""What to mind when reading a fit, in plain words: what was found, what it means, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.report.curve import Curve
from covey.report.overlap import Overlap, find_overlaps, inner_coherence

__all__ = ["Remark", "remarks"]

# From these canonical correlations on two groups say much the same, or nearly the same; both must also lie well above
# what groups of their sizes reach by chance.
CLOSE, VERY_CLOSE = 0.7, 0.9

# Correlation within a group that is worth a word where groups were not orthonormalised. The paper asks for far less,
# but only an eigenvalue this far from 1 delays a group visibly.
INNER = 0.9

# Names in one sentence.
MOST_NAMES = 5

# Of at least so many groups, a share above which a model is hardly sparse.
MANY, MOST_OF = 8, 0.5

# Below this share of the error removed, a model hardly predicts.
POOR_R2 = 0.05


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


def remarks(model: Any, curve: Curve | None, time: float, X: Any = None, y: Any = None) -> tuple[Remark, ...]:
    """Everything worth saying, serious things first.

    Parameters
    ----------
    model : a fitted estimator
    curve : Curve or None
        What its stopping rule looked at.
    time : float
        The chosen time.
    X, y : the data; without them nothing is said on correlated groups.
    """
    found = [*_on_the_path(model, curve, time), *_on_the_error(curve, time), *_on_the_rules(model, curve, time)]
    selected = np.flatnonzero(model.group_norms_)
    found += _on_the_network(model, selected.size)
    found += _on_the_average(model)
    if selected.size == 0:
        found.append(
            Remark(
                "No group was selected",
                "The path was stopped before any group woke up: the model predicts the same value for every row.",
                "If you expect an effect, look at the path beyond this time, or gather more rows.",
                True,
            )
        )
    elif X is not None:
        found += _on_the_groups(model, selected[np.argsort(-model.group_strengths_[selected], kind="stable")], X, y)
    return tuple(sorted(found, key=lambda remark: not remark.serious))


def _on_the_path(model: Any, curve: Curve | None, time: float) -> list[Remark]:
    if model.path_.status == "diverged":
        return [Remark("The path diverged", model.path_.message, "Take a smaller step_size, or 'auto'.", True)]
    if curve is None or curve.times[-1] < model.max_iter or time < 0.98 * curve.times[-1]:
        return []
    return [
        Remark(
            "The path was cut short",
            f"The best time is the last one that was tried, at max_iter={model.max_iter}: the limit chose it, and not "
            "the data.",
            "Fit again with a larger max_iter.",
            True,
        )
    ]


def _on_the_network(model: Any, n_selected: int) -> list[Remark]:
    """Whether the model is sparse at all, and how to come to one that is."""
    n_groups = len(model.group_norms_)
    if getattr(model, "dense_network_", False):
        return [
            Remark(
                "A dense model was chosen",
                f"Many groups that each do little predict better together than a few alone. So a network was chosen "
                f"that starts from {model.init_scale_:g}, in which all groups grow together. That a group is selected "
                "does not say that it matters; the strengths still say how much each does.",
                "If you want few groups whatever it costs, fit with init_scale=1e-6, and compare the held-out errors.",
                True,
            )
        ]
    if n_groups < MANY or n_selected <= MOST_OF * n_groups:
        return []
    fewer = "rule='1se'" if getattr(model, "rule", "1se") == "min" else "GroupSparseRegressorCV with rule='1se'"
    return [
        Remark(
            "Most groups were selected",
            f"The model has {n_selected} of {n_groups} groups: it is not sparse. Either many groups matter, or groups "
            "resemble each other so much that they woke up together.",
            f"For the fewest groups that predict about as well use {fewer}.",
        )
    ]


def _on_the_average(model: Any) -> list[Remark]:
    """Whether predictions are a mean of models."""
    parts = getattr(model, "average_", None)
    if parts is None:
        return []
    return [
        Remark(
            "Predictions are a mean of models",
            f"Much of the response is noise, and the rows that judge can hardly tell {len(parts)} models apart. Their "
            "mean predicts better than the luckiest of them. What this page shows of groups, and the path, are those "
            "of the simplest model that cannot be told from the best.",
            "The attribute average_ lists the models with their weights. If you want to predict with the model that "
            "the page shows, fit with average=False.",
        )
    ]


def _on_the_error(curve: Curve | None, time: float) -> list[Remark]:
    r2 = None if curve is None else curve.r2(time)
    if r2 is None or r2 >= POOR_R2:
        return []
    return [
        Remark(
            "The model hardly predicts",
            f"On rows that it has not seen it removes {max(float(r2), 0.0):.0%} of the squared error that is left "
            "without any group. Which groups were selected then says little.",
            "Look for better columns or more rows before reading on.",
            True,
        )
    ]


def _on_the_rules(model: Any, curve: Curve | None, time: float) -> list[Remark]:
    """How sure the selection is: groups that only the laxer rule has are within the noise of cross-validation."""
    if curve is None or not {"min", "1se"} <= set(curve.rules):
        return []
    path, names = model.path_, model.groups_.names
    lax, strict = (set(np.flatnonzero(_norms(model, curve.rules[rule])).tolist()) for rule in ("min", "1se"))
    extra = [names[l] for l, _ in path.entered if l in lax - strict]
    if not lax:
        return []
    if not extra:
        return [Remark("Both rules agree", f"The rules min and 1se select the same {_counted(len(lax), 'group')}.")]
    if not strict:
        return [
            Remark(
                "The evidence for any group is weak",
                "A model without any group lies within one standard error of the best one: cross-validation cannot "
                "rule out that no group matters.",
                "Gather more rows, or repeat the cross-validation with other folds, before relying on these groups.",
                True,
            )
        ]
    kept = time == curve.rules["min"]
    return [
        Remark(
            f"{_counted(len(extra), 'group')} within the noise of cross-validation",
            f"Rule min selects {_counted(len(lax), 'group')} and rule 1se {len(strict)}; their errors differ by less "
            f"than one standard error. Cross-validation cannot tell whether {_listed(extra)} "
            f"{'matters' if len(extra) == 1 else 'matter'}"
            + ("." if kept else f", and this model leaves {'it' if len(extra) == 1 else 'them'} out."),
            "Rely on the groups that both rules select; rule='1se' selects those alone." if kept else "",
            kept,
        )
    ]


def _norms(model: Any, time: float) -> Any:
    return model.groups_.norms(model.path_.at(min(time, float(model.path_.times[-1]))))


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
    close = [pair for pair in judged if pair.correlation >= max(CLOSE, (1 + pair.chance) / 2)]
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
            "held-out error changes. Where many groups overlap, a common factor may drive them: factors=1 fits the "
            "leading one by itself.",
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
