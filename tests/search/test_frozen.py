"""Fits give the models that were recorded when the rules became select and predict (decision 0053).

Indicators, whose columns depend on each other, and a mean of binomial models were recorded again since: coefficients
are of least norm, and scores of models that are only judged have other digits. So were the means of models, when their
weights became roots of likelihoods (decision 0062), and three Poisson models and a binomial one, when elimination
began from the end of the path alone, in the quadratic model of a small ridge (decision 0041), four models, when the
choice became 1.5 standard errors and a tenth of the error (decision 0068), and the mean of binomial models, when
candidates that are only scored came to share a second derivative (decision 0043).

Until then these records were those of the version before the method was written once, and the same to 1e-8. To record
again what a decision changed: ``python tests/search/frozen_cases.py FILE``.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from search.frozen_cases import CASES, record

RECORDED = json.loads((Path(__file__).parent / "frozen.json").read_text())


def in_short(recipe):
    return re.sub(r" of the first \d+ groups|, round 2", "", recipe)


def assert_recorded(found, expected, rtol=1e-8):
    assert found["groups"] == expected["groups"]
    assert in_short(found["recipe"]) == in_short(expected["recipe"])
    assert found["columns"] == expected["columns"]
    atol = rtol * np.abs(expected["coef"]).max(initial=0.0)
    np.testing.assert_allclose(found["coef"], expected["coef"], rtol=0, atol=atol)
    np.testing.assert_allclose(found["intercept"], expected["intercept"], rtol=rtol, atol=max(atol, 1e-8))


def test_every_case_is_recorded():
    assert CASES.keys() == RECORDED.keys()


@pytest.mark.parametrize("name", CASES)
def test_recorded_models(name):
    assert_recorded(record(CASES[name]()), RECORDED[name])
