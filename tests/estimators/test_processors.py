"""Answers do not depend on the processor: equal groups, and models to 1e-6, under other kernels and threads.

``python tools/robustness.py --processors 600`` compares many more fits.
"""

from processors import PROCESSORS, largest_differences


def test_other_kernels_and_threads_give_the_same_model():
    found = largest_differences(0, 30, ["squared"], PROCESSORS[:3])
    assert len(found) == 30
    assert {fit: apart for fit, apart in found.items() if apart > 1e-6} == {}
