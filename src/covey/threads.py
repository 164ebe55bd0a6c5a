"""Threads of linear algebra, as many as help.

The wheels of numpy and of scipy each bring a BLAS with threads of its own. After a product the threads of one wait for
the next one by spinning, in the way of those of the other: a search that goes from one to the other and back, thousands
of times and with small matrices, took up to ten times as long on two cores as with a single thread.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import scipy
from threadpoolctl import ThreadpoolController

__all__ = ["fitting_threads"]

# Products with an X of fewer numbers gain less by threads than their waiting costs.
SMALL = 2**21

_lock = threading.Lock()
# by library: how many fits hold it at one thread, and how many threads it had before
_held: dict[str, tuple[int, int]] = {}


@contextmanager
def fitting_threads(shape: tuple[int, int]) -> Iterator[None]:
    """Fit with one thread in scipy's BLAS, and in numpy's too unless an X of this shape is large.

    Threads are those of the process: with several fits at a time they come back after the last one.
    """
    own, shared = _libraries()
    limited = [*own, *shared] if shape[0] * shape[1] < SMALL else own
    with _lock:
        for library in limited:
            count, before = _held.get(library.filepath, (0, library.num_threads))
            if count == 0:
                before = library.num_threads
                library.set_num_threads(1)
            _held[library.filepath] = (count + 1, before)
    try:
        yield
    finally:
        with _lock:
            for library in limited:
                count, before = _held[library.filepath]
                if count == 1:
                    library.set_num_threads(before)
                _held[library.filepath] = (count - 1, before)


@cache
def _libraries() -> tuple[list[Any], list[Any]]:
    """The BLAS that scipy brought, and the others: that of numpy, or the only one where they share it."""
    home = Path(scipy.__file__).resolve().parent
    found = [one for one in ThreadpoolController().lib_controllers if one.user_api == "blas"]
    own = [one for one in found if _brought_by(home, Path(one.filepath).resolve())]
    return own, [one for one in found if one not in own]


def _brought_by(home: Path, library: Path) -> bool:
    return library.is_relative_to(home) or library.is_relative_to(home.with_name("scipy.libs"))
