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


def set_word(value):
    def change(encoder):
        encoder.vocabulary_[next(iter(encoder.vocabulary_))] = value

    return change


def more_words(encoder):
    encoder.vocabulary_["more"] = len(encoder.vocabulary_)
    if hasattr(encoder, "feature_names_"):
        encoder.feature_names_.append("more")


def more_categories(encoder):
    encoder.categories_[0] = np.append(encoder.categories_[0], ["more"] * 3).astype(object)


def unordered(encoder):
    encoder.categories_[1] = encoder.categories_[1][::-1].copy()


def fewer_columns(encoder):
    encoder._n_features_outs[0] = 1


def more_columns(encoder):
    more_categories(encoder)
    encoder._n_features_outs[0] += 3


def far_mapping(encoder):
    mapping = next(one for one in encoder._default_to_infrequent_mappings if one is not None)
    mapping[0] = 10**6


def far_drop(encoder):
    encoder._drop_idx_after_grouping = np.array([10**6, 0], dtype=object)


def number_as_function(encoder):
    encoder.preprocessor = 3


def no_frequencies(encoder):
    encoder._tfidf.idf_ = np.empty(0)


def no_attributes(encoder):
    vars(encoder).clear()


def no_infrequent_categories(encoder):
    encoder._infrequent_enabled = True


def columns_of_objects(encoder):
    encoder.dtype = covey.Groups  # a class that a file may name


FORGED = [
    *(("one-hot", change) for change in (columns_of_objects, no_infrequent_categories)),
    *(("count", change) for change in (number_as_function, no_attributes)),
    ("tf-idf", no_frequencies),
    *((name, set_word(value)) for name in ("count", "tf-idf", "records") for value in (10**6, -1, 0.5, 1)),
    *((name, more_words) for name in ("count", "records")),
    *((name, change) for name in ("one-hot", "dense one-hot") for change in (more_categories, unordered)),
    *(("one-hot", change) for change in (fewer_columns, more_columns)),
    ("infrequent", far_mapping),
    ("dropped", far_drop),
]


@pytest.mark.parametrize(("name", "change"), FORGED, ids=lambda v: v if isinstance(v, str) else v.__name__)
def test_forged_encoders_are_refused(name, change, tmp_path):
    pipeline, _ = fitted(name)
    change(pipeline[0])
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
