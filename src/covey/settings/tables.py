"""The options of each command."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from covey.settings.option import REQUIRED, Settings, option

TABLE, VARIABLES, SURVIVAL, MODEL = "The table", "The variables", "Survival times", "The model"
HALVES, KNOCKOFFS = "Half-samples", "Knockoffs"

# Options by the heading under which a help page lists them.
in_table, in_variables, in_survival, in_model = (
    partial(option, panel=panel) for panel in (TABLE, VARIABLES, SURVIVAL, MODEL)
)
in_halves, in_knockoffs = (partial(option, panel=panel) for panel in (HALVES, KNOCKOFFS))

# Descriptions of options that several commands have.
DATA = (
    "A table: .csv, .tsv (gzipped or not), .xlsx, .parquet or .feather; several files with the same columns, a pattern "
    "such as 'parts/*.parquet', a folder of Parquet files, or - for standard input."
)
SEP = (
    "The separator of a text file: a character, tab or space. By default it is guessed from the file's name and header."
)
DECIMAL = "The decimal mark of numbers in text. Of the comma and the point, the other one then separates thousands."
MARK = "The mark between thousands of numbers in text: , if 2,596 is two thousand and more."
MISSING = "What stands for a missing value, such as . or -999, besides an empty cell, NA and the like. Repeatable."
ALWAYS = "A variable, term or group that is in every model, such as age and sex. Repeat it, or give a list: age,sex."


@dataclass(frozen=True)
class TableSettings(Settings):
    """A table and how its columns are used."""

    data: tuple[str, ...] = option(REQUIRED, DATA, "DATA", positional=True)
    target: tuple[str, ...] = option(
        (),
        "The column to predict. Repeat it, or give a list, for several responses, which `covey fit` takes. Survival "
        "times have --time and --event instead.",
        "COL",
        short="-t",
    )
    groups: tuple[str, ...] = in_table(
        (),
        "For a matrix of numbers instead of a table of variables, which columns belong together: a file with two "
        "columns (column, group); a size (1: each column on its own); a separator such as _ that ends the group's "
        "part of a column name; regex:PATTERN, whose first parentheses capture the group; or name patterns, one per "
        "group, such as 'gene01_*' or 'size=h_*' (repeat the option). Columns are then used as they are.",
        "GROUPS",
        short="-g",
    )
    linear: tuple[str, ...] = in_variables(
        (), "A number with a straight line and no curve. Repeat it, or give a list or a pattern.", "COL"
    )
    curve: tuple[str, ...] = in_variables(
        (),
        "A number that may have a curve, with this many knots if a number is given. Repeat it, or give a list "
        "(age:8,bmi) or a pattern ('lab_*').",
        "COL[:8]",
    )
    levels: tuple[str, ...] = in_variables(
        (), "A category with one effect per level, such as a code. Repeat it, or give a list or a pattern.", "COL"
    )
    drop: tuple[str, ...] = in_table(
        (), "Leave out a column, such as an identifier. Repeat it, or give a list or a pattern.", "COL"
    )
    drop_missing: bool = in_table(
        False,
        "Leave out rows without a target, weight or offset; with --groups, all rows with a missing value.",
    )
    sep: str | None = in_table(None, SEP, "CHAR")
    decimal: Literal[".", ","] | None = in_table(None, DECIMAL, shown="a point")
    thousands: Literal[",", ".", "space", "'"] | None = in_table(None, MARK)
    missing: tuple[str, ...] = in_table((), MISSING, "TEXT")
    weights: str | None = in_table(None, "The column with row weights; a weight of two counts the row twice.", "COL")
    family: Literal[
        "auto", "gaussian", "huber", "quantile", "poisson", "negative-binomial", "gamma", "tweedie", "binomial",
        "multinomial", "ordinal", "cox",
    ] = in_table(
        "auto",
        "The kind of target: numbers (gaussian; huber if there are outliers; quantile for the median or others), "
        "counts (poisson; negative-binomial if they vary more), positive numbers (gamma; tweedie if some are zero), "
        "two classes (binomial) or more (multinomial; ordinal if they have an order). auto treats text and two "
        "values as classes and all other numbers as gaussian, and prints its choice; --time and --event imply cox.",
    )  # fmt: skip
    quantile: tuple[str, ...] = in_table(
        (),
        "Which quantiles to predict, such as 0.9. Repeat it, or give a list (0.1,0.5,0.9), for several; implies family "
        "quantile.",
        "LEVEL",
        shown="0.5 with family quantile",
    )
    power: float | None = in_table(
        None,
        "The power of the mean that the variance of family tweedie is proportional to, between 1 and 2.",
        shown="estimated",
    )
    order: tuple[str, ...] = in_table(
        (),
        "The classes from the lowest to the highest, such as poor,fair,good; implies family ordinal. Numbers have "
        "their order.",
        "CLASSES",
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

    pairs: tuple[str, ...] = in_variables(
        (),
        "Pairs of variables that may be selected besides: auto (all that have enough rows), none, a list such as "
        "age:sex,age:bmi, or with:treatment for all pairs with one variable.",
        "PAIRS",
        shown="auto",
    )
    selection: str = in_model(
        "5",
        "How to choose the model: a number of folds, holdout (one fifth of the rows), ebic, bic, gcv, discrepancy, "
        "or size:K for K terms or groups.",
        parameter="selection",
    )
    rule: Literal["select", "predict"] | None = in_model(
        None,
        "select: the few terms or groups that matter, the simplest model that the held-out rows cannot tell from the "
        "best. predict: the best prediction, a weighted mean of all candidates, usually with all of them.",
        parameter="rule",
        shown="select",
    )
    always: tuple[str, ...] = in_model((), ALWAYS, "NAME", parameter="always")
    constraint: tuple[str, ...] = in_model(
        (),
        "What is known of a variable, group or column, by its name or a pattern: 'price<=0', 'media*>=0', dose=0:2 "
        "(bounds of the slope or coefficient), age=increasing, decreasing, convex or concave, or a list: "
        "dose=increasing,concave. Repeat it for others.",
        "NAME=WHAT",
        parameter="constraints",
    )
    class_weight: tuple[str, ...] = in_model(
        (),
        "Weights of the classes: balanced gives every class the same total, and default=10,ok=1 weights each. "
        "Probabilities are then no longer those of the classes as they are.",
        "WEIGHTS",
        parameter="class_weight",
    )
    positive: str | None = in_model(
        None,
        "The class that scores and thresholds are about and, if there are two, whose odds the effects and constraints "
        "describe.",
        "CLASS",
        parameter="positive",
        shown="of two, yes, ja, true and the like, or else the second",
    )
    factors: str | None = in_model(
        None,
        "With --groups: how many common factors of the columns to account for while the groups are ordered.",
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
        shown="the least that --max-false allows",
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
    interval: float | None = option(
        None,
        "Also an interval that contains the response of this share of new rows, such as 0.9: columns lower and upper, "
        "for classes the column set, and for survival times lower alone.",
        "SHARE",
        parameter="interval",
    )
    drop_missing: bool = option(
        False, "Leave out rows that lack a value the model needs: an offset, a stratum, or a column of a matrix."
    )
    sep: str | None = in_table(None, SEP, "CHAR")
    decimal: Literal[".", ","] | None = in_table(None, DECIMAL, shown="a point")
    thousands: Literal[",", ".", "space", "'"] | None = in_table(None, MARK)
    missing: tuple[str, ...] = in_table((), MISSING, "TEXT")
