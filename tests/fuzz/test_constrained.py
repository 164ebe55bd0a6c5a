"""A share of the fits under random constraints; ``python tools/robustness.py --constrained 2000`` has the rest."""

import numpy as np
import pytest

from fuzz.constrained import broken, verdict


@pytest.mark.parametrize("seed", [*range(20), 6140])
def test_every_model_keeps_the_constraints(seed):
    assert verdict(seed) == ""


def test_broken_constraints_are_found():
    rises = np.diff(np.eye(3), axis=0), np.zeros(2)
    assert broken([[0.0, 1.0, 2.0]], [rises]) == 0.0
    assert broken([[0.0, 1.0, 1.0 - 1e-9]], [rises]) > 1e-12
