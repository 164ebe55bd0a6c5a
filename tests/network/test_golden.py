"""The network's models at the times that the rules choose are the recorded ones, on small problems of every kind.

The record is of version 0.1.0's plain method: ``restarts=0, factors=0, init_scale=1e-6, average=False``, without its
look-ahead, which ended paths early and is gone.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from covey import Groups
from covey.designs import as_design
from covey.network import Network
from covey.selection.network_time import choose_by_folds
from covey.stopping import AtTime, Discrepancy, InformationCriterion, PathTask
from golden_problems import PROBLEMS, case_names

RECORDED = json.loads((Path(__file__).parent / "golden.json").read_text())


@pytest.fixture(scope="module")
def problems():
    return {name: make() for name, make in PROBLEMS.items()}


def choose(task, rule):
    if rule == "cv":
        return choose_by_folds(task, task.design.folds(5, task.y, None))
    if rule == "discrepancy":
        return Discrepancy().choose(task)
    if rule == "at-300":
        return AtTime(300).choose(task)
    return InformationCriterion(rule).choose(task)


@pytest.mark.parametrize(("name", "algorithm", "rule"), case_names())
def test_models_are_the_recorded_ones(problems, name, algorithm, rule):
    problem, expected = problems[name], RECORDED[f"{name}-{algorithm}-{rule}"]
    design = as_design(problem.X)
    groups = Groups.coerce(problem.groups, design.shape[1])
    weight = np.ones(design.shape[0]) if problem.weight is None else problem.weight
    task = PathTask(design, problem.y, groups, weight, Network(algorithm=algorithm).options())
    choice = choose(task, rule)
    coef, intercept = choice.model
    assert max(1, int(choice.time)) == expected["time"]
    assert np.flatnonzero(coef).tolist() == expected["columns"]
    np.testing.assert_allclose(coef[expected["columns"]], expected["coef"], rtol=1e-10)
    np.testing.assert_allclose(intercept, expected["intercept"], rtol=1e-10)
    at = choice.position
    own = (choice.path.coefs if choice.path.parts is None else choice.path.parts)[[at]].toarray().ravel()
    norms = (groups if choice.path.parts is None else groups.apart()).norms(own)
    assert [groups.names[l] for l, _ in choice.path.entered if norms[l] > 0] == expected["groups"]
