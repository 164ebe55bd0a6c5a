"""Designs on disk: how often they are read, how much memory they take, and what they say about damaged files."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import covey.designs
from covey import GroupSparseRegressor, limit_path
from covey.designs import DenseDesign, MemmapDesign, ParquetDesign, ZarrDesign, as_design

BUDGET = 4 * 8 * 40 * 16  # four blocks of 16 rows


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 40)) + 2
    return X, X[:, :4] @ np.array([1.0, -1.0, 1.0, 1.0]) + 0.3 * rng.standard_normal(200)


@pytest.fixture
def npy(data, tmp_path):
    np.save(tmp_path / "x.npy", data[0])
    return tmp_path / "x.npy"


@pytest.fixture
def parquet(data, tmp_path):
    pytest.importorskip("pyarrow")
    table = pd.DataFrame(data[0], columns=[f"x{j}" for j in range(40)])
    table["y"] = data[1]
    for i in range(4):
        table.iloc[50 * i : 50 * i + 50].to_parquet(tmp_path / f"part-{i}.parquet")
    return tmp_path


@pytest.fixture
def stored_zarr(data, tmp_path):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(tmp_path / "x.zarr", shape=(200, 40), chunks=(30, 20), dtype="f8")
    array[:] = data[0]
    return tmp_path / "x.zarr"


# ---------------------------------------------------------------------- passes


def test_how_often_a_file_is_read(data, npy):
    _, y = data
    design = MemmapDesign(npy, memory_budget=BUDGET)
    assert design.block_rows == 16
    limit_path(design, y, 4)
    # moments, Gram matrices
    assert design.n_passes == 2
    # keys of rows, moments, correlations for factors, Gram matrices, ranges of the columns of ridges, held-out rows
    for options, n_passes in (({"selection": "holdout", "random_state": 0}, 6), ({}, 5)):
        design = MemmapDesign(npy, memory_budget=2**24)
        GroupSparseRegressor(4, **options).fit(design, y)
        assert design.n_passes == n_passes


LIMITED = """
import resource, sys
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
import numpy as np
from covey import limit_path
from covey.designs import MemmapDesign
design = MemmapDesign(sys.argv[1], memory_budget=2**25)
size = design.shape[0] * design.shape[1] * design.dtype.itemsize
assert size > limit, (size, limit)
try:
    np.load(sys.argv[1])
except MemoryError:
    pass
else:
    raise AssertionError("the file went into memory")
path = limit_path(design, np.load(sys.argv[1] + ".y.npy"), 8, max_groups=2)
print(sorted(l for l, _ in path.entered), design.n_passes)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited on Linux only")
def test_a_file_larger_than_the_memory_of_the_process(tmp_path):
    rng = np.random.default_rng(0)
    block = rng.standard_normal((2**14, 512), dtype=np.float32)
    y = []
    with (tmp_path / "x.npy").open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (33 * 2**14, 512)}
        np.lib.format.write_array_header_2_0(file, header)
        for i in range(33):
            block[:, i] += 1  # no two blocks are equal
            block.tofile(file)
            y.append(block[:, 80:88].sum(axis=1) + block[:, 160:168].sum(axis=1) / 2)
    np.save(tmp_path / "x.npy.y.npy", np.concatenate(y))
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "x.npy"), str(1050 * 2**20)],
        capture_output=True, text=True, timeout=280, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "[10, 20] 2"


# ---------------------------------------------------------------------- memmaps


def test_views_of_a_memmap_find_their_rows_in_the_file(data, tmp_path):
    X, _ = data
    mapped = np.memmap(tmp_path / "x.raw", np.float64, "w+", 4096 + 64, X.shape)
    mapped[:] = X
    mapped.flush()
    small = as_design(mapped)
    assert isinstance(small, DenseDesign)
    assert np.shares_memory(small.X, mapped)
    for view, expected in [
        (mapped[30:170], X[30:170]),
        (mapped[:, 8:24], X[:, 8:24]),
        (mapped[::2], X[::2]),
        (mapped[::-1], X[::-1]),
        (mapped[:, ::-2], X[:, ::-2]),
        (mapped.T, X.T),
    ]:
        design = MemmapDesign(view, memory_budget=BUDGET)
        np.testing.assert_array_equal(np.concatenate(list(design.stream())), expected)
    private = np.memmap(tmp_path / "x.raw", np.float64, "c", 4096 + 64, X.shape)
    private[3] = 7
    assert (MemmapDesign(private).read(3, 4) == 7).all()


