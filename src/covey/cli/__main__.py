"""``python -m covey.cli``: the same as ``covey``."""

from covey.cli import main

main()
