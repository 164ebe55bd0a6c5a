"""Tables and groups from files: read whole, checked once, refused with a reason and a remedy."""

from covey.tables.columns import find_columns, missing_values, numbers, numeric_frame
from covey.tables.complaint import TableError
from covey.tables.grouped import read_grouped
from covey.tables.grouping import read_groups
from covey.tables.reading import find_files, read_table, read_tables

__all__ = [
    "TableError",
    "find_columns",
    "find_files",
    "missing_values",
    "numbers",
    "numeric_frame",
    "read_grouped",
    "read_groups",
    "read_table",
    "read_tables",
]
