"""Options that several commands share: a table and how its columns are used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from covey.workflow import TableSettings

__all__ = [
    "MODEL",
    "RESPONSE_OPTIONS",
    "TABLE",
    "TABLE_OPTIONS",
    "Always",
    "Data",
    "Date",
    "Decimal",
    "Drop",
    "DropMissing",
    "Event",
    "EventValue",
    "Family",
    "GroupsOption",
    "HandleUnknown",
    "Impute",
    "Json",
    "Offset",
    "OneHot",
    "Sep",
    "Spline",
    "Start",
    "Strata",
    "Target",
    "Targets",
    "Ties",
    "Time",
    "Weights",
    "asked",
    "table_settings",
]

TABLE, SURVIVAL, MODEL = "The table", "Survival times", "The model"

Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help="A table: .csv, .tsv (gzipped or not), .parquet or .feather; several files with the same columns, a "
        "pattern such as 'parts/*.parquet', or a folder of Parquet files.",
        show_default=False,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target", "-t", metavar="COL",
        help="The column to predict. For survival times, give --time and --event instead.", show_default=False,
    ),
]  # fmt: skip
Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--target", "-t", metavar="COL",
        help="The column to predict. Repeat it, or give a list, for several responses. Survival times have --time and "
        "--event instead.",
        show_default=False,
    ),
]  # fmt: skip
GroupsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--groups",
        "-g",
        metavar="GROUPS",
        help="Which columns belong together: a file with two columns (column, group); a size; a separator such as _ "
        "that ends the group's part of a column name; regex:PATTERN, whose first parentheses capture the group; or "
        "name patterns, one per group, such as 'gene01_*' or 'size=h_*' (repeat the option). Without this option, or "
        "if no pattern matches, each column is its own group.",
        rich_help_panel=TABLE,
        show_default=False,
    ),
]
Spline = Annotated[
    list[str] | None,
    typer.Option(
        "--spline",
        metavar="COL:5",
        help="Expand a column into a cubic spline with this many columns (5 if no number is given), which form one "
        "group. Repeat it, or give a list (age:5,bmi) or a pattern ('*:5').",
        rich_help_panel=TABLE,
        show_default=False,
    ),
]
OneHot = Annotated[
    list[str] | None,
    typer.Option(
        "--onehot",
        metavar="COL",
        help="Expand a column of categories into one column per category, which form one group. Repeat it, or give a "
        "list or a pattern.",
        rich_help_panel=TABLE,
        show_default=False,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        metavar="COL",
        help="Leave out a column, such as an identifier. Repeat it, or give a list or a pattern.",
        rich_help_panel=TABLE,
        show_default=False,
    ),
]
Impute = Annotated[
    Literal["median", "mean"] | None,
    typer.Option(
        "--impute",
        help="Fill missing numbers with the column's median or mean; a missing category becomes a category of its own. "
        "Without this option missing values are an error.",
        rich_help_panel=TABLE,
        show_default=False,
    ),
]
Date = Annotated[
    list[str] | None,
    typer.Option(
        "--date",
        metavar="COL",
        help="A column of dates such as 2020-12-31, which are converted to days since the earliest. Repeat it, or give "
        "a list or a pattern.",
        rich_help_panel=TABLE,
        show_default=False,
    ),
]
DropMissing = Annotated[
    bool,
    typer.Option(
        "--drop-missing",
        help="Leave out rows with missing values. With --impute, only those that lack what cannot be filled, such as "
        "the target.",
        rich_help_panel=TABLE,
    ),
]
HandleUnknown = Annotated[
    Literal["error", "ignore"],
    typer.Option(
        "--handle-unknown",
        help="How `covey predict` treats a category that was not in the fit: refuse it, or treat it as none of the "
        "known ones.",
        rich_help_panel=TABLE,
    ),
]
Sep = Annotated[
    str | None,
    typer.Option(
        "--sep",
        metavar="CHAR",
        help="The separator of a text file: a character, tab or space. By default it is guessed from the file's name "
        "and header.",
        rich_help_panel=TABLE,
        show_default=False,
    ),
]
Decimal = Annotated[
    Literal[".", ","],
    typer.Option("--decimal", help="The decimal mark of a text file.", rich_help_panel=TABLE),
]
Weights = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="COL",
        help="The column with row weights; a weight of two counts the row twice.",
        rich_help_panel=TABLE,
        show_default=False,
    ),
]
Family = Annotated[
    Literal["auto", "gaussian", "huber", "poisson", "gamma", "binomial", "multinomial", "cox"],
    typer.Option(
        help="The kind of target: numbers (gaussian; huber if there are outliers), counts (poisson), positive "
        "numbers (gamma), two classes (binomial) or more (multinomial). auto treats text and two values as classes "
        "and all other numbers as gaussian, and prints its choice; --time and --event imply cox.",
        rich_help_panel=TABLE,
    ),
]
Offset = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="A column to add to the linear predictor with a coefficient of one; log:COL adds its "
        "logarithm, for the exposure of counts.",
        rich_help_panel=TABLE,
        show_default=False,
    ),
]
Always = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A group, term or column that is in every model, such as age and sex. Repeat it, or give a list: age,sex.",
        rich_help_panel=MODEL,
        show_default=False,
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="COL",
        help="Survival times: the column with the time of the event, or of censoring (family cox).",
        rich_help_panel=SURVIVAL,
        show_default=False,
    ),
]
Event = Annotated[
    str | None,
    typer.Option(
        "--event",
        metavar="COL",
        help="The column that is 1 or true if the event happened, and 0 or false if the row is censored.",
        rich_help_panel=SURVIVAL,
        show_default=False,
    ),
]
EventValue = Annotated[
    list[str] | None,
    typer.Option(
        "--event-value",
        metavar="VALUE",
        help="The value of --event that means an event, if it is not 1 or true, such as 2 or dead. Repeatable.",
        rich_help_panel=SURVIVAL,
        show_default=False,
    ),
]
Start = Annotated[
    str | None,
    typer.Option(
        "--start",
        metavar="COL",
        help="The column with the time of entry; a row is at risk only after it.",
        rich_help_panel=SURVIVAL,
        show_default=False,
    ),
]
Strata = Annotated[
    list[str] | None,
    typer.Option(
        "--strata",
        metavar="COL",
        help="A column of strata, each with its own baseline hazard. Repeat it, or give a list, to combine several "
        "columns.",
        rich_help_panel=SURVIVAL,
        show_default=False,
    ),
]
Ties = Annotated[
    Literal["efron", "breslow"] | None,
    typer.Option(
        "--ties",
        help="How tied events are handled.",
        rich_help_panel=SURVIVAL,
        show_default="efron",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object, and nothing else.")]

# How the estimators spell "none" on the command line.
NONE: dict[str, Any] = {"group_weights": None, "standardize": False}


TABLE_OPTIONS = (
    "data", "target", "groups", "spline", "onehot", "drop", "date", "impute", "drop_missing", "handle_unknown", "sep",
    "decimal", "weights",
)  # fmt: skip
SURVIVAL_OPTIONS = ("time", "event", "event_value", "start", "strata")
RESPONSE_OPTIONS = ("family", "offset", *SURVIVAL_OPTIONS)


def table_settings(context: typer.Context) -> TableSettings:
    """The table and how its columns are used, from the options of a command that has all of them."""
    from covey.workflow import TableSettings

    several = ("data", "groups", "spline", "onehot", "drop", "date", "event_value", "strata")
    given = {name: context.params[name] for name in (*TABLE_OPTIONS, *RESPONSE_OPTIONS) if name in context.params}
    values: dict[str, Any] = {name: tuple(v or ()) if name in several else v for name, v in given.items()}
    target: Any = values["target"] or ()
    if not isinstance(target, str):
        values["target"] = target[0] if len(target) == 1 else tuple(target)
    return TableSettings(**values)


def asked(context: typer.Context, *others: str) -> dict[str, Any]:
    """The options that were given explicitly and are parameters of the estimator, not of the command."""
    given = {name: value for name, value in context.params.items() if value is not None and name not in others}
    found = {name: NONE[name] if value == "none" and name in NONE else value for name, value in given.items()}
    if str(found.get("factors")).isdigit():
        found["factors"] = int(found["factors"])
    return found
