"""Give a command the options of its settings, and those that several commands share besides."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer

from covey.settings import Option, Settings

Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object, and nothing else.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace earlier files.")]


def to(metavar: str, help: str) -> Any:
    """The option that says where a command writes."""
    return typer.Option("--out", "-o", metavar=metavar, help=help)


def takes(settings: type[Settings], *without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command take the options of a settings class, except for some; it is called with the settings first.

    An option that the command declares itself replaces the one of the same name.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        declared = list(signature(command, eval_str=True).parameters.values())[1:]
        left_out = {*without, *(one.name for one in declared)}
        options = [one for one in settings.table().values() if one.name not in left_out]

        @wraps(command)
        def run(**given: Any) -> None:
            values = {one.name: given.pop(one.name) for one in options}
            values |= {one.name: tuple(values[one.name] or ()) for one in options if one.several}
            command(settings(**values), **given)

        parameters = [_parameter(one) for one in options]
        parameters += [one.replace(kind=Parameter.KEYWORD_ONLY) for one in declared]
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return decorate


def _parameter(one: Option) -> Parameter:
    """An option as a parameter that typer reads; it takes lists where settings have tuples."""
    kind, default = (list[str], None) if one.several else (one.kind, one.default)
    if one.positional:
        default = Parameter.empty
        info: Any = typer.Argument(metavar=one.metavar, help=one.help, show_default=False)
    else:
        kind = kind | None if one.several else kind
        names = [f"{one.flag}/{one.negative}" if one.negative else one.flag, *([one.short] if one.short else [])]
        info = typer.Option(
            *names, metavar=one.metavar, help=one.help, min=one.least, rich_help_panel=one.panel,
            show_default=one.shown or (default is not None and default is not False),
        )  # fmt: skip
    return Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info])
