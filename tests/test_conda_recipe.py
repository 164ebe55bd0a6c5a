"""The conda recipe has the dependencies, the bounds and the entry point of pyproject.toml."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
CONDA = {"torch": "pytorch", "matplotlib": "matplotlib-base"}

pytestmark = pytest.mark.skipif(not (ROOT / "conda").exists(), reason="an sdist has no recipe")


def bounds(requirements):
    """The bounds of each package, by its name in conda; covey's own extras are left out."""
    read = [Requirement(text) for text in requirements]
    return {CONDA.get(one.name, one.name): str(one.specifier) for one in read if one.name != "covey"}


def test_the_recipe_is_that_of_pyproject():
    yaml = pytest.importorskip("yaml")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project, extras = settings["project"], settings["project"]["optional-dependencies"]
    recipe = yaml.safe_load((ROOT / "conda" / "recipe" / "meta.yaml").read_text())
    assert recipe["package"] == {"name": project["name"], "version": project["version"]}
    assert recipe["build"]["entry_points"] == ["covey = covey.cli:main"]
    assert recipe["about"]["license"] == project["license"]
    run = dict(line.split() for line in recipe["requirements"]["run"])
    inside = [text for extra in ("cli", "io", "parquet", "report") for text in extras[extra]]
    assert run == {"python": project["requires-python"]} | bounds([*project["dependencies"], *inside])
    beside = dict(line.split() for line in recipe["requirements"]["run_constrained"])
    others = set(extras) - {"cli", "io", "parquet", "report", "all", "docs", "dev"}
    assert beside == bounds(text for extra in others for text in extras[extra])
    assert set(recipe["requirements"]["host"]) > {"hatchling >=1.24", "pip"}
