"""Compiled functions, cached on disk if possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

__all__ = ["njit"]


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit``, without the cache on disk if that cannot be written.

    numba raises an error for ``cache=True`` if neither the folder of the source nor the user's can be written to.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(**options)(function)
        except RuntimeError:
            if not options.get("cache"):
                raise
            return numba.njit(**{**options, "cache": False})(function)

    return compiled
