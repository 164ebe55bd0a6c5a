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

from covey import GroupSparseRegressor, limit_path
from covey.datasets import make_group_sparse
from covey.designs import DenseDesign
from covey.designs import cluster as scheduling
from covey.designs.cluster import WorkersLostError
from covey.designs.dask import DaskDesign
from covey.paper.experiments.parallel import each
from covey.selection import Folds

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


# ---------------------------------------------------------------------- the operations, chunk by chunk


@pytest.fixture(scope="module")
def designs():
    """The same numbers in memory and in chunks, with a constant column, a large mean, and weights with zeros."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((203, 12)) + 3.0
    X[:, 5], X[:, 6] = 0.1, X[:, 6] + 1e6
    y, weight = rng.standard_normal(203), rng.integers(0, 3, 203).astype(float)
    weight[100:150] = 0  # a whole chunk
    return DenseDesign(X), DaskDesign(chunked(X, 50, 5)), y, weight


@pytest.mark.parametrize("centre", [True, False])
def test_moments(designs, centre):
    dense, chunks, y, weight = designs
    layout = np.random.default_rng(0).permutation(12), np.array([0, 1, 4, 9, 12])
    scale = np.exp2(np.arange(12.0) - 6)
    wanted = dense.moments(y, dense.weights(weight), *layout, centre=centre, scale=scale)
    found = chunks.moments(chunks.rows(y), chunks.weights(weight), *layout, centre=centre, scale=scale)
    for name in ("mean", "variance", "correlation", "blocks"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-9, atol=1e-10, err_msg=name)
    if centre:
        constant = layout[0] == 5
        assert found.variance[constant] == 0
        assert found.correlation[constant] == 0


def test_gram_rows_triangles_and_largest(designs):
    dense, chunks, _, weight = designs
    q, held = dense.weights(weight), chunks.weights(weight)
    columns, loadings = np.array([3, 0, 7]), np.random.default_rng(2).standard_normal((3, 2))
    for offset in (q @ dense.X[:, columns] @ loadings, np.zeros(2)):
        found, wanted = (
            design.gram_rows(own, columns, loadings, offset) for design, own in ((chunks, held), (dense, q))
        )
        # one column has a mean of 1e6
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-9)
    arguments = [columns, columns[:1]], [np.full(3, 3.0), np.zeros(1)], [np.array([1.0, 2.0, 4.0]), np.ones(1)]
    for R in chunks.triangles(held, *arguments), dense.triangles(q, *arguments):
        Z = (dense.X[:, columns] - 3.0) * [1.0, 2.0, 4.0]
        np.testing.assert_allclose(R[0].T @ R[0], (Z.T * q) @ Z, rtol=1e-10, atol=1e-12)
        assert R[1].shape == (1, 1)
    np.testing.assert_array_equal(chunks.largest(), dense.largest())


def test_products_columns_and_predictions(designs):
    dense, chunks, y, weight = designs
    R = np.vstack([y, weight])
    for rows in (R, da.from_array(R, chunks=(1, 70))):
        np.testing.assert_allclose(chunks.correlate(rows), dense.correlate(R), rtol=1e-12)
    np.testing.assert_array_equal(chunks.take(np.array([4, 1])).compute(), dense.X[:, [4, 1]])
    for columns in (np.array([2, 0]), np.array([], dtype=int)):
        models = columns, np.ones((3, columns.size)), np.arange(3.0)
        np.testing.assert_allclose(chunks.predict(*models).compute(), dense.predict(*models), rtol=1e-14)


def test_a_response_of_any_size(designs):
    dense, chunks, y, weight = designs
    q = chunks.weights(weight)
    for unit in (1.0, 1e-150, 1e150):
        for centre in (True, False):
            wanted = dense.standard((y + 2) * unit, dense.weights(weight), centre=centre)
            found = chunks.standard(chunks.rows((y + 2) * unit), q, centre=centre)
            np.testing.assert_allclose(np.asarray(found[0]), wanted[0], rtol=1e-12, atol=1e-14)
            assert found[1:] == pytest.approx(wanted[1:], rel=1e-12, abs=0)
    assert chunks.standard(chunks.rows(np.full(203, 7.0)), q, centre=True)[1:] == (7.0, 1.0)
    assert chunks.standard(chunks.rows(np.zeros(203)), q, centre=True)[1:] == (0.0, 1.0)


def test_errors_keep_their_digits_when_they_become_small(designs):
    dense, chunks, y, weight = designs
    columns, coef = np.array([1, 2, 6]), np.array([1.0, -2.0, 1e-3])
    y = dense.X[:, columns] @ coef + 5.0 + 1e-9 * y
    steps = 1 - 10.0 ** -np.arange(11)
    models = np.append(steps, 1.0)[:, None] * coef, np.append(steps, 1.0) * 5.0
    wanted = dense.errors(y, weight)(columns, *models)
    found = chunks.errors(chunks.rows(y), chunks.rows(weight))(columns, *models)
    assert wanted[-1] < 1e-17
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("few_values", [False, True])
def test_the_rows_held_out_are_those_of_the_array_in_memory(designs, few_values):
    dense, chunks, y, weight = designs
    if few_values:
        X = (dense.X[:, :3] > 3).astype(float)
        dense, chunks, y = DenseDesign(X), DaskDesign(chunked(X, 50)), np.round(y)
    wanted = dense.hold_out(y, weight, 0.25, 7)
    found = chunks.hold_out(chunks.rows(y), chunks.rows(weight), 0.25, 7)
    assert found.chunks == (chunks.counts,)
    np.testing.assert_array_equal(np.asarray(found), wanted)


def test_equal_rows_cannot_be_held_out():
    chunks = DaskDesign(chunked(np.ones((20, 3)), 5))
    with pytest.raises(ValueError, match="all rows are equal"):
        chunks.hold_out(chunks.rows(np.ones(20)), chunks.rows(np.ones(20)), 0.2, 0)


# ---------------------------------------------------------------------- what comes in


def test_dataframes_of_unknown_length(data, expected):
    names = [f"x{j}" for j in range(P)]
    frame = dd.from_pandas(pd.DataFrame(data.X, columns=names).assign(y=data.y), npartitions=5)
    frame = frame[frame["x0"] > -np.inf]  # a filter: from here on nobody knows how many rows there are
    model = GroupSparseRegressor(SIZE, selection="holdout", random_state=0).fit(frame[names], frame["y"])
    assert_same_model(model, expected)
    assert list(model.feature_names_in_) == names
    predicted = model.predict(frame[names])
    assert isinstance(predicted, da.Array)
    np.testing.assert_allclose(predicted.compute(), expected.predict(data.X), rtol=1e-8)


def test_empty_chunks_and_chunks_of_columns(data, expected):
    X = da.concatenate([chunked(data.X[:1], 1, 50), chunked(data.X[:0]), chunked(data.X[1:], 211, 50)])
    model = GroupSparseRegressor(SIZE, selection="holdout", random_state=0).fit(X, data.y)
    assert_same_model(model, expected)


def test_unknown_lengths_of_chunks_of_columns(data):
    X = chunked(data.X, 100, 50)
    X = X[X[:, 0] > -np.inf]
    assert np.isnan(X.shape[0])
    path = limit_path(X, data.y, SIZE, max_groups=4)
    assert abs(path.coefs - limit_path(data.X, data.y, SIZE, max_groups=4).coefs).max() < 1e-8


def test_sparse_chunks(data):
    X = np.where(abs(data.X) > 1, data.X, 0.0)
    path = limit_path(chunked(X).map_blocks(sp.csr_array), data.y, SIZE, max_groups=6)
    wanted = limit_path(X, data.y, SIZE, max_groups=6)
    assert abs(path.coefs - wanted.coefs).max() < 1e-8


def test_sample_weights(data):
    weight = np.random.default_rng(0).integers(0, 3, N).astype(float)
    settings = {"selection": "holdout", "random_state": 0}
    wanted = GroupSparseRegressor(SIZE, **settings).fit(data.X, data.y, weight)
    model = GroupSparseRegressor(SIZE, **settings).fit(chunked(data.X), data.y, da.from_array(weight, chunks=99))
    assert_same_model(model, wanted)


def test_the_score_is_computed_where_the_rows_are(data, expected):
    X, y = chunked(data.X), da.from_array(data.y, chunks=77)
    assert expected.score(X, y) == pytest.approx(expected.score(data.X, data.y), rel=1e-9)
    weight = np.random.default_rng(0).random(N)
    assert expected.score(X, y, weight) == pytest.approx(expected.score(data.X, data.y, weight), rel=1e-9)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (lambda X: chunked(X.round()).astype(int), r"dtype int64; .*astype\('float64'\)"),
        (lambda X: chunked(X).astype(object), "dtype object"),
        (lambda X: chunked(X)[:, 0], "two dimensions"),
        (lambda X: chunked(X[:0]), "empty"),
        (lambda X: dask.delayed(X), "arrays and DataFrames"),
    ],
)
def test_what_is_no_design_is_told_what_works(data, X, message):
    with pytest.raises(ValueError, match=message):
        limit_path(X(data.X), data.y, SIZE)


def test_a_dataframe_with_text_names_its_columns(data):
    frame = pd.DataFrame(data.X[:, :3], columns=["age", "dose", "site"]).assign(site="north", dose=1)
    with pytest.raises(ValueError, match=r"dtype int64, .* in columns 'dose', 'site'; .*get_dummies"):
        limit_path(dd.from_pandas(frame, npartitions=2), data.y, 1)


def test_a_missing_value_names_its_chunk_and_column(data):
    X = data.X.copy()
    X[333, 17] = np.nan
    with pytest.raises(ValueError, match=r"Chunk 3 of X \(rows 300 to 399\) has missing .* in column 17"):
        limit_path(chunked(X), data.y, SIZE)


def missing_file(block, block_info=None):
    if block_info[0]["chunk-location"][0] == 2:
        raise FileNotFoundError("part-2.npy")
    return block


def wrong_kind(block, block_info=None):
    return block.round().astype(int) if block_info[0]["chunk-location"][0] == 1 else block


def test_a_missing_chunk_is_named(data):
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


def test_a_missing_chunk_is_named_by_a_cluster(client, data):
    X = chunked(data.X).map_blocks(missing_file, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(ValueError, match=r"Chunk 2 of X \(rows 200 to 299\) cannot be read: FileNotFoundError: part-2"):
        limit_path(X, data.y, SIZE)


def test_a_chunk_of_another_dtype_is_named(data):
    X = chunked(data.X).map_blocks(wrong_kind, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(ValueError, match=r"Chunk 1 of X \(rows 100 to 199\) holds int64"):
        limit_path(X, data.y, SIZE)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (lambda y: y[:-1], "y has 639 entries, but X has 640 rows"),
        (lambda y: np.where(np.arange(N) == 77, np.nan, y), r"y has missing .* first in row 77 \(1 in all\)"),
        (lambda y: np.array(["a"] * N), "y must hold numbers"),
        (lambda y: y * 1e170, "squares overflow"),
    ],
)
def test_a_bad_response(data, y, message):
    with pytest.raises(ValueError, match=message):
        limit_path(chunked(data.X), y(data.y), SIZE)


def test_bad_weights(data):
    with pytest.raises(ValueError, match=r"must not be negative; among the rows 0 to 99 is -1"):
        limit_path(chunked(data.X), data.y, SIZE, sample_weight=-np.ones(N))
    with pytest.raises(ValueError, match="zero in every row"):
        limit_path(chunked(data.X), data.y, SIZE, sample_weight=np.zeros(N))


# ---------------------------------------------------------------------- folds


@pytest.mark.parametrize("cv", ["number", "runs", "labels"])
def test_folds_are_cut_on_the_cluster(data, cv):
    from sklearn.model_selection import KFold, PredefinedSplit

    labels = np.random.default_rng(0).integers(0, 3, N)
    folds = {"number": 3, "runs": KFold(3), "labels": PredefinedSplit(labels)}[cv]
    wanted = GroupSparseRegressor(SIZE, selection=folds, factors=0).fit(data.X, data.y)
    own = da.from_array(labels, chunks=130) if cv == "labels" else folds
    model = GroupSparseRegressor(SIZE, selection=own).fit(chunked(data.X), data.y)
    np.testing.assert_allclose(model.candidates_["mse"], wanted.candidates_["mse"], rtol=1e-7)
    assert_same_model(model, wanted)


def test_folds_of_a_response_of_two_values_are_those_of_the_array_in_memory(data):
    y = (data.y > 0.5).astype(float)
    wanted = Folds(4).parts(DenseDesign(data.X), y, np.ones(N))
    chunks = DaskDesign(chunked(data.X))
    found = Folds(4).parts(chunks, chunks.rows(y), chunks.rows(np.ones(N)))
    np.testing.assert_array_equal(np.array(found.weights), np.array(wanted.weights))


def test_splitters_that_shuffle_rows_are_refused(data):
    from sklearn.model_selection import KFold

    with pytest.raises(ValueError, match="number of folds, KFold without shuffling, or a Dask array of labels"):
        GroupSparseRegressor(SIZE, selection=KFold(3, shuffle=True)).fit(chunked(data.X), data.y)


# ---------------------------------------------------------------------- a cluster


def test_a_fit_on_a_cluster(client, data, expected):
    X, y = chunked(data.X).persist(), da.from_array(data.y, chunks=100).persist()
    assert_same_model(GroupSparseRegressor(SIZE, selection="holdout", random_state=0).fit(X, y), expected)


def test_nothing_of_the_length_of_a_column_comes_to_the_client(client, data, monkeypatch):
    seen = []
    wait = scheduling._wait

    def watched(*arguments):
        values = wait(*arguments)
        seen.extend(len(pickled(value)) for value in values)
        return values

    monkeypatch.setattr(scheduling, "_wait", watched)
    # nor by the back door
    for door in ("__array__", "__float__", "__int__", "__bool__", "compute"):
        monkeypatch.setattr(da.Array, door, refuse)
    # many rows and few columns, so that a column is larger than everything else
    X = da.random.default_rng(0).standard_normal((40_000, 12), chunks=(15_000, 12))
    y = X[:, :3].sum(axis=1) + da.random.default_rng(1).standard_normal(40_000, chunks=15_000)
    model = GroupSparseRegressor(3, selection="holdout", random_state=0).fit(X, y)
    GroupSparseRegressor(3, selection=2).fit(X, y)
    assert model.score(X, y) == pytest.approx(0.75, abs=0.02)
    assert model.selected_groups_[0] == 0
    assert len(seen) > 10
    assert max(seen) < 40_000


def refuse(self, *arguments, **options):
    raise AssertionError("an array was computed that nobody watches")


def pickled(value):
    import cloudpickle

    return cloudpickle.dumps(value)


def workers(client):
    return list(client.run(os.getpid).values())


def slowly(block):
    time.sleep(0.02)
    return block


@pytest.mark.parametrize("moment", ["gram_parts", "at any time"])
def test_a_worker_killed_in_mid_fit(client, data, expected, moment, monkeypatch):
    pids = workers(client)
    X = chunked(data.X).map_blocks(slowly, dtype=float, meta=np.empty((0, 0)))
    killed = []

    def kill():
        if not killed:
            killed.append(pids[0])
            os.kill(pids[0], signal.SIGKILL)

    if moment == "at any time":
        threading.Timer(0.4, kill).start()
    else:
        operation = getattr(DaskDesign, moment)

        def operate(*arguments, **options):
            kill()
            return operation(*arguments, **options)

        monkeypatch.setattr(DaskDesign, moment, operate)
        X = X.persist()
    model = GroupSparseRegressor(SIZE, selection="holdout", random_state=0).fit(X, data.y)
    assert killed
    assert_same_model(model, expected)


# ---------------------------------------------------------------------- joblib's backend


def test_experiments_through_the_dask_backend(client):
    here = os.getpid()
    with joblib.parallel_config(backend="dask"):
        places = each(lambda _: os.getpid(), range(4), jobs=-1)
    assert here not in places
    assert len(places) == 4


# ---------------------------------------------------------------------- last, because the workers do not come back


def scale_in_mid_fit(cluster, n_workers, monkeypatch):
    """Take workers away, for good, before the Gram matrices."""
    operation = DaskDesign.gram_parts

    def operate(*arguments):
        cluster.scale(n_workers)
        return operation(*arguments)

    monkeypatch.setattr(DaskDesign, "gram_parts", operate)


def test_a_worker_lost_for_good(client, cluster, data, expected, monkeypatch):
    X = chunked(data.X).persist()
    scale_in_mid_fit(cluster, 1, monkeypatch)
    assert_same_model(GroupSparseRegressor(SIZE, selection="holdout", random_state=0).fit(X, data.y), expected)


def test_all_workers_lost(client, cluster, data, monkeypatch):
    X = chunked(data.X).persist()
    scale_in_mid_fit(cluster, 0, monkeypatch)
    with (
        dask.config.set({"covey.worker-timeout": "2 s"}),
        pytest.raises(WorkersLostError, match=r"no workers for 2 s.*covey\.worker-timeout"),
    ):
        GroupSparseRegressor(SIZE, selection="holdout", random_state=0).fit(X, data.y)