def test_raw_and_fortran_files(data, tmp_path):
    X, _ = data
    X.astype(np.float32).tofile(tmp_path / "x.raw")
    design = covey.designs.open(tmp_path / "x.raw", shape=(200, 40), file_dtype="f4")
    np.testing.assert_array_equal(design.read(0, 200), X.astype(np.float32))
    np.save(tmp_path / "f.npy", np.asfortranarray(X))
    np.testing.assert_array_equal(covey.designs.open(tmp_path / "f.npy").read(5, 9), X[5:9])


def test_a_truncated_file_is_named(data, npy, tmp_path):
    design = MemmapDesign(npy, memory_budget=BUDGET)
    mapped = np.load(npy, mmap_mode="r")
    os.truncate(npy, 200 * 40 * 4)
    for call in (
        lambda: limit_path(design, data[1], 4),
        lambda: MemmapDesign(npy),
        lambda: GroupSparseRegressor(4).fit(mapped, data[1]),
    ):
        with pytest.raises(ValueError, match=r"x\.npy is truncated: 200 rows of 40 float64 need 64,128"):
            call()
    npy.unlink()
    with pytest.raises(FileNotFoundError, match=r"x\.npy"):
        limit_path(design, data[1], 4)


@pytest.mark.parametrize("dtype", ["int64", "bool", ">f8", "f2"])
def test_other_types_are_converted(dtype, data, tmp_path):
    X = (np.random.default_rng(0).random((200, 40)) < 0.5).astype(dtype)
    np.save(tmp_path / "x.npy", X)
    for wanted, used in ((None, "f8"), ("float32", "f4")):
        design = MemmapDesign(tmp_path / "x.npy", dtype=wanted, memory_budget=BUDGET)
        stream = np.concatenate(list(design.stream()))
        assert (design.dtype, stream.dtype) == (used, used)
        np.testing.assert_array_equal(stream, X.astype(float))
    mapped, expected = (limit_path(Z, data[1], 4).coefs for Z in (np.load(tmp_path / "x.npy", mmap_mode="r"), X))
    np.testing.assert_array_equal(mapped.toarray(), expected.toarray())


def test_objects_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.full((3, 2), "a", dtype=object), allow_pickle=True)
    for dtype in (None, "float64"):
        with pytest.raises(ValueError, match=r"x\.npy holds object, which are not real numbers"):
            MemmapDesign(tmp_path / "x.npy", dtype=dtype)


# ---------------------------------------------------------------------- Parquet


def test_parquet_by_name(data, parquet):
    X, y = data
    design = ParquetDesign(parquet, drop=["y"], memory_budget=BUDGET)
    np.testing.assert_array_equal(design.column("y"), y)
    np.testing.assert_array_equal(np.concatenate(list(design.stream())), X)
    model = GroupSparseRegressor({"first": [f"x{j}" for j in range(4)], "rest": [f"x{j}" for j in range(4, 40)]})
    model.fit(design, y)
    assert model.selected_groups_[0] == "first"
    np.testing.assert_allclose(model.predict(pd.DataFrame(X, columns=model.feature_names_in_)), model.predict(design))
    with pytest.raises(ValueError, match="Column 0 of X is 'x39'"):
        model.predict(ParquetDesign(parquet, columns=[f"x{j}" for j in range(39, -1, -1)]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.iloc[:, :39], r"part-9\.parquet has no column 'x39'"),
        (lambda table: table.astype("f4"), r"part-9\.parquet: column 'x0' holds float, but double in part-0\.parquet"),
    ],
)
def test_ragged_parquet_files_are_named(data, parquet, change, message):
    names = [f"x{j}" for j in range(40)]
    change(pd.DataFrame(data[0], columns=names)).to_parquet(parquet / "part-9.parquet")
    with pytest.raises(ValueError, match=message):
        ParquetDesign(parquet, names)


