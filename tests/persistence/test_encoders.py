"""Encoders in a pipeline from a file make no index outside their matrix."""

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder

import covey
from covey.persistence import ModelFileError, import_skops

WORDS = ["red", "green", "blue", "grey", "pink"]


def texts(rng):
    return [" ".join(rng.choice(WORDS, 3)) for _ in range(60)]


def records(rng):
    return [dict.fromkeys(rng.choice(WORDS, 2), 1.0) for _ in range(60)]


def table(rng):
    return pd.DataFrame({"a": rng.choice(WORDS, 60), "b": rng.choice([1.0, 2.0, 3.0], 60)})


def numbers(rng):
    return rng.standard_normal((60, 2))


ENCODERS = {
    "count": (CountVectorizer(), texts),
    "tf-idf": (TfidfVectorizer(), texts),
    "records": (DictVectorizer(), records),
    "one-hot": (OneHotEncoder(), table),
    "dense one-hot": (OneHotEncoder(sparse_output=False), table),
    "dropped": (OneHotEncoder(drop="first"), table),
    "dropped if binary": (OneHotEncoder(drop="if_binary"), table),
    "infrequent": (OneHotEncoder(min_frequency=14, handle_unknown="infrequent_if_exist", drop="first"), table),
    "numbers": (OneHotEncoder(), lambda rng: rng.integers(3, size=(60, 2))),
    "frame": (OneHotEncoder(sparse_output=False).set_output(transform="pandas"), lambda rng: pd.DataFrame(table(rng))),
    "bins": (KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf"), numbers),
}


def fitted(name):
    encoder, draw = ENCODERS[name]
    X = draw(np.random.default_rng(0))
    y = np.random.default_rng(1).standard_normal(60)
    return make_pipeline(copy.deepcopy(encoder), covey.GroupSparseRegressor(selection="ebic")).fit(X, y), X


@pytest.mark.parametrize("name", ENCODERS)
def test_pipelines_come_back(name, tmp_path):
    pipeline, X = fitted(name)
    covey.save(pipeline, tmp_path / "model.skops")
    np.testing.assert_array_equal(covey.load(tmp_path / "model.skops").predict(X), pipeline.predict(X))


def forge(encoder, change):
    """Carry out a statement on an encoder, which it calls e."""
    exec(change, {"e": encoder, "np": np, "covey": covey})


FIRST_WORD = "e.vocabulary_[next(iter(e.vocabulary_))] = "
MORE = "e.categories_[0] = np.append(e.categories_[0], ['more'] * 3).astype(object)"
UNORDERED = "e.categories_[1] = e.categories_[1][::-1].copy()"
FORGED = [
    *((name, FIRST_WORD + value) for name in ("count", "tf-idf", "records") for value in ("10**6", "-1", "0.5", "1")),
    ("count", "e.vocabulary_['more'] = len(e.vocabulary_)"),
    ("records", "e.vocabulary_['more'] = len(e.vocabulary_); e.feature_names_.append('more')"),
    ("count", "e.preprocessor = 3"),
    ("count", "vars(e).clear()"),
    ("tf-idf", "e._tfidf.idf_ = np.empty(0)"),
    *((name, change) for name in ("one-hot", "dense one-hot") for change in (MORE, UNORDERED)),
    ("one-hot", "e._n_features_outs[0] = 1"),
    ("one-hot", f"{MORE}; e._n_features_outs[0] += 3"),
    ("one-hot", "e._infrequent_enabled = True"),
    ("one-hot", "e.dtype = covey.Groups"),  # a class that a file may name
    ("one-hot", "e.categories_[1] = e.categories_[1][:0]"),
    ("infrequent", "next(one for one in e._default_to_infrequent_mappings if one is not None)[0] = 10**6"),
    ("infrequent", "next(one for one in e._infrequent_indices if one is not None)[0] = 10**6"),
    ("dropped", "e._drop_idx_after_grouping = np.array([10**6, 0], dtype=object)"),
]


@pytest.mark.parametrize(("name", "change"), FORGED)
def test_forged_encoders_are_refused(name, change, tmp_path):
    pipeline, _ = fitted(name)
    forge(pipeline[0], change)
    (tmp_path / "model.skops").write_bytes(import_skops().dumps(pipeline))
    with pytest.raises(ModelFileError, match="damaged"):
        covey.load(tmp_path / "model.skops")
    with pytest.raises(ModelFileError, match=r"covey\.load would refuse it"):
        covey.save(pipeline, tmp_path / "again.skops")


def test_a_step_that_is_no_transformer_is_refused(tmp_path):
    pipeline, _ = fitted("count")
    pipeline.steps[0] = ("countvectorizer", "x")
    (tmp_path / "model.skops").write_bytes(import_skops().dumps(pipeline))
    with pytest.raises(ModelFileError, match="damaged"):
        covey.load(tmp_path / "model.skops")
