"""IDX files: good ones, damaged ones, absent ones; and the drawn digits."""

import gzip
import hashlib
import struct

import numpy as np
import pytest

from covey.datasets import DataNotFoundError
from covey.paper.datasets import load_mnist, make_digits, mnist


def idx(array):
    return b"\0\0\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A data set of five training and two test images in place of MNIST."""
    data = make_digits(5, 2)
    arrays = [data.train_images, data.train_labels, data.test_images, data.test_labels]
    sums = {}
    (tmp_path / "mnist").mkdir()
    for i, (name, array) in enumerate(zip(mnist.CHECKSUMS, arrays, strict=True)):
        content = idx(array.astype(np.uint8))
        sums[name] = hashlib.md5(content, usedforsecurity=False).hexdigest()
        packed = i % 2 == 0  # half of them gzipped
        (tmp_path / "mnist" / f"{name}{'.gz' if packed else ''}").write_bytes(
            gzip.compress(content) if packed else content
        )
    monkeypatch.setattr(mnist, "CHECKSUMS", sums)
    monkeypatch.setenv("COVEY_DATA", str(tmp_path))
    monkeypatch.setattr(mnist, "_download", lambda name: None)
    return tmp_path / "mnist", data


def test_files_are_read_gzipped_or_not(small, monkeypatch):
    folder, data = small
    read = load_mnist()
    np.testing.assert_array_equal(read.train_images, data.train_images)
    np.testing.assert_array_equal(read.test_labels, data.test_labels)
    assert (read.train_images.dtype, read.train_labels.dtype) == (np.uint8, np.int64)
    monkeypatch.delenv("COVEY_DATA")
    np.testing.assert_array_equal(load_mnist(folder).test_images, data.test_images)
    head = read.head(3, 1)
    assert (len(head.train_images), len(head.train_labels), len(head.test_images)) == (3, 3, 1)


def test_another_file_is_refused(small):
    folder, data = small
    (folder / "train-labels-idx1-ubyte").write_bytes(idx(data.train_labels.astype(np.uint8)[::-1].copy()))
    with pytest.raises(ValueError, match="is not the expected file: MD5"):
        load_mnist()


@pytest.mark.parametrize("cut", [3, 30, 150])
def test_a_gzip_file_cut_short_is_refused(small, cut):
    folder, _ = small
    file = folder / "train-images-idx3-ubyte.gz"
    file.write_bytes(file.read_bytes()[:-cut])
    with pytest.raises(ValueError, match="damaged"):
        load_mnist()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an IDX file of unsigned bytes: it begins with nothing"),
        (b"\x89PNG....", "not an IDX file"),
        (b"\0\0\x0d\x01\0\0\0\x01\0\0\0\0", "not an IDX file of unsigned bytes"),
        (idx(np.zeros((2, 3), np.uint8))[:-1], "declares shape"),
        (idx(np.zeros((2, 3), np.uint8)) + b"x", "declares shape"),
        (b"\0\0\x08\x03\0\0", "damaged"),
    ],
)
def test_damaged_idx_files(tmp_path, content, message):
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        mnist.read_idx(file)


def test_absent_files_and_what_to_do(small, monkeypatch):
    folder, _ = small
    (folder / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(DataNotFoundError, match=r"t10k-labels-idx1-ubyte.gz. .*COVEY_DATA.*pip install pooch"):
        load_mnist()
    monkeypatch.delenv("COVEY_DATA")
    with pytest.raises(DataNotFoundError, match="which is not set"):
        load_mnist()


def test_what_is_absent_is_downloaded_and_checked(small, monkeypatch):
    folder, _ = small
    file = folder / "t10k-labels-idx1-ubyte"
    content = file.read_bytes()
    file.rename(folder / "elsewhere")
    asked = []
    monkeypatch.setattr(mnist, "_download", lambda name: asked.append(name) or folder / "elsewhere")
    assert len(load_mnist().test_labels) == 2
    assert asked == ["t10k-labels-idx1-ubyte.gz"]
    (folder / "elsewhere").write_bytes(content[:-1] + b"\7")
    with pytest.raises(ValueError, match="MD5"):
        load_mnist()
    with pytest.raises(DataNotFoundError):
        load_mnist(download=False)


def test_drawn_digits_are_the_same_every_time_and_differ_by_class():
    one, two, other = make_digits(40, 20), make_digits(40, 20), make_digits(40, 20, seed=1)
    np.testing.assert_array_equal(one.train_images, two.train_images)
    assert (one.train_images != other.train_images).any()
    assert one.train_images.dtype == np.uint8
    assert one.train_images.max() == 255
    ink = one.train_images[:20].reshape(20, -1).mean(1)
    eights, ones = ink[8::10], ink[1::10]
    assert eights.min() > 2 * ones.max()
