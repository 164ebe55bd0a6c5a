"""What a user asks for: plain values, kept as they were given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["FitSettings", "TableSettings", "Told", "silent"]

# Called with what is being done, for a progress bar.
Told = Callable[[str], None]


def silent(stage: str) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class TableSettings:
    """A table and how its columns are used.

    Attributes
    ----------
    data : tuple of str
        Files, patterns, or folders of Parquet.
    target : str or tuple of str
        The column to predict, or several; none for survival times.
    groups : tuple of str
        As `covey.tables.read_groups` reads them; every column is a group of its own without.
    spline : tuple of str
        ``COLUMN:5`` expands a column in a cubic spline of five columns; the name may be a pattern.
    onehot : tuple of str
        Columns whose values become one column each.
    drop : tuple of str
        Columns that are not used.
    date : tuple of str
        Columns of dates, which become days since the earliest.
    impute : {"median", "mean"}, optional
        How missing numbers are filled.
    drop_missing : bool
        Whether rows with missing values are left out; with `impute`, those that lack what cannot be filled.
    handle_unknown : {"error", "ignore"}
        What `covey predict` does with a category that the fit did not see: refuse it, or take it as none of them.
    sep : str, optional
        What stands between the values of a text file; found from its header by default.
    decimal : str
        The decimal mark of a text file.
    weights : str, optional
        The column of row weights.
    family : str
        What kind of response it is, one of `covey.workflow.response.FAMILIES`; "auto" finds out.
    offset : str, optional
        The column that is added to the linear predictor; ``"log:COLUMN"`` takes its logarithm.
    time, event : str, optional
        The columns of survival times and of whether the event happened then.
    event_value : tuple of str
        The values of `event` that are events, where it does not hold 0 and 1 or truth values.
    start : str, optional
        The column of the time of entry.
    strata : tuple of str
        The columns of the strata, each with a baseline hazard of its own.
    """

    data: tuple[str, ...]
    target: str | tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    spline: tuple[str, ...] = ()
    onehot: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    date: tuple[str, ...] = ()
    impute: str | None = None
    drop_missing: bool = False
    handle_unknown: str = "error"
    sep: str | None = None
    decimal: str = "."
    weights: str | None = None
    family: str = "auto"
    offset: str | None = None
    time: str | None = None
    event: str | None = None
    event_value: tuple[str, ...] = ()
    start: str | None = None
    strata: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        """The columns to predict."""
        return (self.target,) if isinstance(self.target, str) else tuple(self.target)


@dataclass(frozen=True)
class FitSettings:
    """A table and how it is fitted.

    Attributes
    ----------
    table : TableSettings
    selection : str
        A number of folds, ``"holdout"``, ``"ebic"``, ``"bic"``, ``"gcv"``, ``"discrepancy"``, or ``"size:3"`` for three
        groups.
    always : tuple of str
        Groups, terms or columns that are in every model.
    network : mapping, optional
        Settings of the paper's network, to run it instead of the default search.
    seed : int
        For the folds or the rows that are held out.
    options : mapping
        Further parameters of the estimator that differ from its defaults.
    nested : bool
        Whether the whole fit is repeated without each of five parts of the rows, so that every row has a prediction of
        a model that was chosen and fitted without it.
    stability : bool
        Whether to find out which groups are found again in halves of the rows.
    """

    table: TableSettings
    selection: str = "5"
    always: tuple[str, ...] = ()
    network: Mapping[str, Any] | None = None
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    nested: bool = True
    stability: bool = False
