"""Translate parameter names in messages to options of the command line."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable

from covey.settings.tables import FitSettings, PredictSettings, StabilitySettings

# The options that set a parameter of the estimators, by its name.
OPTIONS = {
    one.parameter: one
    for settings in (StabilitySettings, FitSettings, PredictSettings)
    for one in settings.table().values()
    if one.parameter
}

TEXT = r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"  # as Python writes it
LIST = rf"\[(?:{TEXT}|, )*\]"


def quoted(text: str) -> str:
    """Text as a word of a command, in quotes if it is a mark that could be taken for one of the sentence.

    >>> quoted("age"), quoted("a b"), quoted(",")
    ('age', "'a b'", "','")
    """
    return shlex.quote(text) if text.strip(".,:;-") else f"'{text}'"


def given(option: str) -> Callable[[re.Match[str]], str]:
    """The option with the text, or repeated with each text of the list, that is the first group of a match."""

    def replacement(found: re.Match[str]) -> str:
        values = ast.literal_eval(found[1])
        return " ".join(f"{option} {quoted(one)}" for one in ([values] if isinstance(values, str) else values))

    return replacement


# Names that are no parameters, or values that are objects.
WORDS = (
    (rf"\bX\.drop\(columns=({LIST})\)", given("--drop")),
    (r"\bX\.drop\(columns=\.\.\.\)", "--drop"),
    (r"\b(sep|decimal|thousands)=('[^']*'|\"'\")", r"--\1 \2"),
    (r"\b(sep|decimal|thousands)=(?= )", r"--\1"),
    (rf"\bna_values=({LIST})", given("--missing")),
    (r"\bgive terms='auto' instead of groups=", "leave out --groups"),
    (r"\bwith (?:X\.dropna\(\)|X\[.*?\]), fill them in with an imputer,", "with --drop-missing,"),
    (rf"\balways=\[({TEXT})\]", given("--always")),
    (r" \(constraints_\)", ""),
    (r"\bselection=(?:covey\.selection\.)?Size\((\w+)\)", r"--selection size:\1"),
    (r"\b(?:covey\.selection\.)?Size\((\w+)\)", r"size:\1"),
    (r"\bcovey\.stability_selection\b", "covey stability"),
    (r"\b(larger|raise) max_false\b", r"\1 --max-false"),
    (r"\blarger fdr\b", "larger --fdr"),
    (r" of y (?=has no event|are at time)", " "),
    (r"^y has no event\b", "There is no event"),
    (r"\bUse covey\.GroupSparseClassifier for that", "Predict the event with --target, and --drop the times"),
    (r"^(interval is the share|always names)\b", r"--\1"),
    (rf"^({'|'.join(OPTIONS)})(?= must\b)", lambda found: OPTIONS[found[1]].flag),
    (r"Give the sizes one by one with Groups\.from_sizes", "Give a file with two columns: column, group"),
    (r"\bterms=\{(['\"])(.*?)\1: 'linear'\} or 'levels'", r"--linear \2 or --levels \2"),
    (rf"\bterms=\{{({TEXT}): '(linear|curve|levels)'\}}", lambda found: given(f"--{found[2]}")(found)),
    (r"\bpairs=\[\('([^']*)', '([^']*)'\)\]", r"--pairs \1:\2"),
    (r"\bpairs(?:=|: )\{'with': '([^']*)'\}", r"--pairs with:\1"),
    (r"\bpairs=None", "--pairs none"),
    (r"\bfit loss='squared', 'huber' or 'quantile'", "fit --family gaussian, huber or quantile"),
    (r"\bpairs: \('([^']*)', '([^']*)'\)", r"--pairs \1:\2"),
    (r", or pd\.Categorical\(.*?, ordered=True\)", ""),
    (r"\bare reversed: give \((\S+), (\S+)\)", r"are reversed: give \1:\2"),
    (rf"\bconstraints: ({TEXT})", given("--constraint")),
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
