"""``covey fit``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from covey.cli.console import NOT_CONVERGED, check_there, complaints, notice, plain, print_table, progress_bar, say
from covey.cli.options import Json, Overwrite, takes, to
from covey.settings import FitSettings, as_options

if TYPE_CHECKING:
    import pandas as pd

    from covey.evidence.class_scores import ClassScores
    from covey.terms import Encoding
    from covey.workflow.fit import Fit


# The most terms or groups to print; the folder has all of them.
SHOWN = 20

# The most responses for each of which the strength is printed.
MOST_RESPONSES = 4

# The most variables to print, each with what became of it.
MOST_VARIABLES = 40

# What became of a variable, in words.
KINDS = {"curve": "line or curve", "linear": "line"}

# The kinds of terms, in words.
TERMS = {
    "linear": "line", "curve": "curve around it", "detail": "detail of it", "levels": "levels",
    "season": "season", "pair": "pair", "surface": "surface around it",
}  # fmt: skip


@takes(FitSettings)
def fit(
    settings: FitSettings,
    out: Annotated[Path, to("DIR", "The folder to write.")] = Path("covey-fit"),
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Fit a table: which variables predict the target, straight or curved, and how well.

    The table is used as it is. Numbers get a line and perhaps a curve, categories
    one effect per level, dates a trend and seasons; missing values are allowed,
    and identifiers and free text are left out. Prints what it made of each
    column, the terms of the one model that cross-validation chose, and how well
    it predicts. Writes a folder (completely or not at all):

    \b
      report.html       one page that opens offline, with the path and a slider
      model.skops       the model, for `covey predict` and `covey.load`
      terms.csv         every term: selected, kind, parents, strength, folds
      rating.csv        points per value or level of each variable
      path.parquet      coefficients along the path, which ends with the model
      run.json          settings, versions, seed, and the hash of the input

    With --groups, the table is a matrix of numbers whose columns belong together,
    and a group is selected with all its columns or not at all. Instead of
    terms.csv and rating.csv there are:

    \b
      groups.csv        every group: selected, strength, norm, time, folds
      coefficients.csv  every column's coefficient in the table's units, with
                        odds, rate or hazard ratios

    \b
    Examples:
      covey fit patients.csv --target y
      covey fit patients.csv --target y --drop id --linear age --levels site
      covey fit patients.csv --target y --pairs with:treatment --always treatment
      covey fit patients.csv --target diagnosis --always age,sex
      covey fit patients.csv --target y --constraint age=increasing --drop id
      covey fit claims.csv --target n --family poisson --offset log:years
      covey fit claims.csv --target cost --family tweedie
      covey fit rents.csv --target rent --quantile 0.1,0.5,0.9
      covey fit exams.csv --target grade --order poor,fair,good
      covey fit trial.csv --time months --event dead --strata site
      covey fit 'parts/*.parquet' --target y --rule predict --json
      covey fit genes.csv --target TRIM32 --groups _ --selection size:3
    """
    with complaints() as written:
        check_there(*settings.data)
        from covey.files import located
        from covey.persistence import import_skops

        import_skops()  # needed to write the model; importing it first is fastest
        from covey.workflow.fit import fit_table
        from covey.workflow.folder import check_out, describe, write_fit

        out = located(out) if ".." in out.parts else out  # so that the printed path exists
        check_out(out, overwrite)
        with progress_bar(quiet=as_json):
            result = fit_table(settings)
            write_fit(result, out, overwrite=overwrite)
        written.append(out)
        if as_json:
            typer.echo(json.dumps({**describe(result), "out": str(out)}, ensure_ascii=False))
        else:
            print_fit(result, out)
        for message in result.notices if as_json else result.warnings:
            notice(message)
        if not result.converged:
            raise typer.Exit(NOT_CONVERGED)


def print_fit(result: Fit, out: Path) -> None:
    """What became of each column, what was selected, how well it predicts, and where to look."""
    from covey.estimators.group_views import too_good
    from covey.estimators.term_views import as_terms
    from covey.search.chosen import binding, how_chosen, in_words, price_of_sparsity

    model, response, encoding = result.estimator, result.problem.response, result.encoding
    worded = str if encoding is None else as_terms
    if encoding is not None:
        _print_variables(encoding)
    family = f"{response.family}{f' ({plain(response.reason)})' if response.reason else ''}"
    if response.has_classes and not model._outputs():
        what = "coefficients" if encoding is None else "effects"
        family += f"; {what} describe {plain(result.shown._odds_in_words())}"
    _say_all(
        f"{_selection(result)}.",
        f"Family: {family}.",
        f"Model: {worded(in_words(model))}. Chosen by {how_chosen(model)}.",
        worded(as_options(price_of_sparsity(model))),
        plain(as_options(binding(result.shown))),
    )
    every = out / ("groups.csv" if encoding is None else "terms.csv")
    print_table(_selected(result), most=SHOWN, more=f": {every}")
    _print_scores(result)
    _say_all(plain(_split_warning(result)), plain(too_good(model)), f"The report: {out / 'report.html'}")


def _say_all(*lines: str) -> None:
    for line in filter(None, lines):
        say(line)


