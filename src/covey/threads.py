"""The number of threads in linear algebra.

The wheels of numpy and scipy each bring a BLAS that has separate threads. After a product, the threads of one spin
while they wait for the next, and slow down the threads of the other. A search that alternates between the two thousands
of times, with small matrices, took up to ten times as long on two cores as with a single thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from threading import Lock

import scipy
from threadpoolctl import LibController, ThreadpoolController, threadpool_limits

__all__ = ["fitting_threads"]

# For an X with fewer numbers, threads cost more in waiting than they save in products.
SMALL = 2**21


class SharedLimit:
    """One thread for some libraries while anybody uses it; the last user to leave restores the former numbers."""

    def __init__(self, libraries: ThreadpoolController) -> None:
        self.libraries = libraries.lib_controllers
        self.lock = Lock()
        self.n_users = 0
        self.before: list[int] = []

    def __enter__(self) -> None:
        with self.lock:
            if self.n_users == 0:
                self.before = [library.num_threads for library in self.libraries]
                for library in self.libraries:
                    library.set_num_threads(1)
            self.n_users += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.n_users -= 1
            if self.n_users == 0:
                for library, n_threads in zip(self.libraries, self.before, strict=True):
                    _restore(library, n_threads)


def _restore(library: LibController, n_threads: int) -> None:
    """Set the number of threads, also from another thread than the one that set it before.

    Since threadpoolctl 3.8, only one thread controls OpenBLAS, until it ends or gives control back.
    """
    release = getattr(library, "clear_controlling_thread", lambda **options: None)
    library.set_num_threads(n_threads)
    if library.num_threads != n_threads:
        release(force=True)
        library.set_num_threads(n_threads)
    release()


@contextmanager
def fitting_threads(shape: tuple[int, int], on_device: bool = False, *, loops: bool = False) -> Iterator[None]:
    """Fit with one thread in scipy's BLAS, and also in numpy's unless X is large.

    The setting applies to all of the process, until the last of the fits that run at the same time ends. With `loops`
    it includes scikit-learn's loops over rows, for the calling thread: on a busy machine they took ten times as long
    with two threads.
    """
    of_scipy, others = _libraries()
    large = shape[0] * shape[1] >= SMALL and not on_device
    openmp = threadpool_limits(1, user_api="openmp") if loops and not large else nullcontext()
    with of_scipy, nullcontext() if large else others, openmp:
        yield


@cache
def _libraries() -> tuple[SharedLimit, SharedLimit]:
    """The BLAS that came with scipy, if it is not shared with numpy, and every other BLAS in use."""
    every = ThreadpoolController().select(user_api="blas")
    home = Path(scipy.__file__).resolve().parent
    folders = (home.with_name("scipy.libs"), home / ".dylibs")
    paths = [one.filepath for one in every.lib_controllers]
    of_scipy = [path for path in paths if Path(path).resolve().parent in folders]
    others = [path for path in paths if path not in of_scipy]
    return SharedLimit(every.select(filepath=of_scipy)), SharedLimit(every.select(filepath=others))
