"""What to mind when reading a fit, in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from covey.report.curve import Curve

__all__ = ["Remark", "remarks"]


@dataclass(frozen=True)
class Remark:
    """One thing to mind.

    Attributes
    ----------
    heading : str
    meaning : str
        What was found and what it means.
    remedy : str
        What to do; empty where nothing needs doing.
    serious : bool
        Whether it can change what is concluded.
    """

    heading: str
    meaning: str
    remedy: str = ""
    serious: bool = False


def remarks(model: Any, curve: Curve | None, time: float, X: Any, y: Any) -> tuple[Remark, ...]:
    """Everything worth saying, serious things first."""
    return ()
