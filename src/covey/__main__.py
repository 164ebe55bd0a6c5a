"""The ``covey`` command, also as ``python -m covey``; without its libraries it says how to install them."""

from __future__ import annotations

import sys

from covey.optional import MissingExtraError, optional

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    try:
        with optional("The command line"):
            from covey.cli import main as run
    except MissingExtraError as reason:
        sys.exit(f"error: {reason}")
    run()


if __name__ == "__main__":
    main()
