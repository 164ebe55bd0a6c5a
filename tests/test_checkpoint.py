"""Pieces of work are found again by every number they came from; what is not whole, or of other work, is made again."""

import json
import os

import numpy as np
import pytest
import scipy.sparse as sp

from covey import Groups
from covey.checkpoint import Checkpoint, fingerprint, kept, read_piece, write_piece
from covey.designs import as_design
from covey.designs.repeated import RepeatedColumns
from covey.selection.network_time import _is_run
from storage_kinds import KINDS

RNG = np.random.default_rng(0)
X = np.round(RNG.standard_normal((60, 12)), 1)  # rows with entries in common


@pytest.mark.parametrize("kind", [*KINDS])
def test_every_kind_of_storage_has_a_digest_of_all_its_numbers(kind, tmp_path):
    def digest(rows, name):
        (tmp_path / name).mkdir()
        return as_design(KINDS[kind](rows, tmp_path / name)).digest()

    first = digest(X, "first")
    assert digest(X.copy(), "again") == first
    swapped = X.copy()
    swapped[[3, 40]] = X[[40, 3]]
    assert digest(swapped, "swapped") != first
    nearly = X.copy()
    nearly[59, 11] = np.nextafter(X[59, 11], 9)
    assert digest(nearly, "nearly") != first
    sides = X.copy()
    sides[:, [0, 1]] = X[:, [1, 0]]
    assert digest(sides, "sides") != first


def test_no_swap_of_rows_goes_unnoticed():
    # random signs told rows of four classes apart, and nothing else
    designs = [X, sp.csr_array(X)]
    for stored in designs:
        seen = {as_design(stored).digest()}
        pairs = RNG.permutation(60)[:20].reshape(10, 2)
        for i, j in pairs:
            order = np.arange(60)
            order[[i, j]] = j, i
            seen.add(as_design(stored[order]).digest())
        assert len(seen) == 11


def test_the_digest_does_not_depend_on_the_order_in_memory():
    digests = {as_design(own).digest() for own in (X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2])}
    assert len(digests) == 1
    assert as_design(X.astype(np.float32)).digest() not in digests
    assert as_design(X.reshape(30, 24)).digest() not in digests


def test_repeated_columns_have_a_digest_of_their_own():
    one, other = (RepeatedColumns(as_design(X), np.array(index)).digest() for index in ([0, 1, 1], [0, 1, 2]))
    assert one != other


def damage(file, way):
    content = file.read_bytes()
    piece = json.loads(content)
    if way == "a folder":
        file.unlink()
        file.mkdir()
        return
    if way == "a link":
        file.unlink()
        file.symlink_to(os.devnull)
        return
    other = {
        "cut": content[: len(content) // 2],
        "empty": b"",
        "no text": b"\xff\xfe\x00",
        "a number": b"3",
        "deep": b"[" * 100_000,
        "another value": json.dumps(piece | {"value": "[0]"}).encode(),
        "another title": json.dumps(piece | {"title": "x"}).encode(),
        "no checksum": json.dumps({k: v for k, v in piece.items() if k != "sha256"}).encode(),
        "no text as value": json.dumps(piece | {"value": 3}).encode(),
    }
    file.write_bytes(other[way])


@pytest.mark.parametrize(
    "way",
    ["cut", "empty", "no text", "a number", "deep", "another value", "another title", "no checksum", "a link",
     "no text as value"],
)  # fmt: skip
def test_a_piece_that_is_not_whole_is_made_again(tmp_path, way):
    store = Checkpoint.of(tmp_path, "key")
    assert kept(store, "one", lambda: [1, 2]) == [1, 2]
    (file,) = tmp_path.rglob("*.json")
    damage(file, way)
    assert kept(store, "one", lambda: [3]) == [3]
    assert kept(store, "one", lambda: [4]) == [3]
    assert not file.is_symlink()


def test_a_piece_that_cannot_be_put_back_is_named(tmp_path):
    store = Checkpoint.of(tmp_path, "key")
    kept(store, "one", lambda: [1])
    (file,) = tmp_path.rglob("*.json")
    damage(file, "a folder")
    with pytest.raises(OSError, match=r"checkpoint .* cannot be written to"):
        kept(store, "one", lambda: [3])


@pytest.mark.parametrize(
    "value", [None, [], 3, [[1], [2]], [[1, 2], [1.0], 3], [["a"], [1.0], 3], [[2, 1], [1.0, 1.0], 3], [[], [], 1.0]]
)
def test_what_is_no_run_of_a_fold(value):
    assert not _is_run(value)
    assert not _is_run([value, [[1], [2.0], 3.0]])


def test_runs_of_folds():
    assert _is_run([[1, 2], [2.0, 1.0], np.inf])
    assert _is_run([[[1], [2.0], 3.0]] * 3)


def test_a_piece_knows_its_title(tmp_path):
    write_piece(tmp_path / "a.json", "a", [1])
    os.rename(tmp_path / "a.json", tmp_path / "b.json")
    assert read_piece(tmp_path / "b.json", "b") is None
    assert read_piece(tmp_path / "b.json", "a") == [1]


def test_a_response_is_part_of_the_fingerprint():
    y = np.arange(60.0)
    keys = {Checkpoint.of(os.curdir, fingerprint(as_design(X), own), Groups.from_size(3, 12)).key for own in (y, -y)}
    assert len(keys) == 2


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused_before_the_work(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ValueError, match="checkpoint must be a folder that can be written to"):
        Checkpoint.of(tmp_path, "key")
