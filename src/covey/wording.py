"""Translate parameter names in messages to options of the command line."""

from __future__ import annotations

import ast
import re
import shlex

from covey.settings import FitSettings, PredictSettings, StabilitySettings

__all__ = ["as_options"]

# The options that set a parameter of the estimators, by its name.
OPTIONS = {
    one.option.parameter: one
    for settings in (StabilitySettings, FitSettings, PredictSettings)
    for one in settings.table().values()
    if one.option.parameter
}


def _drop(found: re.Match[str]) -> str:
    return " ".join(f"--drop {shlex.quote(name)}" for name in ast.literal_eval(found[1]))


def _kind(found: re.Match[str]) -> str:
    return f"--{found[2]} {shlex.quote(ast.literal_eval(found[1]))}"


def _mark(found: re.Match[str]) -> str:
    mark = ast.literal_eval(found[2])
    # easier to read than what shlex makes of it
    return f"--{found[1]} " + ('"\'"' if mark == "'" else shlex.quote(mark))


def _missing(found: re.Match[str]) -> str:
    return " ".join(f"--missing {shlex.quote(text)}" for text in ast.literal_eval(found[1]))


# Names that are no parameters, or values that are objects.
WORDS = (
    (r"\bX\.drop\(columns=(\[(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|, )*\])\)", _drop),
    (r"\bX\.drop\(columns=\.\.\.\)", "--drop"),
    (r"\b(sep|decimal|thousands)=('[^']*'|\"'\")", _mark),
    (r"\b(sep|decimal|thousands)=(?= )", r"--\1"),
    (r"\bna_values=(\[(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|, )*\])", _missing),
    (r"\bgive terms='auto' instead of groups=", "leave out --groups"),
    (r"\bwith (?:X\.dropna\(\)|X\[.*?\]), fill them in with an imputer,", "with --drop-missing,"),
    (r"\balways=\[('(?:[^'\\]|\\.)*')\]", lambda found: f"--always {shlex.quote(ast.literal_eval(found[1]))}"),
    (r" \(constraints_\)", ""),
    (r"\bselection=(?:covey\.selection\.)?Size\((\w+)\)", r"--selection size:\1"),
    (r"\b(?:covey\.selection\.)?Size\((\w+)\)", r"size:\1"),
    (r"\bcovey\.stability_selection\b", "covey stability"),
    (r"\b(larger|raise) max_false\b", r"\1 --max-false"),
    (r"Give the sizes one by one with Groups\.from_sizes", "Give a file with two columns: column, group"),
    (r"\bterms=\{(['\"])(.*?)\1: 'linear'\} or 'levels'", r"--linear \2 or --levels \2"),
    (r"\bterms=\{('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"): '(linear|curve|levels)'\}", _kind),
    (r"\bpairs=\[\('([^']*)', '([^']*)'\)\]", r"--pairs \1:\2"),
    (r"\bpairs=\{'with': '([^']*)'\}", r"--pairs with:\1"),
    (r"\bpairs=None", "--pairs none"),
    (r"\bpairs: \('([^']*)', '([^']*)'\)", r"--pairs \1:\2"),
    (r"\bpairs: \{'with': '([^']*)'\}", r"--pairs with:\1"),
    (r"\bconstraints: ('(?:[^'\\]|\\.)*')", lambda found: f"--constraint {shlex.quote(ast.literal_eval(found[1]))}"),
    (r"\bconstraints: ", "--constraint: "),
    (r"\b(with|use) (Levels|Curve|Linear)\(\)", lambda found: f"{found[1]} --{found[2].lower()}"),
)
_VALUE = re.compile(rf"(?<![-\w])({'|'.join(OPTIONS)})=(?:'([^']*)'|\"([^\"]*)\"|([\w.+-]*\w))?")


def as_options(text: str) -> str:
    """Replace parameters of the estimators in a message by options of the commands.

    >>> as_options("Use fewer folds, or choose selection='ebic'. rule='predict' predicts better.")
    'Use fewer folds, or choose --selection ebic. --rule predict predicts better.'
    >>> as_options("For one model fit with standardize=False.")
    'For one model fit with --standardize none.'
    >>> as_options("pairs: ('age', 'b') has no rows in common. Say terms={'age': 'levels'}.")
    '--pairs age:b has no rows in common. Say --levels age.'
    """
    for pattern, words in WORDS:
        text = re.sub(pattern, words, text)
    return _VALUE.sub(_option, text)


def _option(found: re.Match[str]) -> str:
    option = OPTIONS[found[1]]
    value = next((part for part in found.groups()[1:] if part is not None), "")
    if option.negative:
        return option.negative if value == "False" else option.flag
    return f"{option.flag} {'none' if value in ('None', 'False') else value}".rstrip()
