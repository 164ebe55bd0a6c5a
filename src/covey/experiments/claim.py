"""A claim of the paper, what we measured, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from enum import StrEnum

import pandas as pd

__all__ = ["Claim", "Verdict", "judge", "markdown", "tabulate"]


class Verdict(StrEnum):
    """What the measurement says."""

    HOLDS = "holds"
    CODE_ONLY = "holds in the code only"
    FAILS = "does not hold"


@dataclass(frozen=True)
class Claim:
    """One row of ``claims.csv``.

    Attributes
    ----------
    id : str
        The figure or table that makes the claim.
    claim : str
        What is claimed, in our words.
    expected : str
        What we would have to see: our threshold, the paper states none. They were set knowing earlier runs.
    measured : str
        What we saw.
    verdict : Verdict
    """

    id: str
    claim: str
    expected: str
    measured: str
    verdict: Verdict


def judge(text: bool, code: bool = False) -> Verdict:
    """The verdict on a claim from whether it was met by the paper's text and, failing that, by the authors' code.

    >>> judge(True), judge(False, True), judge(False)
    (<Verdict.HOLDS: 'holds'>, <Verdict.CODE_ONLY: 'holds in the code only'>, <Verdict.FAILS: 'does not hold'>)
    """
    return Verdict.HOLDS if text else Verdict.CODE_ONLY if code else Verdict.FAILS


def markdown(claims: Iterable[Claim]) -> str:
    """The claims as a table of a page: the experiment, the claim, what was measured, the verdict."""
    lines = ["| id | claim | measured | verdict |", "| --- | --- | --- | --- |"]
    for claim in claims:
        cells = (cell.replace("|", "\\|") for cell in (claim.id, claim.claim, claim.measured, str(claim.verdict)))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def tabulate(claims: Iterable[Claim]) -> pd.DataFrame:
    """One row per claim, as in ``claims.csv``."""
    rows = [{**asdict(claim), "verdict": str(claim.verdict)} for claim in claims]
    return pd.DataFrame(rows, columns=[field.name for field in fields(Claim)])
