"""Translate parameter names in messages to options of the command line."""

from __future__ import annotations

import re

__all__ = ["as_options"]

# Parameters that are options of `covey fit` under the same name.
SHARED = "selection|rule|factors|standardize|group_weights|ties|offset|always"

# Applied in this order: special cases first.
WORDS = (
    (r"\baverage=True\b", "--average"),
    (r"\baverage=False\b", "--no-average"),
    (r"\bstandardize=(?:False|None)", "--standardize none"),
    (r"\bgroup_weights=None\b", "--group-weights none"),
    (r"\bselection=(?:covey\.selection\.)?Size\((\w+)\)", r"--selection size:\1"),
    (r"\b(?:covey\.selection\.)?Size\((\w+)\)", r"size:\1"),
    (r"\bcovey\.stability_selection\b", "covey stability"),
)
_VALUE = re.compile(rf"(?<![-\w])({SHARED})=(?:'([^']*)'|\"([^\"]*)\"|([\w.+-]*\w))?")


def as_options(text: str) -> str:
    """Replace parameters of the estimators in a message by options of ``covey fit``.

    >>> as_options("Use fewer folds, or choose selection='ebic'. rule='1se' selects fewer groups.")
    'Use fewer folds, or choose --selection ebic. --rule 1se selects fewer groups.'
    >>> as_options("For one model fit with average=False.")
    'For one model fit with --no-average.'
    """
    for pattern, words in WORDS:
        text = re.sub(pattern, words, text)
    return _VALUE.sub(_option, text)


def _option(found: re.Match[str]) -> str:
    value = next((part for part in found.groups()[1:] if part is not None), "")
    return f"--{found[1].replace('_', '-')} {value}".rstrip()
