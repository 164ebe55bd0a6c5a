"""Terms: how a user describes the variables of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeAlias, Union

from numpy.typing import ArrayLike

from covey.designs.rows import repetitions
from covey.tables.complaint import near
from covey.terms.encoding import Encoding
from covey.terms.fitting import fit_encoding
from covey.terms.kinds import Auto, Kind, as_kind
from covey.terms.pairs import PairsLike, as_pairs
from covey.terms.reading import as_frame
from covey.validation import MatrixLike

# What is accepted as ``terms=``.
TermsLike: TypeAlias = Union["Terms", str, Mapping[str, object], None]


@dataclass(frozen=True)
class Terms:
    """How the variables of a table become terms: straight lines, curves, levels, seasons, and pairs of them.

    A number becomes a linear term, a curve as its child and a detail as the child of the curve, a category its levels,
    a date a trend and its seasons. Missing values get a level or a flag. Constants, identifiers and free text are left
    out with a remark.

    Parameters
    ----------
    variables : dict, optional
        For a name or a pattern such as ``"lab_*"``: ``"auto"``, ``"linear"``, ``"curve"``, ``"levels"``, ``"drop"``, or
        `Linear`, `Curve` and `Levels` with settings. Exact names win over patterns, later patterns over earlier ones.
    pairs : "auto", None, list of pairs of names, or {"with": name or names}
        Pairs of variables that may be selected besides: all that have enough rows, none, those listed, or all pairs
        with the given variables. A pair is in a model only together with both of its variables.

    Examples
    --------
    >>> import pandas as pd
    >>> from covey import Curve, Levels, Terms
    >>> table = pd.DataFrame({"age": [31, 45, 28, 60, 39, 52], "site": list("aabbab")})
    >>> encoding = Terms({"age": "linear"}).fit(table)
    >>> [term.name for term in encoding.terms], encoding.column_names
    (['age', 'site'], ('age', 'site=a', 'site=b'))
    >>> Terms({"age": Curve(knots=5), "s*": Levels(always=True)}, pairs=[("age", "site")])
    Terms({'age': Curve(knots=5, always=False), 's*': Levels(always=True, rare=None)}, pairs=(('age', 'site'),))
    """

    variables: Mapping[str, Kind] | None = None
    pairs: PairsLike = "auto"

    def __init__(self, variables: Mapping[str, object] | None = None, *, pairs: PairsLike = "auto") -> None:
        if variables is not None and not isinstance(variables, Mapping):
            raise ValueError(f"variables must be a dict such as {{'age': 'linear'}}, not {variables!r}.")
        kinds = {str(name): as_kind(value, name) for name, value in (variables or {}).items()}
        object.__setattr__(self, "variables", kinds)
        object.__setattr__(self, "pairs", as_pairs(pairs))

    def __repr__(self) -> str:
        shown = [repr(self.variables)] if self.variables else []
        return f"Terms({', '.join(shown + ([f'pairs={self.pairs!r}'] if self.pairs != 'auto' else []))})"

    @classmethod
    def coerce(cls, terms: TermsLike) -> Terms:
        """The terms that a user gave: `Terms`, "auto", or a dict of variables."""
        if isinstance(terms, Terms):
            return terms
        if isinstance(terms, Mapping):
            return cls(terms)
        if isinstance(terms, str) and terms == "auto":
            return cls()
        raise ValueError(
            f"terms must be 'auto', a dict such as {{'age': 'linear'}}, or covey.Terms(...), not {terms!r}. For groups "
            "of columns use groups=."
        )

    def kinds(self, names: Sequence[str]) -> dict[str, Kind]:
        """The kind of each variable of a table."""
        found: dict[str, Kind] = dict.fromkeys(names, Auto())
        given = self.variables or {}
        for pattern, kind in given.items():
            if pattern in found:
                continue
            matches = [name for name in names if fnmatchcase(name, pattern)]
            if not matches:
                what = "variable" if not set(pattern) & set("*?[") else "variable that matches"
                raise ValueError(f"terms: there is no {what} {pattern!r}; {near(pattern, names)}")
            found.update(dict.fromkeys(matches, kind))
        return found | {name: kind for name, kind in given.items() if name in found}

    def fit(self, table: MatrixLike, sample_weight: ArrayLike | None = None) -> Encoding:
        """Fit the encoding of a table; row weights count as repetitions of rows."""
        frame = as_frame(table)
        return fit_encoding(frame, self.kinds(list(frame.columns)), self.pairs, repetitions(sample_weight, len(frame)))
