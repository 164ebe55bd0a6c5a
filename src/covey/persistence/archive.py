"""What a model's file announces: how large it is, and what it asks for, before anything in it is made."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

__all__ = ["LARGEST", "TooLargeError", "foreign_types", "inspect"]

# Bytes that a file may hold once it is inflated; a model of a million columns has a tenth of that.
LARGEST = 2**30

# Bytes of the description of all objects, which takes ten times as much memory once it is parsed.
LARGEST_SCHEMA = 2**26

# Packages of scikit-learn whose models are numpy arrays used by numpy. Trees, neighbours, clusters and support vector
# machines hand theirs to compiled code that trusts every index in them, and a file could crash the process.
CHECKED = (
    "_loss", "base", "compose", "covariance", "cross_decomposition", "decomposition", "feature_extraction",
    "feature_selection", "impute", "kernel_approximation", "linear_model", "model_selection", "multioutput", "pipeline",
    "preprocessing", "random_projection", "utils",
)  # fmt: skip


class TooLargeError(ValueError):
    """A file that would take more memory than allowed."""


def inspect(content: bytes, *, largest: int = LARGEST) -> set[str]:
    """The names of the types that a file asks for.

    Raises
    ------
    TooLargeError
    ValueError
        Where an array is not of the size that it announces.
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
                # one member may be asked for by many objects, each of which would have a copy
                used += _check_array(archive, str(node["file"]), largest)
                if used > largest:
                    raise TooLargeError(f"its arrays take more than {largest:,} bytes")
    return types


def foreign_types(types: set[str]) -> list[str]:
    """The types of scikit-learn among these whose arrays cannot be checked."""
    own = (name for name in types if name.startswith("sklearn."))
    return sorted(name for name in own if name.split(".")[1] not in CHECKED)


def _sizes(archive: zipfile.ZipFile, largest: int) -> dict[str, int]:
    """The inflated sizes of all members: what they announce, which is also the most that is ever read of them."""
    members = archive.infolist()
    sizes = {member.filename: member.file_size for member in members}
    if len(sizes) < len(members):
        raise ValueError("two of its members have the same name")
    if sum(sizes.values()) > largest:
        raise TooLargeError(
            f"it takes {sum(sizes.values()):,} bytes once it is inflated, and at most {largest:,} are allowed"
        )
    return sizes


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
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
    """The bytes of a member; of an array, refuse a header that announces another size than there is."""
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
                raise ValueError("an array in it is of a kind that is never written")
            if math.prod(shape) * dtype.itemsize != size - stream.tell():
                raise ValueError("an array in it is not of the size that it announces")
    return size
