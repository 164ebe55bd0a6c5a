"""A share of the forged model files in every run of the tests; the rest: tools/robustness.py."""

import os
import signal

import pytest

from fuzz.children import in_children
from fuzz.model_files import verdict


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
def test_forged_files_are_refused_or_can_be_used():
    assert [(seed, said) for seed, said in in_children(verdict, range(40)) if said] == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
def test_a_child_that_dies_is_a_finding():
    found = dict(
        in_children(lambda seed: os.kill(os.getpid(), signal.SIGKILL) if seed == 1 else f"said {seed}", range(3))
    )
    assert found == {0: "said 0", 1: "the process ended: SIGKILL", 2: "said 2"}
