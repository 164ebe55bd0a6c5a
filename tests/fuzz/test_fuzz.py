"""A share of every fuzzer in each run of the tests, and what once failed; `tools/robustness.py` has the rest."""

import json
import os
import random
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz import cli_tables, constrained, invariances, model_files, table_invariances
from fuzz.cases import FIELDS, make_case
from fuzz.check import show, verdict
from fuzz.children import in_children
from fuzz.functions import CALLS, make_call, outcome

forked = pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")


def numbered(name):
    """The cases of a file, a line each, with their numbers for names."""
    lines = Path(__file__).with_name(f"{name}.jsonl").read_text().splitlines()
    return {"argvalues": lines, "ids": range(len(lines))}


# ---------------------------------------------------------------------- fits and paths


@pytest.mark.parametrize("line", **numbered("corpus"))
def test_what_once_failed(line):
    # a field that came later has its first harmless value
    case = {field: plain[0] for field, (plain, _) in FIELDS.items()} | json.loads(line)
    assert verdict(case) == "", show(case)


@st.composite
def cases(draw):
    return make_case(lambda options: draw(st.sampled_from(options)), draw(st.integers(0, 2**31 - 1)))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=cases())
def test_nothing_breaks_it(case):
    assert verdict(case) == "", show(case)


@pytest.mark.parametrize("seed", range(48))
def test_order_units_storage_weights_and_files_change_no_model(seed):
    assert invariances.verdict(invariances.case(seed)) == ""


@pytest.mark.parametrize("seed", range(8))
def test_order_units_names_weights_and_files_change_no_model_of_a_table(seed):
    assert table_invariances.verdict(table_invariances.case(seed)) == ""


@pytest.mark.parametrize("line", **numbered("invariances"))
def test_what_once_differed_is_the_same(line):
    assert invariances.verdict(invariances.kept(line)) == ""


@pytest.mark.parametrize("line", **numbered("table_invariances"))
def test_tables_that_once_differed_are_the_same(line):
    assert table_invariances.verdict(table_invariances.kept(line)) == ""


@pytest.mark.parametrize("seed", [*range(20), 6140])
def test_every_model_keeps_the_constraints(seed):
    assert constrained.verdict(seed) == ""


def test_broken_constraints_are_found():
    rises = np.diff(np.eye(3), axis=0), np.zeros(2)
    assert constrained.broken([[0.0, 1.0, 2.0]], [rises]) == 0.0
    assert constrained.broken([[0.0, 1.0, 1.0 - 1e-9]], [rises]) > 1e-12


# ---------------------------------------------------------------------- functions


@pytest.mark.parametrize("name", CALLS)
def test_hostile_arguments_are_refused_by_name(name):
    function, arguments = CALLS[name]
    function(**arguments)  # without them it works
    rng = random.Random(name)
    for _ in range(12):
        case = make_call(rng.choice, [name])
        assert outcome(case) == "", case


@pytest.mark.parametrize(
    ("name", "argument", "odd"),
    [("Groups.from_sizes", "n_columns", "1e30"), ("drift_against_step", "init_scale", "1e-300")],
)
def test_arguments_that_once_failed(name, argument, odd):
    assert outcome({"function": name, "odd": {argument: odd}}) == ""


# ---------------------------------------------------------------------- files, in children that may die


@forked
@pytest.mark.parametrize(("kind", "count"), [(cli_tables, 12), (model_files, 40)], ids=["tables", "forged model files"])
def test_files_are_used_or_refused(kind, count):
    assert [(seed, said) for seed, said in in_children(kind.verdict, range(count)) if said] == []


@forked
def test_a_child_that_dies_is_a_finding():
    found = dict(
        in_children(lambda seed: os.kill(os.getpid(), signal.SIGKILL) if seed == 1 else f"said {seed}", range(3))
    )
    assert found == {0: "said 0", 1: "the process ended: SIGKILL", 2: "said 2"}
