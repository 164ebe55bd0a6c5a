"""A share of the odd tables in every run of the tests; the rest: tools/robustness.py."""

import os

import pytest

from fuzz.children import in_children
from fuzz.cli_tables import verdict


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
def test_a_table_is_fitted_or_refused_in_one_line():
    assert [(seed, said) for seed, said in in_children(verdict, range(12)) if said] == []
