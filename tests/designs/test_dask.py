"""Dask: the numbers of the array in memory, from chunks, on threads and on a cluster that loses workers."""

from __future__ import annotations

import os
import signal
import threading
import time

import dask
import dask.array as da
import dask.dataframe as dd
import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.model_selection import PredefinedSplit

from covey import GroupSparseRegressor, limit_path
from covey.cluster import WorkersLostError
from covey.datasets import make_group_sparse
from covey.designs.dask import DaskDesign
from covey.paper.experiments.tasks import each

N, P, SIZE = 640, 120, 4


@pytest.fixture(scope="module")
def data():
    return make_group_sparse(N, P, SIZE, design="gaussian", active=4, values="normal", sigma=0.5, random_state=0)


@pytest.fixture(scope="module")
def expected(data):
    return GroupSparseRegressor(SIZE, selection="holdout", random_state=0).fit(data.X, data.y)


def chunked(X, rows=100, columns=-1):
    return da.from_array(X, chunks=(rows, columns))


def assert_same_model(model, expected):
    assert model.recipe_ == expected.recipe_
    assert model.selected_groups_ == expected.selected_groups_
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-8 * abs(expected.coef_).max())
    assert model.intercept_ == pytest.approx(expected.intercept_, abs=1e-8)


# ---------------------------------------------------------------------- what comes in


def test_dataframes_of_unknown_length(data, expected):
    names = [f"x{j}" for j in range(P)]
    frame = dd.from_pandas(pd.DataFrame(data.X, columns=names).assign(y=data.y), npartitions=5)
    frame = frame[frame["x0"] > -np.inf]  # a filter: from here on nobody knows how many rows there are
    model = GroupSparseRegressor(SIZE, selection="holdout", random_state=0).fit(frame[names], frame["y"])
    assert_same_model(model, expected)
    assert list(model.feature_names_in_) == names
    np.testing.assert_allclose(model.predict(frame[names]), expected.predict(data.X), rtol=1e-8)


def test_empty_chunks_and_chunks_of_columns(data, expected):
    X = da.concatenate([chunked(data.X[:1], 1, 50), chunked(data.X[:0]), chunked(data.X[1:], 211, 50)])
    model = GroupSparseRegressor(SIZE, selection="holdout", random_state=0).fit(X, data.y)
    assert_same_model(model, expected)


@pytest.mark.parametrize("kind", ["chunks of columns of unknown length", "sparse chunks"])
def test_other_chunks(data, kind):
    dense = np.where(abs(data.X) > 1, data.X, 0.0)
    X = chunked(dense).map_blocks(sp.csr_array)
    if kind != "sparse chunks":
        X = chunked(dense, 100, 50)
        X = X[X[:, 0] > -np.inf]
        assert np.isnan(X.shape[0])
    path, wanted = (limit_path(Z, data.y, SIZE, max_groups=5) for Z in (X, dense))
    assert abs(path.coefs - wanted.coefs).max() < 1e-8


def test_responses_weights_and_scores(data, expected):
    X, y = chunked(data.X), da.from_array(data.y, chunks=77)
    weight = np.random.default_rng(0).integers(0, 3, N).astype(float)
    settings = {"selection": "holdout", "random_state": 0}
    wanted = GroupSparseRegressor(SIZE, **settings).fit(data.X, data.y, weight)
    model = GroupSparseRegressor(SIZE, **settings).fit(X, y, da.from_array(weight, chunks=99))
    assert_same_model(model, wanted)
    for some in (None, weight):
        assert expected.score(X, y, some) == pytest.approx(expected.score(data.X, data.y, some), rel=1e-9)


def wrong_kind(block, block_info=None):
    return block.round().astype(int) if block_info[0]["chunk-location"][0] == 1 else block


def holed(X):
    X = X.copy()
    X[333, 17] = np.nan
    return chunked(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (lambda X: chunked(X).astype(object), "X holds object, which are not real numbers"),
        (lambda X: chunked(X)[:, 0], "two dimensions"),
        (lambda X: chunked(X[:0]), "empty"),
        (lambda X: dask.delayed(X), "arrays and DataFrames"),
        (holed, r"Chunk 3 of X \(rows 300 to 399\) has missing .* in column 17"),
        (
            lambda X: chunked(X).map_blocks(wrong_kind, dtype=float, meta=np.empty((0, 0))),
            r"Chunk 1 of X \(rows 100 to 199\) holds int64",
        ),
    ],
)
def test_what_is_no_design_is_told_what_works(data, X, message):
    with pytest.raises(ValueError, match=message):
        limit_path(X(data.X), data.y, SIZE)


def test_a_dataframe_with_text_names_its_columns(data):
    frame = pd.DataFrame(data.X[:, :3], columns=["age", "dose", "site"]).assign(site="north", dose=1)
    with pytest.raises(ValueError, match=r"in column 'site'; numbers are needed: encode .*get_dummies"):
        limit_path(dd.from_pandas(frame, npartitions=2), data.y, 1)


def test_whole_numbers_are_converted(data):
    frame = pd.DataFrame(data.X[:, :3].round().astype(int), columns=["age", "dose", "site"])
    frame = frame.assign(dose=frame["dose"] > 0, site=frame["site"].astype("Int64"))
    expected = limit_path(frame.astype(float), data.y, 1).coefs.toarray()
    for X in (dd.from_pandas(frame, npartitions=2), chunked(frame.to_numpy().astype(int))):
        np.testing.assert_allclose(limit_path(X, data.y, 1).coefs.toarray(), expected, atol=1e-12)


