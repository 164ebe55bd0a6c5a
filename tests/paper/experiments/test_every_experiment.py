"""Experiments that take long at a tiny setting: table, figure from the saved table, claims."""

import os
from dataclasses import fields, is_dataclass, replace
from functools import cache

import pandas as pd
import pytest
from experiments.test_page import QUICK
from experiments.toy import assert_complete

from covey.paper.experiments import available, find

GRIDS = {"grid_n": (60, 120), "grid_s": (1, 2), "grid_sigma": (0.1, 0.2), "repeats": 2}
TINY = {
    "fig6": {"factors": (1.0, 2.0), "draws": 1, "draw_steps": 50, "text_steps": 100, "code_steps": 60, "shown": 40},
    "fig12": {"levels": 2, "repeats": 2},
    "table3": {"splits": 2, "penalties": 4, "dual_steps": 10, "network_steps": 100},
    "rates": {**GRIDS, "n": 80, "p": 30, "grid_p": (30, 60), "grid_group_size": (1, 3)},
    "phase": {"p": 40, "grid_n": (10, 40, 80), "grid_s": (1, 3), "repeats": 3, "n_steps": 600},
    "powers": {**GRIDS, "repeats": 1, "grid_group_size": (2, 4), "windows": 2},
    "delta": {"factors": (0.001, 0.5, 1.0), "epsilons": (1e-3, 1e-7), "draws": 2},
    "noise": {**GRIDS, "rows": (20, 60), "groups": (1,), "recovery_repeats": 2, "draws": 1000},
}
# `test_page` runs the others, and those that train networks of torch have tests in other files.
ELSEWHERE = {*QUICK, "fig10", "table2", "channels"}
NO_BARDET = not os.path.isfile(os.path.join(os.environ.get("COVEY_DATA", ""), "bardet.csv"))


@cache
def tiny(id):
    """The table of an experiment at its tiny setting."""
    experiment = find(id)
    return experiment.run(replace(experiment.settings("quick"), **TINY[id]), 1)


@pytest.mark.parametrize("id", TINY)
def test_tiny_setting_runs(id):
    if id == "table3" and NO_BARDET:
        pytest.skip("COVEY_DATA names no folder with bardet.csv")
    assert_complete(find(id), tiny(id))


@pytest.mark.parametrize("id", available())
def test_settings_are_frozen_dataclasses_and_quick_is_no_larger_than_full(id):
    experiment = find(id)
    quick, full = experiment.settings("quick"), experiment.settings("full")
    assert is_dataclass(quick)
    assert quick.__dataclass_params__.frozen
    for field in fields(quick):
        small, large = getattr(quick, field.name), getattr(full, field.name)
        assert (len(small) <= len(large)) if isinstance(small, tuple) else (small <= large)
    assert experiment.title
    assert len(experiment.about) > 80


def test_every_experiment_is_tested():
    assert {*TINY, *ELSEWHERE} == set(available())


def test_repeats_are_the_same_one_at_a_time_or_two():
    experiment = find("fig5")
    settings = replace(experiment.settings("quick"), repeats=2, code_steps=50)
    pd.testing.assert_frame_equal(experiment.run(settings, 1), experiment.run(settings, 2))
