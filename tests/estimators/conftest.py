"""Every model that a test of the estimators fits can be saved and loaded."""

import functools

import numpy as np
import pytest

import covey
from covey.persistence import ModelFileError, dump_bytes
from covey.persistence.contents import check_contents

ESTIMATORS = (covey.GroupSparseClassifier, covey.GroupSparseCox, covey.GroupSparseRegressor)


@pytest.fixture(scope="session")
def written():
    """The kinds of models that were written to a file and read again."""
    return set()


@pytest.fixture(autouse=True)
def models_come_back(monkeypatch, tmp_path_factory, written):
    """Check the last models that a test fitted as if they came from a file; read one back of those that hold alike."""
    last = {}
    for estimator in ESTIMATORS:

        def fit(self, *args, _fit=estimator.fit, _kind=estimator, **options):
            last.pop(_kind, None)
            last[_kind] = _fit(self, *args, **options)
            return last[_kind]

        monkeypatch.setattr(estimator, "fit", functools.wraps(estimator.fit)(fit))
    yield
    for kind, model in last.items():
        if type(model) is not kind or not hasattr(model, "coef_"):
            continue
        check_contents(model)
        holds = (kind, *((name, type(value)) for name, value in sorted(vars(model).items())))
        if holds in written:
            continue
        written.add(holds)
        try:
            content = dump_bytes(model)
        except ModelFileError as reason:
            if "would refuse it" in str(reason):
                raise
            continue
        file = tmp_path_factory.mktemp("models") / "model.skops"
        file.write_bytes(content)
        np.testing.assert_array_equal(covey.load(file).coef_, model.coef_)