def _print_variables(encoding: Encoding) -> None:
    """What became of each variable: one line each, or a count of each kind if there are many; then remarks."""
    table = encoding.table()
    used = table[table["kind"] != "left out"].rename(columns={"kind": "used as"})
    # a kind is such as ``curve + [year]``
    parts = [[part.strip("[]") for part in kind.split(" + ")] for kind in used["used as"]]
    used["used as"] = [" + ".join(KINDS.get(part, part) for part in kind) for kind in parts]
    if len(used) > MOST_VARIABLES:
        counts = ", ".join(f"{count} as {kind}" for kind, count in used["used as"].value_counts().items())
        say(f"{len(used)} of {len(table)} variables are used: {counts}.")
    else:
        used["missing"] = [str(count) if count else "" for count in used["missing"]]
        shown = [name for name in ("variable", "used as", "values", "missing") if (used[name] != "").any()]
        print_table(used[shown], most=MOST_VARIABLES)
    _say_all(*(plain(as_options(remark)) for remark in encoding.remarks))


def _selection(result: Fit) -> str:
    """How many terms or groups predict the response, and which variables these are."""
    model, problem, encoding = result.estimator, result.problem, result.encoding
    events = "" if problem.n_events is None else f", {problem.n_events} events"
    title, size = plain(problem.response.title), f"{problem.n_rows} rows{events}"
    if encoding is None:
        n_always = len(model.always_groups_)
        beside = f", plus {n_always} always in" if n_always else ""
        return (
            f"{len(model._found())} of {model.groups_.n_groups - n_always} groups predict {title}{beside} "
            f"({model.n_selected_columns_} of {problem.X.shape[1]} columns, {size})"
        )
    found = model._variables_in_words()
    text = f"{len(model.variables_)} of {len(encoding.variables)} variables predict {title} ({size})"
    return text + (f": {plain(found)}" if found else "")


def _selected(result: Fit) -> pd.DataFrame:
    """The selected terms or groups, as they are printed."""
    table, n_splits = result.groups_table(), result.estimator.n_splits_
    n_outer = 0 if result.nested is None else result.nested.n_folds
    each = [str(name) for name in table if str(name).startswith("strength_")]
    hidden = [
        "selected",
        *(["variables", "parents", "woke_up"] if "term" in table else []),
        *([] if table["always"].any() else ["always"]),
        *(["folds"] if "outer_folds" in table and "folds" in table else []),
        *(each if len(each) > MOST_RESPONSES else []),
    ]
    table = table[table["selected"]].drop(columns=hidden)
    in_words: dict[str, Callable[[Any], str]] = {
        **dict.fromkeys(each, "{:.4g}".format),
        "kind": TERMS.__getitem__,
        "always": lambda is_in: "yes" if is_in else "",
        "folds": lambda count: f"{count} of {n_splits}",
        "outer_folds": lambda count: f"{count} of {n_outer}",
        "half_samples": lambda share: f"{share:.0%}" if share == share else "",
    }
    for name in table.columns.intersection(list(in_words)):
        table[name] = [in_words[name](value) for value in table[name]]
    return table.rename(columns={"size": "columns"}) if "kind" in table else table


def _print_scores(result: Fit) -> None:
    scores, nested = result.scores, result.nested
    name, chosen, trained = scores["measure"].replace("²", "^2"), scores["chosen_r2"], scores["train_r2"]
    if nested is not None:
        say("\n".join(map(plain, as_options(str(nested)).splitlines())))
        if nested.class_scores is not None:
            print_table(_thresholds(nested.class_scores), most=SHOWN)
    text = f"Not held out, so optimistic{'' if nested else ' (--nested gives a held-out score)'}:"
    if chosen is not None:
        text += f" {name} {_three(chosen)} on the rows used to choose the model ({scores['chosen_by']}),"
    say(f"{text} {name} {_three(trained)} on the rows it was fitted to.")
    given = [value for value in (chosen, trained) if value is not None]
    if below := [f"{value:.3f}" for value in given if nested is not None and round(nested.mean - value, 3) > 0]:
        from covey.report.quality import BELOW

        say(BELOW.replace("it is", f"{' and '.join(below)} {'is' if len(below) == 1 else 'are'}"))


def _three(score: float) -> str:
    """A score with three decimals, and no minus before zero."""
    return f"{round(score, 3) + 0.0:.3f}"


def _thresholds(scores: ClassScores) -> pd.DataFrame:
    """The table of thresholds, as it is printed."""
    table, positive = scores.thresholds, plain(scores.positive)
    heads = {
        "threshold": f"{positive} from", "flagged": "rows at or above", "precision": f"of these, {positive}",
        "recall": f"of all {positive}, found", "specificity": "of all others, spared", "lift": "lift",
    }  # fmt: skip
    digits = {"threshold": "{:.3f}", "lift": "{:.1f}"}
    shown = {name: table[name].map(digits.get(name, "{:.1%}").format) for name in heads if name in table}
    return table.assign(**shown).replace({"nan%": "", "nan": ""}).rename(columns=heads)


def _split_warning(result: Fit) -> str:
    """Whether the selection depends on how the rows were split into outer folds or, without those, into folds."""
    from covey.search.agreement import fold_counts, selects_groups, split_warning

    model, nested = result.estimator, result.nested
    if nested is not None and selects_groups(model):
        return split_warning(model._found(), nested.frequencies, nested.n_folds, "repetitions of the choice")
    counts = fold_counts(model)
    return split_warning(model._found(), counts, model.n_splits_) if counts else ""
