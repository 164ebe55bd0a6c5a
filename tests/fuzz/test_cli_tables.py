"""A share of the odd tables in every run of the tests; the rest: tools/robustness.py."""

import os

import pytest

from fuzz.children import in_children
from fuzz.cli_tables import verdict


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
def test_a_table_is_fitted_or_refused_in_one_line():
    assert [(seed, said) for seed, said in in_children(verdict, range(12)) if said] == []


def test_integers_of_hundreds_of_digits_are_infinite(tmp_path):
    from cli.running import covey, refused

    (tmp_path / "t.csv").write_text("a,y\n" + "1,2\n" * 5 + f"3,{'9' * 400}\n")
    refused(covey("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "fit"), "infinite")
