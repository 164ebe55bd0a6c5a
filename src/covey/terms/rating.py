"""Rating tables: the scores of an additive model, per value or level of each variable and pair."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from covey.files import write_atomically
from covey.optional import optional
from covey.tables.spreadsheet import guarded
from covey.terms.dates import Date
from covey.terms.effects import FittedTerms
from covey.terms.expansion import Expansion
from covey.terms.kinds import free_name
from covey.terms.levels import MISSING
from covey.terms.numbers import Number
from covey.terms.parts import Axis, Part
from covey.validation import Array, FloatArray, whole

CONSTANT = "constant"
# What spreadsheets do not allow in the name of a sheet, and how long it may be.
NOT_IN_SHEETS = re.compile(r"[\[\]:*?/\\\x00-\x1f]")
LONGEST_SHEET = 31

# What is known of a line: where points are computed if it has no width, its ends, or its level.
WORDS = ("at", "from", "to", "level", "width")
Cells = Sequence[object] | Array


def rating_tables(fitted: FittedTerms, bins: int = 20) -> dict[str, pd.DataFrame]:
    """The constant, and a table per variable and pair; see `to_tables` of the estimators."""
    whole(bins, "bins")
    points = _by_output(fitted, fitted.constant[None, :])
    tables = {CONSTANT: pd.DataFrame({"term": [CONSTANT], **points})}
    for part in fitted.parts:
        tables[free_name(part.name, tables)] = _table(fitted, part, bins)
    return tables


def _table(fitted: FittedTerms, part: Part, bins: int) -> pd.DataFrame:
    """The points of a part: of its values one by one, or of bins in which it is a plane through its sides' middles."""
    expansion, roots = fitted.expansion, part.roots
    names = [expansion.encoding.terms[root].name for root in roots]
    straight = not {"curve", "surface"} & {expansion.terms[term].kind for term in part.terms}
    # a straight line per level bends where the rows of the level end
    bends = [expansion.ends_within(*pair) if straight else np.empty(0) for pair in zip(roots, roots[::-1], strict=True)]
    n_bins = max(2, bins // 2) if len(roots) > 1 else 1 if straight else bins
    lines = [_lines(expansion, *side, n_bins) for side in zip(roots, bends, strict=True)]
    wide = [bool(cells["width"].notna().any()) for cells in lines]
    if straight and sum(wide) == 1:
        k = wide.index(True)
        lines[k] = _lines(expansion, roots[k], bends[k], 1)

    def values(side: int = 0, word: str = "at") -> FloatArray:
        at = [cells[word if k == side else "at"].tolist() for k, cells in enumerate(lines)]
        return fitted.effect(*names, at=at[0] if len(at) == 1 else at).effect.reshape(*map(len, lines), -1)

    ends = {side: (values(side, "from"), values(side, "to")) for side in np.flatnonzero(wide).tolist()}
    points = values()
    if ends:
        middles = np.mean([(begin + end) / 2 for begin, end in ends.values()], axis=0)
        points = middles - np.sum([(end - begin) / 2 for begin, end in ends.values()], axis=0)
    columns: dict[str, object] = {"term": part.name}
    slopes: dict[str, FloatArray] = {}
    grid = np.meshgrid(*(np.arange(len(cells)) for cells in lines), indexing="ij")
    for k, (name, cells) in enumerate(zip(names, lines, strict=True)):
        after = f"_{k + 1}" if len(names) > 1 else ""
        columns[f"variable{after}"] = name
        for word in ("from", "to", "level"):
            columns[f"{word}{after}"] = cells[word].to_numpy()[grid[k].ravel()]
        begin, end = ends.get(k, (points, points))
        width = np.array([one or np.inf for one in cells["width"]])[grid[k]]
        slopes |= _by_output(fitted, (end - begin) / width[..., None], f"slope{after}")
    return pd.DataFrame(columns | _by_output(fitted, points) | slopes)


def _by_output(fitted: FittedTerms, values: FloatArray, name: str = "points") -> dict[str, FloatArray]:
    """A column of points, or one per output; outputs are the last axis."""
    names = [f"{name} {output}" for output in fitted.outputs] or [name]
    return {one: values[..., k].ravel() for k, one in enumerate(names)}


def _lines(expansion: Expansion, root: int, bends: FloatArray, bins: int) -> pd.DataFrame:
    """The lines of a main term: from, to, level, the value in the middle, and the width, None if it has none.

    A number with few values has a line for each. Bins end where lines bend, at some standardised values.
    """
    one = expansion.encoding.variable(expansion.encoding.terms[root].variables[0])
    axis = Axis.of(expansion, root, 2)
    if axis.kind == "levels":
        return _frame({"at": axis.raw, "level": axis.values})
    if axis.kind == "season":
        return _season_lines(axis)
    number = one.trend if isinstance(one, Date) else one
    assert isinstance(number, Number)
    if isinstance(one, Number) and (one.n_distinct == 2 or (one.integer and one.high - one.low < bins)):
        values = one.grid(10**6)
        cells = _frame({"at": values, "from": values, "to": values})
    else:
        edges, more = _edges(np.array(number.quantiles), bins), number.mean + number.sd * bends
        edges = np.union1d(edges, more[(more > edges[0]) & (more < edges[-1])])
        middles = (edges[1:] + edges[:-1]) / 2
        cells = _frame({"at": middles, "from": edges[:-1], "to": edges[1:], "width": np.diff(edges)})
    if isinstance(one, Date):
        for name in ("at", "from", "to"):
            seconds = (cells[name].to_numpy(dtype=float) * 86_400).round().astype("int64")
            cells[name] = pd.Series(seconds.astype("datetime64[s]"), dtype=object)
    if number.share_missing:
        gap = _frame({"at": [None if isinstance(one, Date) else np.nan], "level": [MISSING]})
        cells = pd.concat([cells.astype(object), gap.astype(object)], ignore_index=True)
    return cells


def _season_lines(axis: Axis) -> pd.DataFrame:
    """Months of a year, or hours of a day."""
    span = np.ptp(axis.values.astype("datetime64[m]").astype(int))
    start = axis.values[0].astype("datetime64[m]")
    if span > 1440:
        edges = (start.astype("datetime64[M]") + np.arange(13)).astype("datetime64[m]")
        words = [str(edge.astype("datetime64[D]"))[5:] for edge in edges]
        words[-1] = "12-31"
    else:
        edges = start + np.arange(0, 1441, 60).astype("timedelta64[m]")
        words = [f"{hour:02d}:00" for hour in range(25)]
    return _frame({"at": edges[:-1] + (edges[1:] - edges[:-1]) // 2, "from": words[:-1], "to": words[1:]})


def _frame(cells: Mapping[str, Cells]) -> pd.DataFrame:
    """Lines from the words that are known of them; others are None."""
    blank = [None] * len(cells["at"])
    return pd.DataFrame({word: pd.Series(list(cells.get(word, blank)), dtype=object) for word in WORDS})


def _edges(quantiles: FloatArray, bins: int) -> FloatArray:
    """Edges at quantiles, and between those that are farther apart than a share of the range."""
    edges = np.unique(np.interp(np.linspace(0, 1, bins + 1), np.linspace(0, 1, quantiles.size), quantiles))
    widest = (edges[-1] - edges[0]) / bins
    inner = [
        np.linspace(low, high, int(np.ceil((high - low) / widest - 1e-9)) + 1)[:-1] for low, high in pairwise(edges)
    ]
    return np.append(np.concatenate(inner), edges[-1])


def write_tables(tables: dict[str, pd.DataFrame], path: str | os.PathLike[str]) -> Path:
    """Write tables to a CSV or XLSX file, completely or not at all; text is no formula there."""
    file = Path(path)
    kind = file.suffix.lower()
    if kind not in (".csv", ".xlsx"):
        raise ValueError(f"to_tables writes files that end in .csv or .xlsx, not {file.name!r}.")
    safe = [guarded(_texts(table)) for table in tables.values()]
    if kind == ".csv":
        content = _long(safe).to_csv(index=False).encode("utf-8", errors="backslashreplace")
    else:
        with optional("Writing .xlsx"):
            import_module("openpyxl")
        buffer = io.BytesIO()
        with pd.ExcelWriter(buffer, engine="openpyxl") as book:
            for sheet, table in zip(_sheets(tables), safe, strict=True):
                table.to_excel(book, sheet_name=sheet, index=False)
        content = buffer.getvalue()
    write_atomically(file, content)
    return file


def _long(tables: list[pd.DataFrame]) -> pd.DataFrame:
    """All tables below each other; those of one variable have the columns of the first variable of a pair."""
    single = re.compile(r"^(variable|from|to|level|slope)\b")
    renamed = [table.rename(columns=lambda name: single.sub(r"\1_1", name)).astype(object) for table in tables]
    every = list(dict.fromkeys(column for table in renamed for column in table.columns))
    points = [column for column in every if column.startswith(("points", "slope"))]
    order = [column for column in every if column not in points] + points
    return pd.concat(renamed, ignore_index=True).reindex(columns=order)


def _texts(table: pd.DataFrame) -> pd.DataFrame:
    """The table with dates as text, and without control characters, which spreadsheets refuse."""

    def text(value: object) -> object:
        if isinstance(value, np.datetime64 | pd.Timestamp):
            return pd.Timestamp(value).isoformat(sep=" ").removesuffix(" 00:00:00")
        return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "\ufffd", value) if isinstance(value, str) else value

    out = table.copy()
    for name in out.columns:
        if out[name].dtype.kind == "O":
            out[name] = pd.Series([text(value) for value in out[name]], dtype=object, index=out.index)
    return out


def _sheets(names: Iterable[str]) -> list[str]:
    """Names of sheets: allowed, not too long, and different from each other even without their case."""
    found: list[str] = []
    for name in names:
        plain = NOT_IN_SHEETS.sub("_", str(name)).strip("'") or "_"
        sheet, number = plain[:LONGEST_SHEET], 1
        while sheet.lower() in {one.lower() for one in found} or sheet.lower() == "history":
            number += 1
            after = f" ({number})"
            sheet = plain[: LONGEST_SHEET - len(after)] + after
        found.append(sheet)
    return found
