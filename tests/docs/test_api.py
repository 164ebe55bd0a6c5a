"""docs/api.md lists every public name, and only those."""

import importlib
import inspect
import re
import types
from pathlib import Path

import pytest

import covey
import covey.paper

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
# `covey.designs` is public too, though its names are not needed before the data outgrow an array.
ROOMS = ["covey", "covey.designs", *(f"covey.{name}" for name in covey._ROOMS)]
ROOMS += ["covey.paper", *(f"covey.paper.{name}" for name in covey.paper._ROOMS)]


def listed():
    """The names under each ``currentmodule``."""
    names = {}
    for part in PAGE.read_text().split(".. currentmodule:: ")[1:]:
        room, _, rest = part.partition("\n")
        names[room] = re.findall(r"^   (\w+)$", rest, re.MULTILINE)
    return names


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_is_listed_once_and_says_what_it_is(room):
    if room == "covey.paper.nn":
        pytest.importorskip("torch")
    module = importlib.import_module(room)
    things = {name: getattr(module, name) for name in module.__all__}
    public = [name for name, thing in things.items() if not isinstance(thing, types.ModuleType)]
    assert sorted(listed()[room]) == sorted(public)
    for name, thing in things.items():
        if callable(thing) or isinstance(thing, types.ModuleType):
            assert thing.__doc__, f"{room}.{name} has no docstring"


def test_no_room_is_missing():
    assert sorted(listed()) == sorted(ROOMS)


@pytest.mark.parametrize("name", ["GroupSparseRegressor", "GroupSparseClassifier", "GroupSparseCox"])
def test_every_parameter_of_an_estimator_is_described(name):
    """Some descriptions are shared, and written into the docstrings when covey is imported."""
    estimator = getattr(covey, name)
    described = re.findall(r"^([\w, ]+) : ", inspect.getdoc(estimator), re.MULTILINE)
    assert set(inspect.signature(estimator).parameters) <= {one for names in described for one in names.split(", ")}
    assert not any("$" in inspect.getdoc(thing) for thing in (estimator, estimator.fit, estimator.predict))
