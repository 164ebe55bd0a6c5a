"""Fit an encoding: guess what each variable is, fit it, and say what was left out."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from covey.tables.complaint import Column, TableError, listed
from covey.tables.marks import are_codes
from covey.tables.unreadable import complaint, find_faulty
from covey.terms.dates import Date, fit_date
from covey.terms.encoding import Encoding, Variable
from covey.terms.guessing import guess, looks_like_identifier, text_reason
from covey.terms.kinds import Auto, Drop, Kind, Levels, Linear
from covey.terms.levels import Category, fit_levels, spelt_alike
from covey.terms.numbers import BOOLEAN, LEAST_FLAGGED, N_QUANTILES, Number, Sample, fit_number, label_positions
from covey.terms.pairs import PairsLike, find_pairs
from covey.terms.reading import as_days, as_labels, as_numbers, has_time_zone, level_order, text_columns
from covey.terms.splines import default_knots
from covey.validation import FloatArray

# With more numbers than this, each gets a line and no curve unless a user wants it.
MOST_CURVES = 1000
# Values that differ less than this, relative to the largest, differ by rounding.
ROUNDING = 1e-13
SMALLEST = 1e-290  # numbers below have few digits


# A code for missing values.
CODE = re.compile(r"-?9{2,}")

# Names of variables whose whole numbers may be codes.
CODE_NAME = re.compile(
    r"(.*[\W_])?(plz|zip|zip[\W_]?code|post[\W_]?code|postal[\W_]?code|code|fips|type|category|cluster|region|district)"
)

# What a last row that sums up the others is called.
TOTALS = ("total", "totals", "grand total", "all", "sum", "gesamt", "summe", "insgesamt", "somme", "totale", "suma")

# Reasons that differ in a count.
FREE = ("free text", "codes")

# The most values that are inspected to find out whether numbers are dates.
MOST_DATES = 1000


class _LeftOutError(Exception):
    """A variable is left out; the message is the reason."""


def fit_encoding(frame: pd.DataFrame, given: Mapping[str, Kind], pairs: PairsLike, weights: FloatArray) -> Encoding:
    """Fit the encoding of a table, with the kinds and the pairs that a user gave; weights count as repetitions."""
    names = list(frame.columns)
    if not weights.all():  # rows without weight are no rows
        frame, weights = frame.loc[weights > 0], weights[weights > 0]
    texts = (column for name, column in text_columns(frame) if not isinstance(given[name], Drop | Levels))
    # text that would be numbers or dates, had it been spelt as expected, is not taken as levels
    if faulty := find_faulty(column for column in texts if guess(column).holds == "levels"):
        raise TableError(complaint(faulty))
    planned: dict[str, Sample | Category | Date] = {}
    dropped: dict[str, str] = {}
    for name in names:
        try:
            planned[name] = _plan(frame[name], given[name], weights)
        except _LeftOutError as reason:
            dropped[name] = str(reason)
    for name, first in _repeated(frame, planned, given).items():
        del planned[name]
        dropped[name] = f"the same values as {first}"
    if not planned:
        raise TableError(
            f"No variable of the table can be used: {_reasons(dropped)} If one should be, say what it is, "
            f"such as terms={{{names[0]!r}: 'linear'}} or 'levels'."
        )
    samples = [one for one in planned.values() if isinstance(one, Sample)]
    zoned = [name for name, one in planned.items() if isinstance(one, Date) and has_time_zone(frame[name])]
    said = [
        _totals(frame),
        _left_out(dropped),
        *map(_code, samples),
        *map(_digits_of_dates, samples),
        *(_may_be_codes(one) for one in samples if isinstance(given[one.name], Auto)),
        f"Times with a time zone are read as UTC: {listed(zoned)}." if zoned else "",
    ]
    remarks = [remark for remark in said if remark]
    guessed = [one for one in samples if isinstance(given[one.name], Auto) and one.n_knots]
    if len(guessed) > MOST_CURVES:
        planned |= {one.name: replace(one, n_knots=0) for one in guessed}
        remarks.append(
            f"{len(guessed)} numbers are more than {MOST_CURVES} and get no curves; name those that should have one, "
            f"such as terms={{{guessed[0].name!r}: 'curve'}}."
        )
    n_quantiles = N_QUANTILES if len(samples) <= MOST_CURVES else 5  # only the quartiles of many numbers are kept
    fitted: dict[str, Variable] = {
        name: fit_number(one, weights, n_quantiles) if isinstance(one, Sample) else one for name, one in planned.items()
    }
    encoding = Encoding(names, fitted, dropped)
    wanted, more = find_pairs(pairs, encoding, frame, weights)
    return Encoding(names, fitted, dropped, wanted, [*remarks, *_remarks(fitted.values()), *more])


def _repeated(
    frame: pd.DataFrame, planned: Mapping[str, Sample | Category | Date], given: Mapping[str, Kind]
) -> dict[str, str]:
    """Variables that nothing was said about and that repeat an earlier one in every row, with that one."""
    seen: dict[Hashable, str] = {}
    repeated = {}
    for name, one in planned.items():
        if isinstance(one, Category):
            key: Hashable = tuple(as_labels(frame[name]))
        else:
            key = (one.x if isinstance(one, Sample) else as_days(frame[name], one.format)).tobytes()
        first = seen.setdefault((type(one), key), name)
        if first != name and isinstance(given[name], Auto):
            repeated[name] = first
    return repeated


def _plan(column: Column, kind: Kind, weights: FloatArray) -> Sample | Category | Date:
    """What a variable becomes: a number to be fitted, or levels or a date, which are fitted at once."""
    name, always = str(column.name), getattr(kind, "always", False)
    if isinstance(kind, Drop):
        raise _LeftOutError("as you said")
    found = guess(column)
    if found.holds == "objects":
        if isinstance(kind, Auto):
            raise _LeftOutError("lists or other objects")
        raise TableError(f"The variable {name!r} holds lists or other objects, which cannot be encoded; drop it.")
    if isinstance(kind, Levels) or (isinstance(kind, Auto) and found.holds == "levels"):
        return _plan_levels(column, kind, weights)
    is_date, labels = found.holds == "date", None
    if is_date:
        x = as_days(column, found.format)
    elif found.holds == "ordered":
        labels = tuple(level_order(column, ()))
        x = label_positions(column, labels)
    else:
        x = as_numbers(column)
        labels = BOOLEAN if found.holds == "boolean" else None
    knots, known = getattr(kind, "knots", None), ~np.isnan(x)
    n_knots = 0 if isinstance(kind, Linear) else knots or default_knots(int(weights[known].sum()))
    sample = Sample.of(
        name, x, weights, n_knots=n_knots, detail=knots is None and not is_date, labels=labels, integer=found.integer,
        always=always,
    )  # fmt: skip
    if _is_constant(sample):
        if is_date or known.all():
            raise _LeftOutError("constant")
        # missing values differ from the one value there is
        texts = as_labels(column)
        texts[known] = texts[known][0]
        return fit_levels(name, texts, weights, rare=1, always=always)
    if is_date:
        return replace(fit_date(sample, weights, seasons=isinstance(kind, Auto)), format=found.format)
    if isinstance(kind, Auto) and found.integer and looks_like_identifier(name, sample.distinct, int(known.sum())):
        raise _LeftOutError("identifiers: they number the rows")
    return sample


def _is_constant(sample: Sample) -> bool:
    """Whether the values differ by rounding at most; refuse a column without values."""
    values = sample.distinct
    if not len(values):
        raise _LeftOutError("all values are missing")
    return bool(values[-1] - values[0] <= max(ROUNDING * max(abs(values[0]), abs(values[-1])), SMALLEST))


def _plan_levels(column: Column, kind: Kind, weights: FloatArray) -> Category:
    texts = as_labels(column)
    known = [text for text in texts if text is not None]
    if not known:
        raise _LeftOutError("all values are missing")
    if isinstance(kind, Auto) and not hasattr(column, "cat") and (reason := text_reason(known)):
        raise _LeftOutError(reason)
    rare, always = getattr(kind, "rare", None), getattr(kind, "always", False)
    category = fit_levels(str(column.name), texts, weights, order=level_order(column, known), rare=rare, always=always)
    if len(category.labels) == 1:
        raise _LeftOutError("all of its levels are rare" if category.joined else "constant")
    return category


def _reasons(dropped: Mapping[str, str]) -> str:
    """The variables that are left out, those with the same reason together."""
    names: dict[str, list[str]] = defaultdict(list)
    for name, reason in dropped.items():
        names[reason.partition(":")[0] if reason.startswith(FREE) else reason].append(name)
    return f"Left out: {'; '.join(f'{listed(some)} ({reason})' for reason, some in names.items())}."


def _left_out(dropped: Mapping[str, str]) -> str:
    """The remark on variables that are left out, with the remedy for text that may have levels after all."""
    guessed = [name for name, reason in dropped.items() if reason.startswith((*FREE, "identifiers: nearly"))]
    remedy = f" To use {guessed[0]} by its values, say terms={{{guessed[0]!r}: 'levels'}}." if guessed else ""
    return f"{_reasons(dropped)}{remedy}" if dropped else ""


def _totals(frame: pd.DataFrame) -> str:
    """A remark if the last row is called a total."""
    for name, column in text_columns(frame):
        last = column.iloc[-1]
        if isinstance(last, str) and last.strip(" :").casefold() in TOTALS and (column == last).sum() == 1:
            return f"The last row has {last!r} in {name!r}: if it sums up the other rows, leave it out."
    return ""


def _remarks(fitted: Collection[Variable]) -> list[str]:
    """Remarks on codes, joined levels and missing values."""
    categories = [one for one in fitted if isinstance(one, Category)]
    joined = {one.name: f"{len(one.joined)} levels" for one in categories if one.joined}
    trends = [one.trend if isinstance(one, Date) else one for one in fitted]
    filled = {one.name: f"{one.n_missing}" for one in trends if isinstance(one, Number) and one.n_missing}
    level = [one.name for one in categories if one.missing is not None]
    codes = [one.name for one in categories if are_codes({*one.labels, *one.joined} - {one.other, one.missing})]
    said = []
    if codes:
        said.append(
            f"Digits with leading zeros are codes, and their values levels: {listed(codes)}. If {codes[0]} is a "
            f"number, say terms={{{codes[0]!r}: 'linear'}}."
        )
    for one in categories:
        if alike := spelt_alike([*one.labels, *one.joined]):
            said.append(f"{one.name} has levels that differ in spaces or capitals only: {listed(alike)}.")
    if joined:
        said.append(f"Rare levels were joined into one: {listed(joined)}.")
    if filled:
        said.append(
            f"Missing numbers count as the mean, with a flag where at least {LEAST_FLAGGED} rows miss them: "
            f"{listed(filled)}."
        )
    if level:
        said.append(f"Missing values are a level: {listed(level)}.")
    return said


def _code(sample: Sample) -> str:
    """A remark if the smallest or the largest value looks like a code for missing values: -999, or 99 far from others.

    It is all nines, repeated, and further from the next value than that is from the other end.
    """
    values = sample.distinct
    for code, near, far in ((values[0], values[1], values[-1]), (values[-1], values[-2], values[0])):
        n_rows = int((sample.x == code).sum())
        if CODE.fullmatch(f"{code:g}") and n_rows >= LEAST_FLAGGED and abs(code - near) > abs(near - far) > 0:
            return (
                f"{sample.name} is {code:g} in {n_rows} rows, far from all other values ({min(near, far):g} to "
                f"{max(near, far):g}): if that means missing, read the table with na_values=['{code:g}']."
            )
    return ""


def _digits_of_dates(sample: Sample) -> str:
    """A remark if all values are dates without separators, such as 20201231."""
    values = sample.distinct[:MOST_DATES]
    if not (values[0] >= 1e7 and values[-1] < 1e8 and (values == np.rint(values)).all()):
        return ""
    texts = [f"{value:.0f}" for value in values]
    if pd.to_datetime(pd.Series(texts), format="%Y%m%d", errors="coerce").isna().any():
        return ""
    first = texts[0]
    return f"{sample.name} is taken as a number: if {first} is a date, write {first[:4]}-{first[4:6]}-{first[6:]}."


def _may_be_codes(sample: Sample) -> str:
    """A remark if whole numbers have the name of a code, such as a postcode."""
    values = sample.distinct
    if sample.labels or len(values) < 3 or not CODE_NAME.fullmatch(sample.name.lower()) or (values % 1).any():
        return ""
    return f"{sample.name} is taken as a number: if its values are codes, say terms={{{sample.name!r}: 'levels'}}."
