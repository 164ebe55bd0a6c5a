"""Read a table from an Excel file."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import IO
from zipfile import BadZipFile

import pandas as pd

from covey.optional import optional
from covey.tables.complaint import TableError, check_names, listed

__all__ = ["read_excel"]


def read_excel(path: Path, kind: str, source: Path | IO[bytes]) -> pd.DataFrame:
    """Read the only sheet with content; its first line has the names."""
    with optional(f"Reading {path}"):
        import_module("openpyxl")
    try:
        sheets = pd.read_excel(source, sheet_name=None, header=None, engine="openpyxl")
    except (BadZipFile, KeyError, ValueError, TypeError) as reason:
        raise TableError(f"{path} cannot be read as Excel: {str(reason).splitlines()[0].rstrip('.')}.") from None
    filled = {name: sheet for name, sheet in sheets.items() if not sheet.empty}
    if len(filled) != 1:
        several = f"several sheets with content, {listed(list(filled))}" if filled else "no sheet with content"
        raise TableError(f"{path} has {several}: save the table as a file of its own.")
    (sheet,) = filled.values()
    names = [f"Unnamed: {j}" if pd.isna(name) else str(name) for j, name in enumerate(sheet.iloc[0])]
    check_names(names, path)
    return sheet.iloc[1:].set_axis(names, axis=1).reset_index(drop=True).infer_objects()
