"""The options of each command."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from covey.settings.option import REQUIRED, Settings, option

TABLE, SURVIVAL, MODEL = "The table", "Survival times", "The model"
HALVES, KNOCKOFFS = "Half-samples", "Knockoffs"

# Options by the heading under which a help page lists them.
in_table, in_survival, in_model = (partial(option, panel=panel) for panel in (TABLE, SURVIVAL, MODEL))
in_halves, in_knockoffs = (partial(option, panel=panel) for panel in (HALVES, KNOCKOFFS))

# Descriptions of options that several commands have.
DATA = (
    "A table: .csv, .tsv (gzipped or not), .parquet or .feather; several files with the same columns, a pattern such "
    "as 'parts/*.parquet', or a folder of Parquet files."
)
SEP = (
    "The separator of a text file: a character, tab or space. By default it is guessed from the file's name and header."
)
ALWAYS = "A group, term or column that is in every model, such as age and sex. Repeat it, or give a list: age,sex."


@dataclass(frozen=True)
class TableSettings(Settings):
    """A table and how its columns are used."""

    data: tuple[str, ...] = option(REQUIRED, DATA, "DATA", positional=True)
    target: tuple[str, ...] = option(
        (),
        "The column to predict. Repeat it, or give a list, for several responses. Survival times have --time and "
        "--event instead.",
        "COL",
        short="-t",
    )
    groups: tuple[str, ...] = in_table(
        (),
        "Which columns belong together: a file with two columns (column, group); a size; a separator such as _ that "
        "ends the group's part of a column name; regex:PATTERN, whose first parentheses capture the group; or name "
        "patterns, one per group, such as 'gene01_*' or 'size=h_*' (repeat the option). Without this option, or if "
        "no pattern matches, each column is its own group.",
        "GROUPS",
        short="-g",
    )
    spline: tuple[str, ...] = in_table(
        (),
        "Expand a column into a cubic spline with this many columns (5 if no number is given), which form one group. "
        "Repeat it, or give a list (age:5,bmi) or a pattern ('*:5').",
        "COL:5",
    )
    onehot: tuple[str, ...] = in_table(
        (),
        "Expand a column of categories into one column per category, which form one group. Repeat it, or give a list "
        "or a pattern.",
        "COL",
    )
    drop: tuple[str, ...] = in_table(
        (), "Leave out a column, such as an identifier. Repeat it, or give a list or a pattern.", "COL"
    )
    date: tuple[str, ...] = in_table(
        (),
        "A column of dates such as 2020-12-31, which are converted to days since the earliest. Repeat it, or give a "
        "list or a pattern.",
        "COL",
    )
    impute: Literal["median", "mean"] | None = in_table(
        None,
        "Fill missing numbers with the column's median or mean; a missing category becomes a category of its own. "
        "Without this option missing values are an error.",
    )
    drop_missing: bool = in_table(
        False,
        "Leave out rows with missing values. With --impute, only those that lack what cannot be filled, such as the "
        "target.",
    )
    handle_unknown: Literal["error", "ignore"] = in_table(
        "error",
        "How `covey predict` treats a category that was not in the fit: refuse it, or treat it as none of the known "
        "ones.",
    )
    sep: str | None = in_table(None, SEP, "CHAR")
    decimal: Literal[".", ","] = in_table(".", "The decimal mark of a text file.")
    weights: str | None = in_table(None, "The column with row weights; a weight of two counts the row twice.", "COL")
    family: Literal["auto", "gaussian", "huber", "poisson", "gamma", "binomial", "multinomial", "cox"] = in_table(
        "auto",
        "The kind of target: numbers (gaussian; huber if there are outliers), counts (poisson), positive numbers "
        "(gamma), two classes (binomial) or more (multinomial). auto treats text and two values as classes and all "
        "other numbers as gaussian, and prints its choice; --time and --event imply cox.",
    )
    offset: str | None = in_table(
        None,
        "A column to add to the linear predictor with a coefficient of one; log:COL adds its logarithm, for the "
        "exposure of counts.",
        "COL",
        parameter="offset",
    )
    time: str | None = in_survival(
        None, "Survival times: the column with the time of the event, or of censoring (family cox).", "COL"
    )
    event: str | None = in_survival(
        None, "The column that is 1 or true if the event happened, and 0 or false if the row is censored.", "COL"
    )
    event_value: tuple[str, ...] = in_survival(
        (), "The value of --event that means an event, if it is not 1 or true, such as 2 or dead. Repeatable.", "VALUE"
    )
    start: str | None = in_survival(None, "The column with the time of entry; a row is at risk only after it.", "COL")
    strata: tuple[str, ...] = in_survival(
        (),
        "A column of strata, each with its own baseline hazard. Repeat it, or give a list, to combine several columns.",
        "COL",
    )
    ties: Literal["efron", "breslow"] | None = in_survival(
        None, "How tied events are handled.", parameter="ties", shown="efron"
    )


@dataclass(frozen=True)
class FitSettings(TableSettings):
    """A table and how it is fitted."""

    selection: str = in_model(
        "5",
        "How to choose the model: a number of folds, holdout (one fifth of the rows), ebic, bic, gcv, discrepancy, "
        "or size:K for K groups.",
        parameter="selection",
    )
    rule: Literal["select", "predict"] | None = in_model(
        None,
        "select: the few groups that matter, the simplest model that the held-out rows cannot tell from the best. "
        "predict: the best prediction, a weighted mean of all candidates, usually with all groups.",
        parameter="rule",
        shown="select",
    )
    always: tuple[str, ...] = in_model((), ALWAYS, "NAME", parameter="always")
    factors: str | None = in_model(
        None,
        "How many common factors of the columns to account for while the groups are ordered.",
        "N",
        parameter="factors",
        shown="auto",
    )
    standardize: Literal["group", "column", "block", "none"] | None = in_model(
        None,
        "Orthonormalise the columns of each group, scale each column, scale each group as a block, or do nothing.",
        parameter="standardize",
        none=False,
        shown="group",
    )
    group_weights: Literal["noise", "sqrt", "none"] | None = in_model(
        None,
        "Weight groups by the score that pure noise would reach in them, by the square root of their size, or not at "
        "all.",
        parameter="group_weights",
        shown="noise",
    )
    seed: int = in_model(0, "Seed for folds or held-out rows.", parameter="random_state", least=0)
    nested: bool = in_model(
        True,
        "Repeat the whole fit in five outer folds, for a score on rows that played no part in choosing the model, "
        "next to a lasso and a ridge. Takes several times as long as the fit itself.",
    )
    stability: bool = in_model(
        False,
        "Also repeat the selection on random halves of the rows, and show in the table and the report how often each "
        "group is found.",
    )


@dataclass(frozen=True)
class StabilitySettings(TableSettings):
    """A table, and the method that selects its groups. The options of each method are under its heading."""

    always: tuple[str, ...] = in_model((), ALWAYS, "NAME", parameter="always")
    method: Literal["half-samples", "knockoffs"] = option(
        "half-samples",
        "half-samples: groups that are found in most random halves of the rows; bounds the expected number of "
        "mistakes. knockoffs: groups that matter given all others; bounds the expected share of mistakes.",
    )
    seed: int = option(0, "Seed for the half-samples or the knockoffs.", parameter="random_state", least=0)
    jobs: int | None = option(None, "How many jobs to run at a time; -1 for one per core.", parameter="n_jobs")
    max_false: float | None = in_halves(
        None, "The expected number of mistakes to accept.", parameter="max_false", shown="1"
    )
    threshold: float | None = in_halves(
        None,
        "The share of half-samples in which a group must be found to be selected.",
        parameter="threshold",
        shown="the least that max_false allows",
    )
    pairs: int | None = in_halves(
        None, "How often to split the rows into two halves.", parameter="n_pairs", shown="50", least=1
    )
    fdr: float | None = in_knockoffs(
        None, "The expected share of mistakes among the selected groups to accept.", parameter="fdr", shown="0.1"
    )
    kind: Literal["auto", "gaussian", "fixed"] | None = in_knockoffs(
        None,
        "gaussian assumes that the rows are normally distributed; fixed takes the columns as they are, but needs "
        "twice as many rows as columns and normal noise.",
        parameter="kind",
        shown="auto",
    )
    draws: int | None = in_knockoffs(
        None,
        "How many sets of knockoffs to draw; with several, the result depends less on the seed but fewer groups are "
        "found.",
        parameter="n_draws",
        shown="1",
        least=1,
    )


@dataclass(frozen=True)
class PredictSettings(Settings):
    """A model and a table to predict."""

    model: Path = option(  # noqa: RUF009  (it makes a field)
        REQUIRED, "A folder written by `covey fit`, or a .skops file.", "MODEL", positional=True
    )
    data: tuple[str, ...] = option(REQUIRED, DATA, "DATA", positional=True)
    keep: tuple[str, ...] = option(
        (), "Copy a column next to the predictions, such as an identifier. Repeat it, or give a list.", "COL"
    )
    target: tuple[str, ...] = option(
        (),
        "The column with the true values, to score the predictions. Repeat it for several responses; for survival "
        "times give the time and then the event.",
        "COL",
        short="-t",
    )
    at: tuple[str, ...] = option(
        (),
        "Times at which to predict survival, such as 1,2,5; by default the quartiles of the times in the fit.",
        "TIMES",
    )
    drop_missing: bool = option(False, "Leave out rows that lack a value the model needs.")
    handle_unknown: Literal["error", "ignore"] | None = option(
        None,
        "How to treat a category that was not in the fit: refuse it, or treat it as none of the known ones. By "
        "default as set at the fit.",
    )
    sep: str | None = in_table(None, SEP, "CHAR")
    decimal: Literal[".", ","] = in_table(".", "The decimal mark of a text file.")
