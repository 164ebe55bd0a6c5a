"""``covey completion``."""

from __future__ import annotations

from typing import Annotated, Literal

import typer


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish", "powershell"], typer.Argument(help="The shell.", show_default=False)
    ],
) -> None:
    """Print a script that lets a shell complete commands and options.

    \b
    Examples:
      covey completion bash > ~/.local/share/bash-completion/completions/covey
      covey completion zsh > "${fpath\\[1]}/_covey"
      covey completion fish > ~/.config/fish/completions/covey.fish
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    typer.echo(get_completion_script(prog_name="covey", complete_var="_COVEY_COMPLETE", shell=shell))
