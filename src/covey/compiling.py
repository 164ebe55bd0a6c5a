"""Compiled functions, kept on disk where there is a place for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

__all__ = ["njit"]


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit``; where nothing can be written, what is compiled is kept in memory instead of a cache.

    numba refuses to make a function with ``cache=True`` if neither its own folder nor the user's can be written to.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(**options)(function)
        except RuntimeError:
            if not options.get("cache"):
                raise
            return numba.njit(**{**options, "cache": False})(function)

    return compiled
