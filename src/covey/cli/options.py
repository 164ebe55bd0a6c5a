"""Give a command the options of its settings, and those that several commands share besides."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer

from covey.settings import Entry, Settings

Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object, and nothing else.")]


def takes(settings: type[Settings], *without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command take the options of a settings class, except for some; it is called with the settings first.

    An option that the command declares itself replaces the one of the same name.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        declared = list(signature(command, eval_str=True).parameters.values())[1:]
        left_out = {*without, *(one.name for one in declared)}
        entries = [one for one in settings.table().values() if one.name not in left_out]
        several = {one.name for one in entries if one.several}

        @wraps(command)
        def run(**given: Any) -> None:
            values = {one.name: given.pop(one.name) for one in entries}
            command(settings(**{n: tuple(v or ()) if n in several else v for n, v in values.items()}), **given)

        parameters = [_parameter(one) for one in entries]
        parameters += [one.replace(kind=Parameter.KEYWORD_ONLY) for one in declared]
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return decorate


def _parameter(one: Entry) -> Parameter:
    """An entry of a table of options as a parameter that typer reads."""
    option, kind, default = one.option, one.kind, one.default
    if one.several:
        kind, default = list[str], Parameter.empty if option.positional else None
        kind = kind if option.positional else kind | None
    shared: dict[str, Any] = {"metavar": option.metavar, "help": option.help}
    if option.positional:
        info: Any = typer.Argument(**shared, show_default=False)
        default = Parameter.empty
    else:
        flag = f"{one.flag}/{one.negative}" if one.negative else one.flag
        shown = option.shown or (default is not None and default is not False)
        names = [flag, *([option.short] if option.short else [])]
        info = typer.Option(*names, **shared, min=option.least, rich_help_panel=option.panel, show_default=shown)
    return Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info])
