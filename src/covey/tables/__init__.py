"""Read and check tables and groups from files; bad input is refused with a reason and a remedy."""

from covey.tables.columns import apart, days_since, earliest, find_columns, missing_values, numbers, numeric_frame
from covey.tables.complaint import TableError
from covey.tables.grouping import read_groups
from covey.tables.reading import find_files, read_table, read_tables
from covey.tables.unreadable import has_decimal_commas, is_identifier

__all__ = [
    "TableError",
    "apart",
    "days_since",
    "earliest",
    "find_columns",
    "find_files",
    "has_decimal_commas",
    "is_identifier",
    "missing_values",
    "numbers",
    "numeric_frame",
    "read_groups",
    "read_table",
    "read_tables",
]