def test_damaged_parquet_files_are_named(data, parquet):
    file, design = parquet / "part-1.parquet", ParquetDesign(parquet, drop=["y"])
    content = bytearray(file.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    file.write_bytes(content)
    for use in (lambda: list(design.stream()), lambda: design.column("x0")):
        with pytest.raises(ValueError, match=r"part-1\.parquet is damaged"):
            use()
    file.write_bytes(b"PAR1 and not much more")
    with pytest.raises(ValueError, match=r"part-1\.parquet cannot be read as Parquet"):
        ParquetDesign(parquet)
    file.unlink()
    with pytest.raises(FileNotFoundError, match=r"part-1\.parquet"):
        limit_path(design, data[1], 4)


def test_parquet_names_and_text(tmp_path):
    pytest.importorskip("pyarrow")
    table = pd.DataFrame({"a": [1, 2, 3], "b": [0.5, 1.0, 2.0], "kind": ["u", "v", "u"]})
    table.to_parquet(tmp_path / "t.parquet")
    design = ParquetDesign(tmp_path, drop="kind")
    assert (design.columns, ParquetDesign(tmp_path, "b").columns) == (["a", "b"], ["b"])
    assert (design.column("kind").tolist(), design.column("a").dtype) == (["u", "v", "u"], np.float64)
    with pytest.raises(ValueError, match="columns names 'a' more than once"):
        ParquetDesign(tmp_path, ["a", "b", "a"])


def test_parquet_types_and_missing_values(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "other.parquet"
    pd.DataFrame({"a": [1.0, 2.0, None], "b": [1, 2, 3], "c": ["u", "v", "w"]}).to_parquet(path)
    with pytest.raises(ValueError, match=r"other\.parquet: column 'c' holds .*string.*drop="):
        ParquetDesign(path)
    with pytest.raises(ValueError, match="missing or infinite values in column 'a'"):
        limit_path(ParquetDesign(path, ["a", "b"]), [1.0, 2.0, 3.0])


# ---------------------------------------------------------------------- Zarr


def test_a_missing_chunk_is_named(data, stored_zarr):
    design = ZarrDesign(stored_zarr, memory_budget=BUDGET)
    assert design.block_rows == 16  # less than a chunk fits
    assert ZarrDesign(stored_zarr, memory_budget=5 * BUDGET).block_rows == 60
    (stored_zarr / "c" / "4" / "1").unlink()
    for call in (lambda: limit_path(design, data[1], 4), lambda: covey.designs.open(stored_zarr)):
        with pytest.raises(ValueError, match=r"x\.zarr: 1 of 14 chunks are missing, the first one c/4/1"):
            call()
    filled = ZarrDesign(stored_zarr, missing_chunks="fill").read(120, 150)
    np.testing.assert_array_equal(filled[:, :20], data[0][120:150, :20])
    assert (filled[:, 20:] == 0).all()


def test_a_damaged_chunk_is_named(data, stored_zarr):
    (stored_zarr / "c" / "1" / "0").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match=r"x\.zarr: rows 16 to 32 cannot be read"):
        limit_path(ZarrDesign(stored_zarr, memory_budget=BUDGET), data[1], 4)


def test_zarr_integers_and_groups(tmp_path):
    zarr = pytest.importorskip("zarr")
    root = zarr.open_group(tmp_path / "root.zarr", mode="w")
    array = root.create_array("x", shape=(6, 4), chunks=(3, 4), dtype="i4")
    array[:] = 1
    assert as_design(array).take(np.array([1, 2])).tolist() == [[1.0, 1.0]] * 6
    with pytest.raises(ValueError, match="zarr Group; pass one of its arrays"):
        as_design(root)


# ---------------------------------------------------------------------- open, and kinds that are none


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("nothing.npy", None, FileNotFoundError, r"nothing\.npy"),
        ("table.csv", b"a,b\n1,2\n", ValueError, r"table\.csv cannot be opened as a design.*\.npy file.*Zarr"),
        ("x.npy", b"not numpy", ValueError, r"x\.npy is not an \.npy file"),
    ],
)
def test_open_says_what_it_opens(name, content, error, message, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(error, match=message):
        covey.designs.open(tmp_path / name)


def test_an_unsupported_kind_is_told_which_kinds_work():
    class Table:
        shape = (3, 2)

    for X in (Table(), {"a": [1.0], "b": [2.0]}, "x.csv", None):
        with pytest.raises(ValueError, match=r"numpy.*scipy sparse.*memmap.*Parquet.*Zarr.*Dask.*torch"):
            as_design(X)
