"""Whether a selection depends on how the rows were split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["fold_counts", "split_warning", "unsettled"]

# Groups that a sentence names.
MOST_NAMES = 5


def fold_counts(model: Any) -> dict[Any, int]:
    """In how many folds the chosen recipe has each group; empty where fewer than two judged or the model is dense."""
    if model.fold_frequencies_ is None or model.n_splits_ < 2 or " on all groups" in model.recipe_:
        return {}
    always = set(model.always_groups_)
    counts = zip(model.groups_.names, model.fold_frequencies_, strict=True)
    return {name: int(count) for name, count in counts if name not in always}


def unsettled(selected: Iterable[Any], counts: Mapping[Any, int], n: int) -> tuple[dict[Any, int], dict[Any, int]]:
    """Groups that another split of the rows would as likely as not decide differently.

    A selected group that half of the repetitions, or more, do without; and a group that is left out although more than
    half have it. A majority is the least that can be asked: where it disagrees with the model, the model is what one
    way to split the rows gave. Three of five is no proof of a group either, and the counts are there to be read.

    Parameters
    ----------
    selected : iterable
        Names of the groups of the model.
    counts : mapping
        In how many of the repetitions each group was selected; zero for a group that is not in it.
    n : int
        How many repetitions there were.

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


def split_warning(selected: Iterable[Any], counts: Mapping[Any, int], n: int, what: str = "folds") -> str:
    """One sentence on what depends on the split; empty where nothing does.

    >>> split_warning(["a", "b"], {"a": 5, "b": 2, "c": 4}, 5)
    'The selection depends on the split: b is in 2 of 5 folds only; c, left out, is in 4.'
    """
    doubtful, missing = unsettled(selected, counts, n)
    parts = []
    if doubtful:
        parts.append(f"{_listed(doubtful, f' of {n} {what}')} only")
    if missing:
        parts.append(f"{_listed(missing, '' if doubtful else f' of {n} {what}', ', left out,')}")
    return f"The selection depends on the split: {'; '.join(parts)}." if parts else ""


def _listed(counts: Mapping[Any, int], of: str, after: str = "") -> str:
    shown = [f"{name}{after} is in {count}{of if i == 0 else ''}" for i, (name, count) in enumerate(counts.items())]
    more = f" and {len(shown) - MOST_NAMES} more likewise" if len(shown) > MOST_NAMES else ""
    return ", ".join(shown[:MOST_NAMES]) + more
