"""Read and check tables and groups from files; bad input is refused with a reason and a remedy."""

from covey.tables.anndata import from_anndata
from covey.tables.columns import find_columns
from covey.tables.complaint import TableError
from covey.tables.grouping import read_groups
from covey.tables.reading import find_files, read_table

__all__ = ["TableError", "find_columns", "find_files", "from_anndata", "read_groups", "read_table"]
