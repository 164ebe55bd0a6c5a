"""Translate parameter names in messages to options of the command line."""

from __future__ import annotations

import re

from covey.settings import FitSettings

__all__ = ["as_options"]

# The options of `covey fit` that set a parameter, by its name.
OPTIONS = {one.option.parameter: one for one in FitSettings.table().values() if one.option.parameter}

# Names that are no parameters, or values that are objects.
WORDS = (
    (r"\bselection=(?:covey\.selection\.)?Size\((\w+)\)", r"--selection size:\1"),
    (r"\b(?:covey\.selection\.)?Size\((\w+)\)", r"size:\1"),
    (r"\bcovey\.stability_selection\b", "covey stability"),
)
_VALUE = re.compile(rf"(?<![-\w])({'|'.join(OPTIONS)})=(?:'([^']*)'|\"([^\"]*)\"|([\w.+-]*\w))?")


def as_options(text: str) -> str:
    """Replace parameters of the estimators in a message by options of ``covey fit``.

    >>> as_options("Use fewer folds, or choose selection='ebic'. rule='predict' predicts better.")
    'Use fewer folds, or choose --selection ebic. --rule predict predicts better.'
    >>> as_options("For one model fit with standardize=False.")
    'For one model fit with --standardize none.'
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
