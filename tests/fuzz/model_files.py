"""Model files that were damaged or forged: `covey.load` refuses them, or the model can be used."""

from __future__ import annotations

import io
import json
import random
import tempfile
import traceback
import warnings
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import covey
from covey.persistence import TRUSTED, ModelFileError, dump_bytes
from covey.report import FitReport, render
from covey.search.chosen import how_chosen, in_words, judged
from covey.settings import FitSettings, PredictSettings
from covey.workflow.fit import fit_table
from covey.workflow.predict import predict_table

CONSTANTS = [
    "0", "-1", "1", "3", "99999999999", "1e400", "NaN", "null", "true", '""', '"x"', "[]", "{}", '"[]"', '"[1]"',
]  # fmt: skip
NUMBERS = [0, -1, 1, 7, 2**31, 2**62, -(2**62), np.nan, np.inf, 1e300, -1e-300]


@cache
def bases() -> list[tuple[bytes, Any, Any]]:
    """The content of good files, each with rows to predict and their response."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((60, 12)), columns=[f"c{j}" for j in range(12)])
    y = (X.iloc[:, :3].sum(axis=1) + 0.5 * rng.standard_normal(60)).to_numpy()
    plain = X.to_numpy()
    lists = [[0, 1, 2], [2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    regress, classify = covey.GroupSparseRegressor, covey.GroupSparseClassifier
    several = np.column_stack([y, y[::-1]])
    fits = [
        (regress(groups=3), X, y),
        (regress(groups=3, rule="predict"), plain, y),
        (regress(groups=covey.Groups.from_lists(lists, overlap=True), selection="ebic"), X, y),
        (regress(groups=3), plain, several),
        (regress(groups=3, loss="poisson", always=[0]), plain, np.floor(np.exp(y / 3))),
        (classify(groups=3), X, np.where(y > 0, "yes", "no")),
        (covey.GroupSparseCox(groups=3), X, (np.exp(-y), rng.random(60) < 0.7)),
        (classify(groups=3, selection=3), plain, np.digitize(y, [-1, 1])),
        (classify(groups=3, selection="ebic", loss="ordinal"), plain, np.digitize(y, [-1, 1])),
        (regress(selection="ebic", constraints={"c0": ">=0"}), X, y),
    ]
    positive = np.exp(y / 3)
    fits += [
        (regress(groups=3, selection="ebic", loss=loss), plain, target)
        for loss, target in {
            "huber": y, "quantile": y, "gamma": positive, "tweedie": np.floor(positive),
            "negative-binomial": np.floor(positive),
        }.items()
    ]  # fmt: skip
    words = [" ".join(rng.choice(["red", "green", "blue", "grey"], 4)) for _ in range(60)]
    records = [{"size": float(size), "kind": str(rng.choice(["u", "v"]))} for size in plain[:, 0]]
    levels = rng.choice(["a", "b", "c"], (60, 2)).astype(object)
    encoders = [(CountVectorizer(), words), (TfidfVectorizer(), words), (DictVectorizer(), records)]
    encoders += [(OneHotEncoder(handle_unknown="ignore"), levels), (OneHotEncoder(drop="first"), levels)]
    fits += [(make_pipeline(encoder, regress(selection="ebic")), rows, y) for encoder, rows in encoders]
    contents = [(dump_bytes(model.fit(rows, target)), rows, target) for model, rows, target in fits]
    with tempfile.TemporaryDirectory() as folder:
        table = X.assign(y=y, kind=rng.choice(["u", "v", "w"], 60))
        table.loc[3, "c1"] = np.nan
        table.to_csv(f"{folder}/t.csv", index=False)
        settings = FitSettings((f"{folder}/t.csv",), ("y",), curve=("c2:5",), pairs=("c1:kind",))
        contents.append((dump_bytes(fit_table(settings).estimator), table, table["y"]))
    return contents


# ---------------------------------------------------------------------- ways to damage a file


def members_of(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def flip_bits(content: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 8])):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def cut(content: bytes, rng: random.Random) -> bytes:
    a, b = sorted(rng.randrange(len(content)) for _ in range(2))
    return rng.choice([content[:a], content[a:], content[:a] + content[b:], content + content[a:b]])


def swap_members(content: bytes, rng: random.Random) -> bytes:
    members = members_of(content)
    ending = rng.choice([".npy", ".npy", ".npz", ""])
    a, b = (rng.choice([name for name in members if name.endswith(ending)] or [*members]) for _ in range(2))
    members[a], members[b] = members[b], members[a]
    return zipped(members)


def change_array(content: bytes, rng: random.Random) -> bytes:
    members = members_of(content)
    name = rng.choice([name for name in members if name.endswith(".npy")])
    stream = io.BytesIO()
    np.save(stream, changed(np.load(io.BytesIO(members[name])), rng))
    members[name] = stream.getvalue()
    return zipped(members)


def changed(array: Any, rng: random.Random) -> Any:
    way = rng.randrange(8)
    if way == 0:
        return array[: rng.randrange(len(array) + 1)] if array.ndim else array.reshape(1)
    if way == 1:
        return np.concatenate([np.atleast_1d(array)] * 2)
    if way == 2:
        return array[None] if rng.random() < 0.5 else array[..., None]
    if way == 3:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kinds = ["f4", "i8", "i1", "u8", "c16", "U4", "?", ">f8", "f2", "S3"]
            return array.astype(rng.choice(kinds)) if array.dtype.kind in "fiub" else np.zeros(array.shape)
    if way == 4 and array.dtype.kind in "fi" and array.size:
        spoilt = array.astype(float)
        spoilt.flat[rng.randrange(array.size)] = rng.choice(NUMBERS)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return spoilt if rng.random() < 0.5 else spoilt.astype(array.dtype)
    if way == 5:
        return array[::-1].copy()
    if way == 6:
        return np.zeros_like(array)
    return np.empty(0)


def lie_in_header(content: bytes, rng: random.Random) -> bytes:
    members = members_of(content)
    name = rng.choice([name for name in members if name.endswith(".npy")])
    shape = rng.choice([(10**12,), (0,), (2**31, 2**31), (-1,), (1,), (10**9,)])
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": shape})
    members[name] = stream.getvalue() + members[name][128:]
    return zipped(members)


def change_sparse(content: bytes, rng: random.Random) -> bytes:
    members = members_of(content)
    names = [name for name in members if name.endswith(".npz")]
    if not names:
        return swap_members(content, rng)
    name = rng.choice(names)
    parts = dict(np.load(io.BytesIO(members[name])))
    part = rng.choice(["indices", "indices", "indptr", "indptr", "data", "shape", "format"])
    if part == "shape":
        parts[part] = np.array([rng.choice([0, 1, 5, 10**9, int(n)]) for n in parts[part]])
    elif part == "format":
        parts[part] = np.array(rng.choice([b"csc", b"coo", b"dia", b"bsr", b"xyz"]))
    elif rng.random() < 0.6 and parts[part].size:
        parts[part].flat[rng.randrange(parts[part].size)] = rng.choice([-1, -7, 1, 50, 10**6, 2**30])
    else:
        parts[part] = changed(parts[part], rng)
    stream = io.BytesIO()
    np.savez(stream, **parts)
    members[name] = stream.getvalue()
    return zipped(members)


def change_schema(content: bytes, rng: random.Random) -> bytes:
    members = members_of(content)
    schema = json.loads(members["schema.json"])
    for _ in range(rng.choice([1, 1, 2])):
        _change_node(schema, rng)
    members["schema.json"] = json.dumps(schema).encode()
    return zipped(members)


def _change_node(schema: Any, rng: random.Random) -> None:
    places: list[tuple[Any, Any]] = []
    left = [schema]
    while left:
        item = left.pop()
        keys = item if isinstance(item, dict) else range(len(item))
        for key in keys:
            if isinstance(item[key], dict | list):
                left.append(item[key])
            places.append((item, key))
    nodes = [(item, key) for item, key in places if isinstance(item[key], dict) and "__class__" in item[key]]
    text = [(item, key) for item, key in nodes if item[key].get("__loader__") == "JsonNode"]
    if not text:  # a change before this one has taken everything away
        return
    (item, key), (other, other_key) = rng.choice(nodes), rng.choice(nodes)
    node, way = item[key], rng.randrange(7)
    if way == 0:
        item[key], other[other_key] = other[other_key], node
    elif way == 1:
        item[key] = json.loads(json.dumps(other[other_key])) | {"__id__": rng.randrange(10**9)}
    elif way == 2 and isinstance(item, dict):
        del item[key]
    elif way == 3:
        item[key] = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "is_json": True,
                     "content": rng.choice(CONSTANTS)}  # fmt: skip
    elif way == 4:
        node["__module__"], _, node["__class__"] = rng.choice(TRUSTED).rpartition(".")
    elif way == 5:
        plain = [(item, key) for item, key in places if isinstance(item[key], str | int | float | bool | type(None))]
        item, key = rng.choice(plain)
        item[key] = rng.choice([*CONSTANTS, *map(json.dumps, ["a", 1]), 0, -1, None, True, 10**30])
    else:
        item, key = rng.choice(text)
        item[key]["content"] = rng.choice(CONSTANTS)


WAYS = [flip_bits, cut, swap_members, change_array, change_array, lie_in_header, change_sparse, change_sparse]
WAYS += [change_schema] * 5


# ---------------------------------------------------------------------- what must come of it


def verdict(seed: int) -> str:
    """Empty when all is well; otherwise what is wrong with the file of this seed."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        content, X, y = rng.choice(bases())
        way = rng.choice(WAYS)
        forged = way(content, rng)
        file = Path(folder) / "model.skops"
        file.write_bytes(forged)
        try:
            model = covey.load(file)
        except ModelFileError as refused:
            return "" if str(refused).strip() else f"{way.__name__}: refused without a word"
        except Exception as error:
            return f"{way.__name__}: load: {described(error)}"
        try:
            use(model, file, X, y, report=rng.random() < 0.1)
        except Exception as error:
            if not isinstance(error, ValueError | TypeError) or not documented(error):
                return f"{way.__name__}: use: {described(error)}"
    return ""


