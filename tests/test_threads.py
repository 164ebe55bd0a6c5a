"""Threads of linear algebra during a fit, and after it."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from covey import GroupSparseRegressor
from covey.datasets import make_group_sparse
from covey.search import select
from covey.search.search import Found
from covey.threads import SMALL, fitting_threads

SMALL_SHAPE, LARGE_SHAPE = (100, 200), (SMALL, 2)


def threads():
    return {one["filepath"]: one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        if set(threads().values()) != {2}:
            pytest.skip("this BLAS cannot be given two threads")
        yield


@pytest.mark.parametrize("on_device", [False, True])
@pytest.mark.parametrize("error", [nullcontext, lambda: pytest.raises(ZeroDivisionError)], ids=["", "error"])
def test_a_small_fit_or_one_on_a_device_has_one_thread_and_gives_the_others_back(on_device, error):
    before = threads()
    with error() as raised, fitting_threads(LARGE_SHAPE if on_device else SMALL_SHAPE, on_device):
        assert set(threads().values()) == {1}
        if raised is not None:
            raise ZeroDivisionError
    assert threads() == before


def test_loops_of_scikit_learn_have_one_thread_if_that_is_asked_for():
    def loops():
        return {one["filepath"]: one["num_threads"] for one in threadpool_info() if one["user_api"] == "openmp"}

    with threadpool_limits(2, user_api="openmp"):
        before = loops()
        assert set(before.values()) == {2}  # scikit-learn has loaded it
        with fitting_threads(SMALL_SHAPE):
            assert loops() == before
        with fitting_threads(LARGE_SHAPE, loops=True):
            assert loops() == before
        with fitting_threads(SMALL_SHAPE, loops=True):
            assert set(loops().values()) == {1}
        assert loops() == before


def test_a_large_x_keeps_the_threads_of_numpy():
    if len(threads()) < 2:
        pytest.skip("numpy and scipy share one BLAS here")
    with fitting_threads(LARGE_SHAPE):
        assert sorted(threads().values()) == [1, 2]
        kept = next(path for path, n in threads().items() if n == 2)
        assert "scipy.libs" not in kept


def test_of_fits_at_the_same_time_the_first_one_gives_them_back():
    before = threads()
    inside, leave = threading.Event(), threading.Event()

    def other():
        with fitting_threads(SMALL_SHAPE):
            inside.set()
            leave.wait()

    worker = threading.Thread(target=other)
    with fitting_threads(SMALL_SHAPE):
        worker.start()
        inside.wait()
        assert set(threads().values()) == {1}
    leave.set()
    worker.join()
    assert threads() == before


@pytest.mark.parametrize("first_to_leave", [0, 1])
@pytest.mark.parametrize("shapes", [(SMALL_SHAPE, SMALL_SHAPE), (LARGE_SHAPE, SMALL_SHAPE), (SMALL_SHAPE, LARGE_SHAPE)])
def test_of_overlapping_fits_the_last_one_gives_the_threads_back(shapes, first_to_leave):
    before = threads()
    fits = [fitting_threads(shape) for shape in shapes]
    for fit in fits:
        fit.__enter__()
    fits.pop(first_to_leave).__exit__(None, None, None)
    if shapes == (SMALL_SHAPE, SMALL_SHAPE):
        assert set(threads().values()) == {1}
    fits.pop().__exit__(None, None, None)
    assert threads() == before


def test_a_fit_works_with_one_thread_and_many_at_a_time_give_the_threads_back(monkeypatch):
    before, during = threads(), []
    monkeypatch.setattr(select, "Found", lambda *args: during.append(threads()) or Found(*args))
    data = make_group_sparse(60, 12, 3, random_state=0)
    GroupSparseRegressor(3).fit(data.X, data.y)
    assert [set(one.values()) for one in during] == [{1}]
    assert threads() == before
    with ThreadPoolExecutor(8) as pool:
        fits = [pool.submit(GroupSparseRegressor(3).fit, data.X, data.y) for _ in range(8)]
        for fit in fits:
            fit.result()
        assert threads() == before
