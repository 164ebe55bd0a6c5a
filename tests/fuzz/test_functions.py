"""A share of the fuzzer of functions; ``python tools/robustness.py --arguments 20000`` has the rest."""

import random

import pytest

from fuzz.functions import CALLS, make_call, outcome


@pytest.mark.parametrize("name", CALLS)
def test_the_call_without_hostile_arguments_works(name):
    function, arguments = CALLS[name]
    function(**arguments)


@pytest.mark.parametrize(
    ("name", "argument", "odd"),
    [("Groups.from_sizes", "n_columns", "1e30"), ("drift_against_step", "init_scale", "1e-300")],
)
def test_what_once_failed(name, argument, odd):
    assert outcome({"function": name, "odd": {argument: odd}}) == ""


@pytest.mark.parametrize("name", CALLS)
def test_hostile_arguments_are_refused_by_name(name):
    rng = random.Random(name)
    for _ in range(12):
        case = make_call(rng.choice, [name])
        assert outcome(case) == "", case
