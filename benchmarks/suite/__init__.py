"""A benchmark that others can join: the same problems, folds, seeds and scorer for every method, one command.

`methods.py` has the methods and `problems.py` the problems, each a dict of functions; `problem.py` says what passes
between them. `run_suite.py` runs them, keeps single results in a file and writes docs/suite.md from it.
"""
