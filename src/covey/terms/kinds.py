"""What a user may say about a variable, and what a term is."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from covey.validation import boolean, whole


@dataclass(frozen=True)
class Auto:
    """The values of the variable decide what becomes of it."""


@dataclass(frozen=True)
class Linear:
    """A number with a linear effect and no curve: ``covey.Terms({"age": Linear()})``, or ``"linear"`` for short.

    Parameters
    ----------
    always : bool
        Keep the variable in every model.
    """

    always: bool = False

    def __post_init__(self) -> None:
        boolean(self.always, "always")


@dataclass(frozen=True)
class Curve:
    """A number with a linear effect and a smooth curve, which may be selected beside it: ``{"age": Curve(knots=4)}``.

    Parameters
    ----------
    knots : int, optional
        Number of knots of the natural cubic spline, at least 3; fewer are used if the variable has fewer distinct
        values. By default the number of rows decides, and a detail with more knots may be selected beside the curve.
    always : bool
        Keep the line and the curve in every model.
    """

    knots: int | None = None
    always: bool = False

    def __post_init__(self) -> None:
        boolean(self.always, "always")
        if self.knots is not None:
            whole(self.knots, "knots", least=3)


@dataclass(frozen=True)
class Levels:
    """A category with one effect per level, such as a code of digits: ``covey.Terms({"zip": Levels()})``.

    Parameters
    ----------
    always : bool
        Keep the variable in every model.
    rare : int, optional
        Levels with fewer rows than this are joined into one; 1 keeps all of them apart. By default the number of rows
        of the table decides.
    """

    always: bool = False
    rare: int | None = None

    def __post_init__(self) -> None:
        boolean(self.always, "always")
        if self.rare is not None:
            whole(self.rare, "rare")


@dataclass(frozen=True)
class Drop:
    """Leave the variable out."""


Kind: TypeAlias = Auto | Linear | Curve | Levels | Drop
WORDS: dict[str, Kind] = {
    "auto": Auto(), "linear": Linear(), "curve": Curve(), "levels": Levels(), "drop": Drop(),
}  # fmt: skip


def as_kind(value: object, name: object) -> Kind:
    """The kind that a user gave for a variable, as a word or as an object."""
    if not isinstance(name, str):
        raise ValueError(f"terms: names of variables must be text, not {name!r}.")
    if isinstance(value, Auto | Linear | Curve | Levels | Drop):
        return value
    if isinstance(value, str) and value in WORDS:
        return WORDS[value]
    if isinstance(value, type) and issubclass(value, Linear | Curve | Levels | Drop):
        return value()
    raise ValueError(
        f"terms: {name!r} must be 'auto', 'linear', 'curve', 'levels', 'drop', or one of Linear(), Curve() and "
        f"Levels(), not {value!r}."
    )


@dataclass(frozen=True)
class Term:
    """Some encoded columns that enter a model together."""

    name: str
    kind: str  # linear, curve, detail, levels, season, pair, surface
    variables: tuple[str, ...]  # the variables that the columns are functions of
    parents: tuple[int, ...]  # positions of the terms without which this one is in no model
    columns: slice  # its encoded columns
    always: bool = False  # whether it is in every model

    @property
    def width(self) -> int:
        """The number of its columns."""
        return int(self.columns.stop - self.columns.start)

    @property
    def places(self) -> NDArray[np.intp]:
        """The positions of its columns."""
        return np.arange(self.columns.start, self.columns.stop)


def free_name(name: str, taken: Container[str]) -> str:
    """A name that is not taken: a variable may be called age:sex, or effect."""
    while name in taken:
        name += "'"
    return name
