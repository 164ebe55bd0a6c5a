"""The command line, as ``python -m covey``."""

from __future__ import annotations

from covey.cli import main

if __name__ == "__main__":
    main()
