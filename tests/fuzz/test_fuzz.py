"""A share of the fuzzer in every run of the tests: what once failed, and new cases. The rest: tools/robustness.py."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.cases import FIELDS, make_case
from fuzz.check import show, verdict

CORPUS = [json.loads(line) for line in Path(__file__).with_name("corpus.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("case", CORPUS, ids=[f"{i}" for i in range(len(CORPUS))])
def test_what_once_failed(case):
    # a field that came later has its first harmless value
    case = {field: plain[0] for field, (plain, _) in FIELDS.items()} | case
    assert verdict(case) == "", show(case)


@st.composite
def cases(draw):
    return make_case(lambda options: draw(st.sampled_from(options)), draw(st.integers(0, 2**31 - 1)))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=cases())
def test_nothing_breaks_it(case):
    assert verdict(case) == "", show(case)
