"""The options of the commands, each named once.

A settings class is a table of options: the name and the type of a field, its default, and an `Option` with everything
else. The command line, the settings in ``run.json``, the command that repeats a fit, and the option names in messages
are all read from these tables.
"""

from covey.settings.option import Option, Settings
from covey.settings.tables import (
    HALVES,
    KNOCKOFFS,
    SURVIVAL,
    VARIABLES,
    FitSettings,
    PredictSettings,
    StabilitySettings,
    TableSettings,
)
from covey.settings.wording import as_options

__all__ = [
    "HALVES",
    "KNOCKOFFS",
    "SURVIVAL",
    "VARIABLES",
    "FitSettings",
    "Option",
    "PredictSettings",
    "Settings",
    "StabilitySettings",
    "TableSettings",
    "as_options",
]
