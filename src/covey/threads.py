"""Threads of linear algebra, as many as help.

The wheels of numpy and of scipy each bring a BLAS with threads of its own. After a product the threads of one wait for
the next one by spinning, in the way of those of the other: a search that goes from one to the other and back, thousands
of times and with small matrices, took up to ten times as long on two cores as with a single thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import scipy
from threadpoolctl import ThreadpoolController

__all__ = ["fitting_threads"]

# Products with an X of fewer numbers gain less by threads than their waiting costs.
SMALL = 2**21


@contextmanager
def fitting_threads(shape: tuple[int, int], on_device: bool = False) -> Iterator[None]:
    """Fit with one thread in scipy's BLAS, and in numpy's too unless it multiplies a large X.

    Threads are those of the process: of fits at the same time the first one decides.
    """
    every, of_scipy = _libraries()
    large = shape[0] * shape[1] >= SMALL and not on_device
    with (of_scipy if large else every).limit(limits=1):
        yield


@cache
def _libraries() -> tuple[ThreadpoolController, ThreadpoolController]:
    """Every BLAS in use, and the one that scipy brought; none where it shares that of numpy."""
    every = ThreadpoolController().select(user_api="blas")
    home = Path(scipy.__file__).resolve().parent
    paths = [one.filepath for one in every.lib_controllers]
    own = [path for path in paths if Path(path).resolve().parent in (home.with_name("scipy.libs"), home / ".dylibs")]
    return every, every.select(filepath=own)
