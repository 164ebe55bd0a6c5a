"""Waiting for a Dask scheduler, with a limit.

Dask recovers from the loss of a worker by itself: lost results are computed again elsewhere. But it waits forever if no
worker is left. The functions here give up after a while and raise an error.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import dask
from dask.base import get_scheduler
from dask.utils import parse_timedelta

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["WorkersLostError", "compute", "first_failure", "patience"]

# How long a cluster may be without workers: long enough for a worker to restart, not for a user to lose patience.
PATIENCE = "60 s"

# Seconds between two checks for workers.
LOOK_EVERY = 1.0


class WorkersLostError(RuntimeError):
    """The cluster cannot finish: workers, the scheduler, or results that only they held, are lost."""


def patience() -> float:
    """Seconds to wait for a cluster without workers: ``covey.worker-timeout`` in Dask's configuration.

    >>> import dask
    >>> with dask.config.set({"covey.worker-timeout": "2 minutes"}):
    ...     patience()
    120.0
    """
    return float(parse_timedelta(dask.config.get("covey.worker-timeout", PATIENCE)))


def compute(*tasks: object) -> tuple[Any, ...]:
    """The values of some Dask collections, from the active scheduler.

    Raises
    ------
    WorkersLostError
        If a cluster has had no workers for `patience` seconds, or has lost data that cannot be recomputed.
    """
    with _client() as client:
        if client is None:
            values: tuple[Any, ...] = dask.compute(*tasks)
            return values
        with warnings.catch_warnings():
            # the rows of y and of the weights travel with the tasks
            warnings.filterwarnings("ignore", "Sending large graph")
            futures = client.compute(list(tasks))
        return _wait(client, futures)


def first_failure(tasks: Sequence[object]) -> tuple[int, BaseException] | None:
    """The first task that cannot be computed, and why; None if all can."""
    with _client() as client:
        if client is not None:
            futures = client.compute(list(tasks))
            _until_done(client, futures)
            return next(((i, task.exception()) for i, task in enumerate(futures) if task.status == "error"), None)
        for i, task in enumerate(tasks):
            try:
                dask.compute(task)
            except Exception as error:
                return i, error
        return None


@contextmanager
def _client() -> Iterator[Client | None]:
    """The client of the active cluster; None for a scheduler in this process.

    Inside a task on a cluster (such as a fold that joblib runs there), the task releases its thread while it waits, so
    that the thread can compute what the task is waiting for.
    """
    client = getattr(get_scheduler(), "__self__", None)
    if client is None or not hasattr(client, "scheduler_info"):
        yield None
        return
    from distributed import get_worker, worker_client

    try:
        get_worker()
    except ValueError:
        yield client
    else:
        with worker_client() as inner:
            yield inner


def _wait(client: Client, futures: list[Future]) -> tuple[Any, ...]:
    """The values of futures."""
    from distributed import CancelledError, KilledWorker

    try:
        _until_done(client, futures)
        return tuple(client.gather(futures))
    except KilledWorker as error:
        raise WorkersLostError(
            f"Several workers died on the same task ({_in_one_line(error)}), usually because they ran out of memory: "
            "use smaller chunks or larger workers."
        ) from error
    except (CancelledError, OSError) as error:
        if any(future.status == "error" for future in futures):
            raise  # an error inside a task, for instance from reading a file
        raise WorkersLostError(
            f"The Dask scheduler at {_address(client)} is gone, or has lost data that cannot be computed again "
            f"({type(error).__name__}: {_in_one_line(error)}). Start a cluster and fit again; data that were "
            "scattered, rather than read by a task, are lost with their worker."
        ) from error


def _until_done(client: Client, futures: list[Future]) -> None:
    """Wait for futures, checking now and then that there are workers."""
    from distributed import wait

    alone_since = None
    while True:
        try:
            wait(futures, timeout=LOOK_EVERY)
        except TimeoutError:
            alone_since = None if client.nthreads() else alone_since or time.monotonic()
        else:
            return
        if alone_since is not None and time.monotonic() - alone_since > patience():
            client.cancel(futures, force=True)
            raise WorkersLostError(
                f"The Dask cluster at {_address(client)} has had no workers for {patience():g} s, and the fit cannot "
                "continue. Start workers and fit again; Dask's setting 'covey.worker-timeout' is how long to wait."
            )


def _address(client: Client) -> str:
    scheduler = getattr(client, "scheduler", None)
    return str(getattr(scheduler, "address", "an unknown address"))


def _in_one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
