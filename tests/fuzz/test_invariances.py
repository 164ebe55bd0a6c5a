"""A share of the fits that are made twice; ``python tools/robustness.py --invariances 10000`` has the rest."""

from pathlib import Path

import pytest

from fuzz import table_invariances
from fuzz.invariances import case, kept, verdict

FOUND, FOUND_TABLES = (
    Path(__file__).with_name(f"{name}.jsonl").read_text().splitlines() for name in ("invariances", "table_invariances")
)


@pytest.mark.parametrize("seed", range(48))
def test_order_units_storage_weights_and_files_change_no_model(seed):
    assert verdict(case(seed)) == ""


@pytest.mark.parametrize("seed", range(8))
def test_order_units_names_weights_and_files_change_no_model_of_a_table(seed):
    assert table_invariances.verdict(table_invariances.case(seed)) == ""


@pytest.mark.parametrize("line", FOUND, ids=range(len(FOUND)))
def test_what_once_differed_is_the_same(line):
    assert verdict(kept(line)) == ""


@pytest.mark.parametrize("line", FOUND_TABLES, ids=range(len(FOUND_TABLES)))
def test_tables_that_once_differed_are_the_same(line):
    assert table_invariances.verdict(table_invariances.kept(line)) == ""
