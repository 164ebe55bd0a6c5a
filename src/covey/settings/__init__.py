"""The options of the commands, each named once.

A settings class is a table of options: the name and the type of a field, its default, and an `Option` with everything
else. The command line, the settings in ``run.json``, the command that repeats a fit, and the option names in messages
are all read from these tables.
"""

from covey.settings.option import Entry, Option, Settings
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

__all__ = [
    "HALVES",
    "KNOCKOFFS",
    "SURVIVAL",
    "VARIABLES",
    "Entry",
    "FitSettings",
    "Option",
    "PredictSettings",
    "Settings",
    "StabilitySettings",
    "TableSettings",
]
