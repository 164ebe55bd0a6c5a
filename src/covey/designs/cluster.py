"""Waiting for a Dask scheduler without waiting for ever.

Dask mends the loss of a worker by itself: what was lost is computed again elsewhere. What it does not do is to give up
when no worker is left to compute; the functions here do, and say so.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dask
from dask.base import get_scheduler
from dask.utils import parse_timedelta

__all__ = ["WorkersLostError", "compute", "first_failure", "keep", "patience"]

# How long a cluster may be without any worker: enough for a worker to be restarted, not for a person to lose theirs.
PATIENCE = "60 s"

# Seconds between two looks at whether there are workers.
LOOK_EVERY = 1.0


class WorkersLostError(RuntimeError):
    """The cluster cannot finish: its workers, its scheduler, or results that only they had, are gone."""


def patience() -> float:
    """Seconds to wait for a cluster without workers: the setting ``covey.worker-timeout`` of Dask's configuration.

    >>> import dask
    >>> with dask.config.set({"covey.worker-timeout": "2 minutes"}):
    ...     patience()
    120.0
    """
    return float(parse_timedelta(dask.config.get("covey.worker-timeout", PATIENCE)))


def compute(*tasks: Any) -> tuple[Any, ...]:
    """The values of some Dask collections, on whatever scheduler is active.

    Raises
    ------
    WorkersLostError
        When a cluster has had no workers for `patience` seconds, or has lost what cannot be computed again.
    """
    with _client() as client:
        if client is None:
            values: tuple[Any, ...] = dask.compute(*tasks)
            return values
        return _wait(client, client.compute(list(tasks)))


def first_failure(tasks: Sequence[Any]) -> tuple[int, BaseException] | None:
    """The first of some tasks that cannot be computed, and why; None where all of them can."""
    with _client() as client:
        if client is not None:
            futures = client.compute(list(tasks))
            _until_done(client, futures)
            return next(((i, own.exception()) for i, own in enumerate(futures) if own.status == "error"), None)
        for i, task in enumerate(tasks):
            try:
                dask.compute(task)
            except Exception as error:
                return i, error
        return None


def keep(tasks: Sequence[Any]) -> list[Any]:
    """The same collections with their values held by the workers; on a cluster this does not wait for them."""
    with _client():
        return list(dask.persist(*tasks))


@contextmanager
def _client() -> Iterator[Any]:
    """The client of the active cluster; None for a scheduler of this process.

    Inside a task of a cluster (a fold of a cross-validation that joblib sent there) the task steps aside while it
    waits, so that its thread can work on what it waits for.
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


def _wait(client: Any, futures: list[Any]) -> tuple[Any, ...]:
    """The values of futures."""
    from distributed import CancelledError, KilledWorker

    try:
        _until_done(client, futures)
        return tuple(client.gather(futures))
    except KilledWorker as error:
        raise WorkersLostError(
            f"Workers died one after another on the same piece of work ({_in_one_line(error)}); usually they ran out "
            "of memory: use smaller chunks or larger workers."
        ) from error
    except (CancelledError, OSError) as error:
        if any(own.status == "error" for own in futures):
            raise  # a task's own error, of reading a file for instance
        raise WorkersLostError(
            f"The Dask scheduler at {_address(client)} is gone, or has lost data that cannot be computed again "
            f"({type(error).__name__}: {_in_one_line(error)}). Start a cluster and fit again; data that were "
            "scattered, rather than read by a task, do not survive their worker."
        ) from error


def _until_done(client: Any, futures: list[Any]) -> None:
    """Wait for futures, looking now and then whether anybody is there to compute them."""
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
                "go on. Start workers and fit again; how long to wait is Dask's setting 'covey.worker-timeout'."
            )


def _address(client: Any) -> str:
    scheduler = getattr(client, "scheduler", None)
    return str(getattr(scheduler, "address", "an unknown address"))


def _in_one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
