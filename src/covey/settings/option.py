"""Tables of options: a settings class whose fields say everything about the options of a command."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from typing import Any, get_type_hints

REQUIRED: Any = MISSING


@dataclass(frozen=True)
class Option:
    """An option of a command; its name, type and default are those of the field of the settings class."""

    help: str
    metavar: str | None = None  # the placeholder for its value
    panel: str | None = None  # the heading under which the help page lists it
    short: str = ""  # its short form, such as -t
    positional: bool = False  # whether it is an argument without a name
    parameter: str = ""  # the parameter of the estimator, or of a function of `covey.evidence`, that it sets
    none: object = None  # the value of that parameter if the option is "none"
    shown: str = ""  # the default on the help page, if the estimator chooses it
    least: int | None = None  # its smallest value
    name: str = ""
    kind: Any = None
    default: Any = None

    @property
    def flag(self) -> str:
        """The option as it is typed."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def several(self) -> bool:
        """Whether the option may be repeated."""
        return self.kind == tuple[str, ...]

    @property
    def negative(self) -> str:
        """The option that says no, if leaving the option out does not; otherwise empty."""
        says_no = self.default is True or self.kind == bool | None
        return self.flag.replace("--", "--no-", 1) if says_no else ""

    def words(self, value: object) -> Iterator[str]:
        """The option with a value, as words of a command."""
        if isinstance(value, bool):
            yield self.flag if value else self.negative
            return
        for item in value if isinstance(value, tuple) else (value,):
            yield from (str(item),) if self.positional else (self.flag, str(item))


def option(default: object, *about: Any, **more: Any) -> Any:
    """A field of a settings class: its default, or `REQUIRED`, and its `Option`."""
    return field(default=default, metadata={"option": Option(*about, **more)})


class Settings:
    """Base class of the settings of a command."""

    @classmethod
    @cache
    def table(cls) -> Mapping[str, Option]:
        """The options, by the names of the fields."""
        kinds = get_type_hints(cls)
        return {
            one.name: replace(one.metadata["option"], name=one.name, kind=kinds[one.name], default=one.default)
            for one in fields(cls)  # type: ignore[arg-type]
        }

    def parameters(self) -> dict[str, Any]:
        """The parameters that the options set, without those left to their defaults."""
        found = {}
        for one in self.table().values():
            value = getattr(self, one.name)
            if one.parameter and value is not None:
                value = int(value) if isinstance(value, str) and value.isdigit() else value
                found[one.parameter] = one.none if value == "none" else value
        return found

    def changed(self) -> dict[str, object]:
        """The settings that differ from their defaults."""
        return {n: getattr(self, n) for n, one in self.table().items() if getattr(self, n) != one.default}

    def command(self, name: str, out: str) -> str:
        """The command with these settings: the options that differ from their defaults, quoted for a shell.

        The seed is always included, since the result depends on it.

        >>> from covey.settings import FitSettings
        >>> FitSettings(("a table.csv",), ("y",), groups=("g=x*",), nested=False).command("fit", "out")
        "covey fit 'a table.csv' --target y --groups 'g=x*' --seed 0 --no-nested --out out"
        """
        changed = {"seed": getattr(self, "seed", 0), **self.changed()}
        words = [word for n, one in self.table().items() if n in changed for word in one.words(changed[n])]
        return shlex.join(["covey", name, *words, "--out", out])
