"""Everything needed to repeat a fit: parameters, versions and groups."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from sklearn.base import BaseEstimator

import covey
from covey.groups import Groups

__all__ = ["membership", "parameters", "shorten", "versions"]

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "pandas")

# Longer values, such as a list of every column's group, are shortened for readers.
LONGEST_SETTING = 300


def membership(groups: Groups) -> tuple[tuple[str, str], ...]:
    """All columns with their groups; empty if groups overlap."""
    if groups.overlapping:
        return ()
    return tuple((groups.column_name(j), str(groups.names[l])) for j, l in enumerate(groups.labels.tolist()))


def parameters(model: BaseEstimator) -> dict[str, str]:
    """All parameters of the constructor, changed or not."""
    return {name: shorten(repr(value)) for name, value in model.get_params(deep=False).items()}


def shorten(value: object) -> str:
    """A value as text, shortened if it is long."""
    text = str(value)
    return text if len(text) <= LONGEST_SETTING else f"{text[:LONGEST_SETTING]} … ({len(text)} characters)"


def versions() -> dict[str, str]:
    """The versions of Python and the libraries."""
    found = {"covey": covey.__version__, "Python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {**found, "system": platform.platform(terse=True)}
