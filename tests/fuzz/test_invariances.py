"""A share of the fits that are made twice; ``python tools/robustness.py --invariances 20000`` has the rest."""

import pytest

from fuzz.invariances import verdict


@pytest.mark.parametrize("seed", range(8))
def test_order_units_storage_weights_and_files_change_no_model(seed):
    assert verdict(seed) == ""
