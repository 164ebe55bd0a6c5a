"""What to repeat a fit with: parameters, versions, and the groups as they were."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import covey

__all__ = ["membership", "parameters", "shorten", "versions"]

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "pandas")

# A longer value of a setting, such as the list of every column's group, is cut: the page is for people.
LONGEST_SETTING = 300


def membership(groups: Any) -> tuple[tuple[str, str], ...]:
    """Every column and its group; nothing where a column has several."""
    if groups.overlapping:
        return ()
    return tuple((groups.column_name(j), str(groups.names[l])) for j, l in enumerate(groups.labels.tolist()))


def parameters(model: Any) -> dict[str, str]:
    """The constructor's parameters, those that were changed and those that were not."""
    return {name: shorten(repr(value)) for name, value in model.get_params(deep=False).items()}


def shorten(value: object) -> str:
    """Text of a value, cut where it is long."""
    text = str(value)
    return text if len(text) <= LONGEST_SETTING else f"{text[:LONGEST_SETTING]} … ({len(text)} characters)"


def versions() -> dict[str, str]:
    """What it was made with."""
    found = {"covey": covey.__version__, "Python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {**found, "system": platform.platform(terse=True)}