def use(model: Any, file: Path, X: Any, y: Any, *, report: bool = True) -> None:
    """Whatever a user may do with a model."""
    model.predict(X)
    model.score(X, y)
    if hasattr(model, "steps"):
        return
    if isinstance(X, pd.DataFrame) and "y" in X:
        table = file.with_name("rows.csv")
        X.to_csv(table, index=False)
        predict_table(PredictSettings(file, (str(table),), target=("y",)))
    if isinstance(model, covey.GroupSparseCox):
        model.predict_survival_function(X)
        model.baseline()
    if hasattr(model, "classes_"):
        model.predict_proba(X)
        model.predict_log_proba(X)
    if model.terms is None:  # a path has the columns that terms are made of
        model.path_.predict(X)
    model.path_.group_norms
    model.path_.at(model.path_.times[-1])
    model.group_table()
    str(model.summary())
    judged(model)
    in_words(model)
    how_chosen(model)
    repr(model)
    clone(model)
    dump_bytes(model)
    if report:  # takes longer than everything else
        render(FitReport.from_model(model, X, y))


def documented(error: BaseException) -> bool:
    """Whether covey or scikit-learn's checks said it."""
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    return "/covey/" in last or last.endswith(
        ("validation.py", "_param_validation.py", "base.py", "_split.py", "_encoders.py")
    )


def described(error: BaseException) -> str:
    frames = traceback.format_list(traceback.extract_tb(error.__traceback__)[-3:])
    return f"{type(error).__name__}: {error}\n{''.join(frames)}"
