"""Dates: a trend in days, and the seasons that the span of the data allows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from covey.tables.complaint import Column
from covey.terms.levels import Category, fit_levels
from covey.terms.numbers import Number, Sample, fit_number
from covey.terms.reading import as_days
from covey.validation import Array, FloatArray

YEAR, DAY = 365.2425, 1.0
# Two harmonics follow a season with two peaks.
HARMONICS = 2
# A season differs from a trend once it has come twice.
CYCLES = 2
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
# Monthly data fall on the first days of a month or the last four; daily data on more days than that.
DAYS_OF_MONTH = 6


@dataclass(frozen=True)
class Season:
    """Sines and cosines of a period in days, centred."""

    name: str
    period: float
    centres: tuple[float, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns: sine and cosine of each harmonic."""
        return tuple(f"{self.name} {wave}{h + 1}" for h in range(len(self.centres) // 2) for wave in ("sin", "cos"))

    def encode(self, days: FloatArray) -> FloatArray:
        """The encoded columns, 0 for missing dates."""
        waves = _waves(days, self.period, len(self.centres) // 2) - np.array(self.centres)
        return np.where(np.isnan(days)[:, None], 0.0, waves)


def _waves(days: FloatArray, period: float, harmonics: int) -> FloatArray:
    phase = 2 * np.pi * np.mod(days, period) / period
    waves = [wave(h * phase) for h in range(1, harmonics + 1) for wave in (np.sin, np.cos)]
    return np.sqrt(2) * np.column_stack(waves)  # mean square 1 over a period


@dataclass(frozen=True)
class Date:
    """A fitted date."""

    trend: Number
    seasons: tuple[Season, ...] = ()
    week: Category | None = None
    format: str = ""  # how it is written, if that is not ISO 8601

    kind = "date"

    @property
    def name(self) -> str:
        """The variable."""
        return self.trend.name

    @property
    def always(self) -> bool:
        """Whether its terms are in every model."""
        return self.trend.always

    @property
    def terms(self) -> tuple[tuple[str, str, int | None, tuple[str, ...]], ...]:
        """Name, kind, parent and column names of each term."""
        seasons = tuple((season.name, "season", None, season.columns) for season in self.seasons)
        return (*self.trend.terms, *seasons, *(self.week.terms if self.week else ()))

    def read(self, column: Column) -> FloatArray:
        """Dates as days since 1970."""
        return as_days(column, self.format)

    def encode(self, days: FloatArray) -> FloatArray:
        """The encoded columns of days since 1970, NaN for missing dates."""
        parts = [self.trend.encode(days), *(season.encode(days) for season in self.seasons)]
        if self.week:
            parts.append(self.week.encode(self.week.positions(weekdays(days))))
        return np.asfortranarray(np.column_stack(parts))

    def grid(self, n: int) -> Array:
        """Evenly spaced dates over the span."""
        days = np.linspace(self.trend.low, self.trend.high, n)
        return (days * 86_400).round().astype("int64").astype("datetime64[s]")

    def describe(self) -> dict[str, object]:
        """A line of `Encoding.table`."""
        span = np.array([self.trend.low, self.trend.high]).astype("datetime64[D]")
        parts = [name.removeprefix(self.name) for name, *_ in self.terms]
        trend = "curve" if self.trend.values.size else "linear"
        return self.trend.describe() | {
            "kind": " + ".join([trend, *(part for part in parts if part.startswith("["))]),
            "columns": sum(len(names) for *_, names in self.terms),
            "values": f"{span[0]} to {span[1]}",
        }

    def state(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {
            "trend": self.trend.state(),
            "seasons": [asdict(season) for season in self.seasons],
            "week": self.week.state() if self.week else None,
            "format": self.format,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Date:
        """The inverse of `state`."""
        seasons = (Season(one["name"], one["period"], tuple(one["centres"])) for one in state["seasons"])
        week = Category.from_state(state["week"]) if state["week"] else None
        return cls(Number.from_state(state["trend"]), tuple(seasons), week, state["format"])


def weekdays(days: FloatArray) -> Array:
    """The name of each day of the week, None for missing dates; 1970 began on a Thursday."""
    number = np.where(np.isnan(days), 7, (np.floor(np.nan_to_num(days)) + 3) % 7).astype(int)
    return np.array([*WEEKDAYS, None], dtype=object)[number]


def fit_date(sample: Sample, weights: FloatArray, *, seasons: bool = True) -> Date:
    """Fit a date that is not constant, in days since 1970, with the seasons that its span allows."""
    trend = fit_number(sample, weights)
    if not seasons:
        return Date(trend)
    days = sample.x[~np.isnan(sample.x)]
    shares = weights[~np.isnan(sample.x)]
    span = days.max() - days.min()
    name = sample.name
    found: list[Season] = []
    phases = {
        ("year", YEAR): np.unique(days.astype("datetime64[D]").astype("datetime64[M]").astype(int) % 12).size,
        ("day", DAY): np.unique(np.floor(days % 1 * 24 + 1e-6)).size,
    }
    for (word, period), distinct in phases.items():
        harmonics = min(HARMONICS, (distinct - 1) // 2)
        if span >= CYCLES * period * 0.99 and harmonics:
            centres = shares @ _waves(days, period, harmonics) / shares.sum()
            found.append(Season(f"{name}[{word}]", period, tuple(centres.tolist())))
    dates = np.floor(days).astype("datetime64[D]")
    in_month = np.unique((dates - dates.astype("datetime64[M]")).astype(int)).size
    week = None
    if span >= CYCLES * 7 - 1 and in_month >= DAYS_OF_MONTH and np.unique(weekdays(days)).size > 1:
        texts = weekdays(days)
        week = fit_levels(f"{name}[week]", texts, shares, order=WEEKDAYS, rare=1, always=sample.always)
    return Date(trend, tuple(found), week)
