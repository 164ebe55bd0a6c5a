"""Doctests of the torch room need torch; the examples of property tests are the same in every run."""

from importlib.util import find_spec

from hypothesis import settings

collect_ignore_glob = [] if find_spec("torch") else ["src/covey/paper/nn/*.py"]

# tools/robustness.py looks for new cases, with other seeds
settings.register_profile("same examples in every run", derandomize=True, database=None)
settings.load_profile("same examples in every run")
