"""Settings of a run: plain values, kept as the user gave them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["FitSettings", "TableSettings", "Told", "silent"]

# Called with the name of the current stage, for a progress bar.
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
        As for `covey.tables.read_groups`; by default each column is its own group.
    spline : tuple of str
        ``COLUMN:5`` expands a column into a cubic spline with five columns; the name may be a pattern.
    onehot : tuple of str
        Columns of categories to expand into one column per category.
    drop : tuple of str
        Columns to leave out.
    date : tuple of str
        Columns of dates, converted to days since the earliest.
    impute : {"median", "mean"}, optional
        How to fill missing numbers.
    drop_missing : bool
        Whether to leave out rows with missing values; with `impute`, only those that cannot be filled.
    handle_unknown : {"error", "ignore"}
        How `covey predict` treats a category that was not in the fit: refuse it, or treat it as none of the known ones.
    sep : str, optional
        The separator of a text file; guessed from its header by default.
    decimal : str
        The decimal mark of a text file.
    weights : str, optional
        The column with row weights.
    family : str
        The kind of response, one of `covey.workflow.response.FAMILIES`; "auto" is decided from its values.
    offset : str, optional
        A column to add to the linear predictor; ``"log:COLUMN"`` adds its logarithm.
    time, event : str, optional
        The columns with the survival times and the event indicators.
    event_value : tuple of str
        The values of `event` that mean an event, if it does not hold 0 and 1 or booleans.
    start : str, optional
        The column with the time of entry.
    strata : tuple of str
        The columns of the strata, each with its own baseline hazard.
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
    seed : int
        Seed for the folds or held-out rows.
    options : mapping
        Further parameters of the estimator that differ from its defaults.
    nested : bool
        Whether to repeat the whole fit in five outer folds, so that each row is predicted by a model that was chosen
        and fitted without it.
    stability : bool
        Whether to repeat the selection on random halves of the rows.
    """

    table: TableSettings
    selection: str = "5"
    always: tuple[str, ...] = ()
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    nested: bool = True
    stability: bool = False
