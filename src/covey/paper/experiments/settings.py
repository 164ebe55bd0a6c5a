"""The base class of the experiments' settings."""

from __future__ import annotations

from typing import Any, ClassVar, Self

__all__ = ["Scale"]


class Scale:
    """Settings of an experiment: the defaults are the full ones, and ``QUICK`` says what a quick run has instead."""

    QUICK: ClassVar[dict[str, Any]] = {}

    @classmethod
    def quick(cls) -> Self:
        """Few repeats: seconds or minutes."""
        return cls(**cls.QUICK)

    @classmethod
    def full(cls) -> Self:
        """As in the paper."""
        return cls()
