"""The number of threads in linear algebra.

The wheels of numpy and scipy each bring their own BLAS with its own threads. After a product, the threads of one spin
while they wait for the next, and slow down the threads of the other. A search that alternates between the two thousands
of times, with small matrices, took up to ten times as long on two cores as with a single thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import scipy
from threadpoolctl import ThreadpoolController

__all__ = ["fitting_threads"]

# For an X with fewer numbers, threads cost more in waiting than they save in products.
SMALL = 2**21


@contextmanager
def fitting_threads(shape: tuple[int, int], on_device: bool = False) -> Iterator[None]:
    """Fit with one thread in scipy's BLAS, and also in numpy's unless X is large.

    The setting applies to the whole process: if several fits run at the same time, the first one decides.
    """
    every, of_scipy = _libraries()
    large = shape[0] * shape[1] >= SMALL and not on_device
    with (of_scipy if large else every).limit(limits=1):
        yield


@cache
def _libraries() -> tuple[ThreadpoolController, ThreadpoolController]:
    """Every BLAS in use, and the one that came with scipy, if it is not shared with numpy."""
    every = ThreadpoolController().select(user_api="blas")
    home = Path(scipy.__file__).resolve().parent
    paths = [one.filepath for one in every.lib_controllers]
    own = [path for path in paths if Path(path).resolve().parent in (home.with_name("scipy.libs"), home / ".dylibs")]
    return every, every.select(filepath=own)
