"""Whether a selection depends on how the rows were split."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from covey.search.chosen import FittedModel

__all__ = ["fold_counts", "selects_groups", "split_warning", "unsettled"]

# The most groups that a sentence names.
MOST_NAMES = 5


def selects_groups(model: FittedModel) -> bool:
    """Whether groups are selected, so that folds can be asked which they select: not in a model on all groups."""
    return " on all groups" not in model.recipe_ and not model.recipe_.startswith("a mean of ")


def fold_counts(model: FittedModel) -> dict[Hashable, int]:
    """In how many folds the chosen recipe has each group; empty with fewer than two folds or a dense model."""
    if model.fold_frequencies_ is None or model.n_splits_ < 2 or " on all groups" in model.recipe_:
        return {}
    always = set(model.always_groups_)
    counts = zip(model.groups_.names, model.fold_frequencies_, strict=True)
    return {name: int(count) for name, count in counts if name not in always}


def unsettled(
    selected: Iterable[Hashable], counts: Mapping[Hashable, int], n: int
) -> tuple[dict[Hashable, int], dict[Hashable, int]]:
    """Groups that would as likely as not be decided differently on another split of the rows.

    These are selected groups that are missing from at least half of the repetitions, and groups left out although more
    than half have them. Disagreement with a majority means that the selection is specific to one split. A majority
    proves little either: three of five is weak evidence for a group, so read the counts.

    Parameters
    ----------
    selected : iterable
        Names of the groups of the model.
    counts : mapping
        In how many repetitions each group was selected; a missing group counts as zero.
    n : int
        The number of repetitions.

    Returns
    -------
    doubtful, missing : dict
        Selected groups, and groups left out, with their counts.

    Examples
    --------
    >>> unsettled(["a", "b"], {"a": 5, "b": 2, "c": 4, "d": 1}, 5)
    ({'b': 2}, {'c': 4})
    """
    inside = list(selected)
    doubtful = {name: counts.get(name, 0) for name in inside if 2 * counts.get(name, 0) <= n}
    missing = {name: count for name, count in counts.items() if 2 * count > n and name not in set(inside)}
    return doubtful, missing


def split_warning(selected: Iterable[Hashable], counts: Mapping[Hashable, int], n: int, what: str = "folds") -> str:
    """One sentence on what depends on the split; empty if nothing does.

    >>> split_warning(["a", "b", "d"], {"a": 5, "b": 2, "c": 4}, 5)
    'The selection depends on the split: b is in only 2 of 5 folds, d is in none; c, left out, is in 4.'
    """
    doubtful, missing = unsettled(selected, counts, n)
    parts = []
    if doubtful:
        parts.append(_listed(doubtful, f" of {n} {what}", " is in only"))
    if missing:
        parts.append(_listed(missing, "" if doubtful else f" of {n} {what}", ", left out, is in"))
    return f"The selection depends on the split: {'; '.join(parts)}." if parts else ""


def _listed(counts: Mapping[Hashable, int], of: str, verb: str) -> str:
    words = [f"{name}{verb} {count}" if count else f"{name} is in none" for name, count in counts.items()]
    shown = [f"{text}{of if i == 0 else ''}" for i, text in enumerate(words)]
    more = f" and {len(shown) - MOST_NAMES} more likewise" if len(shown) > MOST_NAMES else ""
    return ", ".join(shown[:MOST_NAMES]) + more
