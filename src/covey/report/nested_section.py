"""The score on rows that played no part in choosing the model, next to methods without groups."""

from __future__ import annotations

import numpy as np

from covey.evidence import MethodScore, NestedScore
from covey.report.group_table import short_name
from covey.report.page import escape

__all__ = ["nested_section"]

# The most groups to list with how often they were selected.
MOST_NAMED = 12

HEADS = {"null": "null model"}


def nested_section(nested: NestedScore) -> str:
    """The section, without its heading."""
    name = nested.measure.replace("^2", "²")
    told = (
        f"The whole fit, including the choice of the model, was repeated in {nested.n_folds} outer folds; the rows of "
        f"each fold were left out and then predicted. {_what(name)} Nine times in ten, the score on new rows should be "
        "within ±."
    )
    rows = _row("this model", nested, "", nested.digits)
    rows += "".join(_row(HEADS.get(key, key), one, one.what, nested.digits) for key, one in nested.references.items())
    notes = "".join(f'<p class="note">{escape(note[:1].upper() + note[1:])}.</p>' for note in nested.notes)
    return (
        f"<p>{told}</p><p><b>{escape(nested.verdict)}</b></p>"
        '<div class="scroll"><table class="nested" id="nested-table"><thead><tr><th scope="col">method</th>'
        f'<th scope="col">{escape(name)}</th><th scope="col">±</th><th scope="col">folds</th>'
        f'<th scope="col">what it is</th></tr></thead><tbody>{rows}</tbody></table></div>{notes}{_selected(nested)}'
    )


def _what(name: str) -> str:
    """What the scores mean, and what they are compared with."""
    if name == "concordance":
        return (
            "Concordance is the share of comparable pairs of rows in which the row with the higher predicted risk has "
            "its event first; 0.5 is chance."
        )
    return (
        f"{name} is the share of the null model's {'squared error' if name == 'R²' else 'deviance'} that is removed. "
        "The lasso and ridge are scikit-learn's, on the same columns and rows, each tuned by its own cross-validation."
    )


def _row(head: str, one: MethodScore | NestedScore, what: str, digits: int) -> str:
    low, high = (f"{value:.{digits}f}" for value in (np.min(one.folds), np.max(one.folds)))
    return (
        f'<tr><th scope="row"><bdi>{short_name(head)}</bdi></th><td>{one.mean:.{digits}f}</td>'
        f"<td>{one.std_error:.{digits}f}</td><td>{low} to {high}</td><td>{escape(what)}</td></tr>"
    )


def _selected(nested: NestedScore) -> str:
    """How often each group was selected in the outer folds."""
    counts = nested.frequencies
    if not counts:
        return "<p>No group was selected in any outer fold.</p>"
    listed = ", ".join(
        f"<bdi>{short_name(str(name))}</bdi> {count}" for name, count in list(counts.items())[:MOST_NAMED]
    )
    more = f" and {len(counts) - MOST_NAMED} more" if len(counts) > MOST_NAMED else ""
    return f"<p>In how many of the {nested.n_folds} outer folds each group was selected: {listed}{more}.</p>"
