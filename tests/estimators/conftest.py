"""Every model that a test of the estimators fits can be saved and loaded."""

import functools

import numpy as np
import pytest

import covey
from covey.persistence import ModelFileError, dump_bytes
from covey.persistence.contents import check_contents

ESTIMATORS = (covey.GroupSparseClassifier, covey.GroupSparseCox, covey.GroupSparseRegressor)


@pytest.fixture(autouse=True)
def models_come_back(monkeypatch, tmp_path_factory):
    """Check the last models that a test fitted, one per estimator, as if they came from a file; read one back."""
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
        try:
            content = dump_bytes(model)
        except ModelFileError as reason:
            if "would refuse it" in str(reason):
                raise
            continue
        file = tmp_path_factory.mktemp("models") / "model.skops"
        file.write_bytes(content)
        np.testing.assert_array_equal(covey.load(file).coef_, model.coef_)
