"""Inspect the declared sizes and types of a model file before anything in it is created."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Iterator

import numpy as np

# The most bytes of a decompressed file; a model with a million columns has a tenth of that.
LARGEST = 2**30

# The most bytes of the schema, which takes ten times as much memory once parsed.
LARGEST_SCHEMA = 2**26

# Packages of scikit-learn whose models are numpy arrays used only by numpy. Trees, neighbours, clusters and support
# vector machines pass theirs to compiled code that does not check indices, so a file could crash the process.
CHECKED = (
    "_loss", "base", "compose", "covariance", "cross_decomposition", "decomposition", "feature_extraction",
    "feature_selection", "impute", "kernel_approximation", "linear_model", "model_selection", "multioutput", "pipeline",
    "preprocessing", "random_projection", "utils",
)  # fmt: skip


class TooLargeError(ValueError):
    """A file that would take more memory than allowed."""


def inspect(content: bytes, *, largest: int = LARGEST) -> set[str]:
    """The names of the types that a file requests.

    Raises
    ------
    TooLargeError
    ValueError
        If an array does not have its declared size.
    zipfile.BadZipFile
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sizes = _sizes(archive, largest)
        if sizes.get("schema.json", 0) > min(LARGEST_SCHEMA, largest):
            raise TooLargeError(f"its schema takes {sizes['schema.json']:,} bytes")
        types, used = set(), 0
        for node in _nodes(json.loads(archive.read("schema.json"))):
            if "__class__" in node:
                types.add(f"{node.get('__module__')}.{node['__class__']}")
            if "file" in node:
                # several objects may refer to one member, and each would get a copy
                used += _check_array(archive, str(node["file"]), largest)
                if used > largest:
                    raise TooLargeError(f"its arrays take more than {largest:,} bytes")
    return types


def foreign_types(types: set[str]) -> list[str]:
    """The scikit-learn types among these whose arrays cannot be checked."""
    return sorted(name for name in types if name.startswith("sklearn.") and name.split(".")[1] not in CHECKED)


def _sizes(archive: zipfile.ZipFile, largest: int) -> dict[str, int]:
    """The declared decompressed sizes of all members, which also limit how much of them is read."""
    members = archive.infolist()
    sizes = {member.filename: member.file_size for member in members}
    if len(sizes) < len(members):
        raise ValueError("two of its members have the same name")
    if sum(sizes.values()) > largest:
        raise TooLargeError(
            f"it takes {sum(sizes.values()):,} bytes when decompressed, but at most {largest:,} are allowed"
        )
    return sizes


def _nodes(schema: object) -> Iterator[dict[str, object]]:
    """Every dictionary in the schema."""
    left = [schema]
    while left:
        item = left.pop()
        if isinstance(item, dict):
            yield item
            left += item.values()
        elif isinstance(item, list):
            left += item


def _check_array(archive: zipfile.ZipFile, name: str, largest: int) -> int:
    """The size of a member in bytes; an array whose header declares another size is refused."""
    size = archive.getinfo(name).file_size
    if name.endswith(".npz"):
        with zipfile.ZipFile(io.BytesIO(archive.read(name))) as inner:
            _sizes(inner, largest)
            return sum(_check_array(inner, member, largest) for member in inner.namelist())
    if name.endswith(".npy"):
        with archive.open(name) as stream:
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(stream)
            if dtype.hasobject or min(shape, default=0) < 0:
                raise ValueError("it contains an array of a kind that covey never writes")
            if math.prod(shape) * dtype.itemsize != size - stream.tell():
                raise ValueError("it contains an array that does not have its declared size")
    return size