def missing_file(block, block_info=None):
    if block_info[0]["chunk-location"][0] == 2:
        raise FileNotFoundError("part-2.npy")
    return block


@pytest.mark.parametrize("where", ["threads", "cluster"])
def test_a_missing_chunk_is_named(request, data, where):
    if where == "cluster":
        request.getfixturevalue("client")
    X = chunked(data.X).map_blocks(missing_file, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(ValueError, match=r"Chunk 2 of X \(rows 200 to 299\) cannot be read: FileNotFoundError: part-2"):
        limit_path(X, data.y, SIZE)


def test_a_missing_partition_of_a_dataframe_is_named(data):
    names = [f"x{j}" for j in range(3)]
    partition = pd.DataFrame(data.X[:, :3], columns=names)

    def read(i):
        return missing_file(partition, [{"chunk-location": (i,)}])

    with pytest.raises(ValueError, match=r"Chunk 2 of X cannot be read: FileNotFoundError: part-2"):
        limit_path(dd.from_map(read, range(4), meta=partition[:0]), data.y, 1)


# ---------------------------------------------------------------------- folds


@pytest.mark.parametrize("cv", ["number", "labels"])
def test_folds_are_those_of_the_array_in_memory(data, cv):
    labels = np.random.default_rng(0).integers(0, 3, N)
    folds, stored = (3, 3) if cv == "number" else (PredefinedSplit(labels), da.from_array(labels, chunks=130))
    wanted = GroupSparseRegressor(SIZE, selection=folds).fit(data.X, data.y)
    model = GroupSparseRegressor(SIZE, selection=stored).fit(chunked(data.X), data.y)
    np.testing.assert_allclose(model.candidates_["mse"], wanted.candidates_["mse"], rtol=1e-7)
    assert_same_model(model, wanted)


# ---------------------------------------------------------------------- a cluster


def test_results_of_a_pass_are_combined_on_the_workers(client, data, monkeypatch):
    design, computed = DaskDesign(chunked(data.X, 10)), []
    gather = DaskDesign._compute
    monkeypatch.setattr(DaskDesign, "_compute", lambda *arguments: computed.append(gather(*arguments)) or computed[-1])
    np.testing.assert_allclose(design.correlate(data.y[None]), data.y[None] @ data.X, rtol=1e-10)
    assert [[result.shape for result in results] for results in computed] == [[(1, P)]]


def test_a_fit_on_a_cluster(client, data, expected):
    X, y = chunked(data.X).persist(), da.from_array(data.y, chunks=100).persist()
    assert_same_model(GroupSparseRegressor(SIZE, selection="holdout", random_state=0).fit(X, y), expected)


def slowly(block):
    time.sleep(0.02)
    return block


def before_gram_matrices(act, monkeypatch):
    operation = DaskDesign.gram_parts

    def operate(*arguments):
        act()
        return operation(*arguments)

    monkeypatch.setattr(DaskDesign, "gram_parts", operate)


@pytest.mark.parametrize("moment", ["gram_parts", "at any time"])
def test_a_worker_killed_in_mid_fit(client, data, expected, moment, monkeypatch):
    pids = list(client.run(os.getpid).values())
    X = chunked(data.X).map_blocks(slowly, dtype=float, meta=np.empty((0, 0)))
    killed = []

    def kill():
        if not killed:
            killed.append(pids[0])
            os.kill(pids[0], signal.SIGKILL)

    if moment == "at any time":
        threading.Timer(0.4, kill).start()
    else:
        before_gram_matrices(kill, monkeypatch)
        X = X.persist()
    model = GroupSparseRegressor(SIZE, selection="holdout", random_state=0).fit(X, data.y)
    assert killed
    assert_same_model(model, expected)


def test_a_worker_killed_while_parquet_is_read_lazily(client, data, expected, tmp_path):
    names = [f"x{j}" for j in range(P)]
    for i, part in enumerate(np.array_split(np.arange(N), 4)):
        # every file counts its rows from zero
        table = pd.DataFrame(data.X[part], columns=names).assign(y=data.y[part])
        table.to_parquet(tmp_path / f"part-{i}.parquet")
    frame = dd.read_parquet(tmp_path)
    threading.Timer(0.4, os.kill, (next(iter(client.run(os.getpid).values())), signal.SIGKILL)).start()
    model = GroupSparseRegressor(SIZE, selection="holdout", random_state=0).fit(frame[names], frame["y"])
    assert_same_model(model, expected)


# ---------------------------------------------------------------------- joblib's backend


def test_experiments_through_the_dask_backend(client):
    here = os.getpid()
    with joblib.parallel_config(backend="dask"):
        places = each(lambda _: os.getpid(), range(4), jobs=-1)
    assert here not in places
    assert len(places) == 4


# ---------------------------------------------------------------------- last, because the workers do not come back


def test_a_worker_lost_for_good(client, cluster, data, expected, monkeypatch):
    X = chunked(data.X).persist()
    before_gram_matrices(lambda: cluster.scale(1), monkeypatch)
    assert_same_model(GroupSparseRegressor(SIZE, selection="holdout", random_state=0).fit(X, data.y), expected)


def test_all_workers_lost(client, cluster, data, monkeypatch):
    X = chunked(data.X).persist()
    before_gram_matrices(lambda: cluster.scale(0), monkeypatch)
    with (
        dask.config.set({"covey.worker-timeout": "2 s"}),
        pytest.raises(WorkersLostError, match=r"no workers for 2 s.*covey\.worker-timeout"),
    ):
        GroupSparseRegressor(SIZE, selection="holdout", random_state=0).fit(X, data.y)
