"""A Dask cluster of two worker processes on loopback, started once for the tests that ask for it."""

import pytest
from distributed import Client, LocalCluster


@pytest.fixture(scope="session")
def cluster():
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=":0"
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    """A client of the cluster, which is the active scheduler as long as the test runs; there are workers."""
    with Client(cluster) as client:
        if len(client.nthreads()) < 2:  # another test has lost some, whose names may still be taken
            cluster.scale(0)
            cluster.scale(2)
        client.wait_for_workers(2, timeout=60)
        yield client
