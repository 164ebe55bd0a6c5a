"""Numbers that decide which model is chosen are in `Settings`, are used, and are described."""

import ast
import importlib
import inspect
from dataclasses import fields
from pathlib import Path

import numpy as np

import covey.search
from covey.search.settings import Settings

FOLDER = Path(covey.search.__file__).parent
SOURCES = {
    ".".join(path.relative_to(FOLDER).with_suffix("").parts): ast.parse(path.read_text())
    for path in sorted(FOLDER.rglob("*.py"))
    if path.stem != "__init__"
}

# How many digits a result has, and what counts as round-off error.
TOLERANCES = {
    "active": "DEPENDENT",
    "constraints.binding": "AT_LIMIT FELT",
    "constraints.cone": "OFF ROUNDING",
    "constraints.kernels": "HELD_AT_ZERO JITTER KEPT MOST_ROUNDS",
    "constraints.multipliers": "APART DEPENDENT",
    "coordinates": "LEAST_CURVATURE LEAST_STEP LEFT MOST_STEPS ROUNDING",
    "curvature": "INEXACT JITTER MOST_PRODUCTS",
    "elimination": "JITTER LARGEST MORE_JITTER NO_RISE REPEATED_TIE ROUNDING SMALLEST TIE",
    "events": "DIGITS EXHAUSTED TIE",
    "held_out": "ROUNDING",
    "judge": "ROUNDING TIE",
    "newton": (
        "BROKEN DECREASE EPS FAR KEPT_ROUGH KEPT_SHRINKS LONG_WAY MOST MOST_HALVINGS MOST_STEPS ROUGH SHARE SHRINKS "
        "SLOW_STEPS STALLED_STEPS STILL_STEPS TOLERANCE"
    ),
    "leverage": "SMALLEST",
    "ridges": "ORTHONORMAL ROUNDING",
    "splits": "SAME",
    "pairs": "CONSTANT SLACK",
}

# How much is computed or held at once.
SIZES = {
    "coordinates": "MOST_KEPT STACKED TILE",
    "dense": "MOST_PAIRS MOST_STREAMED MOST_WORK SLOWER",
    "elimination": "COMPACT FILLED SMALL TOGETHER",
    "held_out": "MOST_SCORES",
    "curvature": "MOST_UNKNOWNS",
    "far": "EVENTS_PER_CHECK GRADIENTS GROWTH LEAST_GROWTH STREAMED_GROWTH",
    "pairs": "DEVICE_TILE GROWTH TILE",
    "search": "EVENTS_PER_LOOK EVENTS_PER_READING",
    "rough": "MOST_HALVINGS MOST_NUMBERS MOST_STEPS",
    "table": "ALL_NEAR FEWEST_COLUMNS HELD HELD_OF_STREAM MOST_ROWS NEAR_COLUMNS ROWS_PER_COLUMN",
}

OTHERS = {
    "agreement.MOST_NAMES": "the length of a sentence",
    "chosen.MOST_NAMES": "the length of a sentence",
    "constraints.binding.TABLES": "what a table says about groups that are left out",
    "dense.ALWAYS": "stands for zero",
    "dense.NOMINAL_SIZE": "stands for infinity",
}


def is_numeric(value):
    if isinstance(value, tuple | list):
        return len(value) > 0 and all(is_numeric(item) for item in value)
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def numeric_constants():
    """Names of the numbers, and tuples of numbers, that modules of the search define."""
    found = set()
    for name, tree in SOURCES.items():
        module = importlib.import_module(f"covey.search.{name}")
        for node in tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names = [
                n.id for target in targets if target is not None for n in ast.walk(target) if isinstance(n, ast.Name)
            ]
            found |= {f"{name}.{n}" for n in names if is_numeric(getattr(module, n, None))}
    return found


def test_every_number_is_a_setting_a_tolerance_or_a_size():
    listed = [f"{module}.{name}" for names in (TOLERANCES, SIZES) for module in names for name in names[module].split()]
    allowed = [*listed, *OTHERS]
    assert len(set(allowed)) == len(allowed)
    constants = numeric_constants()
    assert constants - set(allowed) == set(), "Numbers that decide which model is chosen belong in Settings."
    assert set(allowed) - constants == set(), "These numbers no longer exist."


def is_settings(node, module):
    """Whether an expression is a `Settings`."""
    if isinstance(node, ast.Name):
        return node.id in ("settings", "SETTINGS") or (module == "settings" and node.id == "self")
    return isinstance(node, ast.Attribute) and node.attr == "settings"


def test_every_setting_is_used():
    read = {
        node.attr
        for module, tree in SOURCES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and is_settings(node.value, module)
    }
    assert {field.name for field in fields(Settings)} - read == set()


def test_every_setting_is_described():
    lines = inspect.getdoc(Settings).split("Attributes\n----------\n")[1].splitlines()
    described = [
        name.strip() for line in lines if " : " in line and line[0] != " " for name in line.split(" : ")[0].split(",")
    ]
    assert described == [field.name for field in fields(Settings)]
