"""Doctests of the torch room are collected only where torch is installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["src/covey/paper/nn/*.py"]
