"""A claim of the paper, our measurement, and whether the claim holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from enum import StrEnum

import pandas as pd

__all__ = ["Claim", "Verdict", "judge", "markdown", "tabulate"]


class Verdict(StrEnum):
    """The outcome of a measurement."""

    HOLDS = "holds"
    CODE_ONLY = "holds in the code only"
    FAILS = "does not hold"


@dataclass(frozen=True)
class Claim:
    """One row of ``claims.csv``.

    Attributes
    ----------
    claim : str
        The claim in our words.
    expected : str
        The result that would confirm it. The thresholds are ours, since the paper states none, and were set after
        seeing earlier runs.
    measured : str
        The measured result.
    verdict : Verdict
    id : str
        The figure or table that makes the claim; filled in by the registry.
    """

    claim: str
    expected: str
    measured: str
    verdict: Verdict
    id: str = ""


def judge(text: bool, code: bool = False) -> Verdict:
    """The verdict on a claim: whether it holds with the paper's text and, failing that, with the authors' code.

    >>> judge(True), judge(False, True), judge(False)
    (<Verdict.HOLDS: 'holds'>, <Verdict.CODE_ONLY: 'holds in the code only'>, <Verdict.FAILS: 'does not hold'>)
    """
    return Verdict.HOLDS if text else Verdict.CODE_ONLY if code else Verdict.FAILS


def markdown(claims: Iterable[Claim]) -> str:
    """The claims as a Markdown table: experiment, claim, measurement and verdict."""
    lines = ["| id | claim | measured | verdict |", "| --- | --- | --- | --- |"]
    for claim in claims:
        cells = (cell.replace("|", "\\|") for cell in (claim.id, claim.claim, claim.measured, str(claim.verdict)))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def tabulate(claims: Iterable[Claim]) -> pd.DataFrame:
    """One row per claim, as in ``claims.csv``."""
    rows = [{**asdict(claim), "verdict": str(claim.verdict)} for claim in claims]
    return pd.DataFrame(rows, columns=["id", *(field.name for field in fields(Claim) if field.name != "id")])
