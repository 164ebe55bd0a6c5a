"""The MNIST digits, read from their IDX files."""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from covey.datasets.storage import ENVIRONMENT, DataNotFoundError, find_file
from covey.paper.datasets.digits import DigitImages

FOLDER = "mnist"
MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist/"
# MD5 of the decompressed files, so that recompressed copies are accepted
CHECKSUMS = {
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}
HOW = (
    f"The data is not part of covey. Put the four MNIST files ({', '.join(CHECKSUMS)}; gzipped or not) into a folder "
    f"{FOLDER!r} and set the environment variable {ENVIRONMENT} to its parent folder; or, with internet access, "
    f"`pip install pooch` to have them downloaded from {MIRROR}"
)


def load_mnist(folder: str | os.PathLike[str] | None = None, *, download: bool = True) -> DigitImages:
    """Read the 60 000 training and 10 000 test images of handwritten digits.

    The files are looked up in `folder`, or else in ``mnist/`` in the folder named by the environment variable
    `COVEY_DATA`; failing that, they are downloaded once if pooch is installed and there is internet access.

    Raises DataNotFoundError, with a message that says what to do, if a file is missing and cannot (or, without
    `download`, may not) be downloaded, and ValueError if a file is damaged or is not MNIST's.
    """
    train_images, train_labels, test_images, test_labels = (
        read_idx(_find(name, folder, download), md5=checksum) for name, checksum in CHECKSUMS.items()
    )
    return DigitImages(train_images, train_labels.astype(np.int64), test_images, test_labels.astype(np.int64))


def read_idx(file: str | os.PathLike[str], *, md5: str | None = None) -> NDArray[np.uint8]:
    """Read one IDX file of unsigned bytes, gzipped or not; `md5` is the checksum of the decompressed file."""
    content = Path(file).read_bytes()
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (EOFError, gzip.BadGzipFile, zlib.error) as reason:
            raise ValueError(f"{file} cannot be decompressed ({reason}): it is damaged. Download it again.") from None
    if md5 is not None:
        found = hashlib.md5(content, usedforsecurity=False).hexdigest()
        if found != md5:
            raise ValueError(
                f"{file} is not the expected file: MD5 {found} after decompression, expected {md5}. "
                "It is damaged or another data set; download it again."
            )
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != 8:
        raise ValueError(
            f"{file} is not an IDX file of unsigned bytes: it begins with {content[:4].hex() or 'nothing'}."
        )
    n_axes = content[3]
    start = 4 + 4 * n_axes
    shape = tuple(int.from_bytes(content[4 + 4 * i : 8 + 4 * i], "big") for i in range(n_axes))
    if len(content) != start + math.prod(shape):
        raise ValueError(
            f"{file} is damaged: its header declares shape {shape}, {start + math.prod(shape)} bytes in total, "
            f"but there are {len(content)}. Download it again."
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def _find(name: str, folder: str | os.PathLike[str] | None, download: bool) -> Path:
    absent: DataNotFoundError | None = None
    for ending in (".gz", ""):
        path = None if folder is None else Path(folder).expanduser() / (name + ending)
        try:
            return find_file(f"{FOLDER}/{name}{ending}", path=path, how=HOW)
        except DataNotFoundError as error:
            absent = absent or error
    assert absent is not None
    fetched = _download(name + ".gz") if folder is None and download else None
    if fetched is None:
        raise absent
    return fetched


def _download(name: str) -> Path | None:
    """The file from the mirror, cached by pooch; None without pooch or internet access."""
    try:
        import pooch
    except ModuleNotFoundError:
        return None
    try:
        # `read_idx` verifies the checksum of the decompressed file
        return Path(pooch.retrieve(MIRROR + name, known_hash=None, fname=name, path=pooch.os_cache("covey")))
    except OSError:  # requests' errors are OSErrors
        return None
