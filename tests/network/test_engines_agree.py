"""Both engines on random correlated problems: the same groups, and predictions that differ by the screened one's tol.

``python tools/robustness.py --engines 500`` tries many more.
"""

import pytest

from engine_problems import apart


@pytest.mark.parametrize("seed", range(1000, 1012))
def test_the_engines_choose_the_same_model(seed):
    distance, differ = apart(seed)
    assert not differ
    assert distance < 0.1
