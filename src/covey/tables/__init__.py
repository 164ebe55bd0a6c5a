"""Read and check tables and groups from files; bad input is refused with a reason and a remedy."""

from covey.tables.anndata import from_anndata
from covey.tables.columns import (
    apart,
    find_columns,
    missing_values,
    named_faults,
    numbers,
    numeric_frame,
    refuse_missing,
)
from covey.tables.complaint import TableError
from covey.tables.grouping import read_groups
from covey.tables.reading import find_files, read_table
from covey.tables.unreadable import disguise_of

__all__ = [
    "TableError",
    "apart",
    "disguise_of",
    "find_columns",
    "find_files",
    "from_anndata",
    "missing_values",
    "named_faults",
    "numbers",
    "numeric_frame",
    "read_groups",
    "read_table",
    "refuse_missing",
]
