"""Progress is shown where it is asked for, with stage, number and share, and only of long work."""

import sys

import numpy as np

from covey import GroupSparseClassifier, progress


def test_long_work_is_told_in_lines(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_interactive", lambda: False)
    X = np.random.default_rng(0).standard_normal((60, 4))
    GroupSparseClassifier(verbose=1, selection=3).fit(X, X[:, 0] + np.sin(9 * X[:, 1]) > 0)
    said = capsys.readouterr().out
    assert "[covey] GroupSparseClassifier: candidates of round 1, fit 2 of 4 (50%)" in said
    progress.tell("nobody", "fold", 1, 2)
    assert not capsys.readouterr().out


def test_short_work_and_work_that_is_not_to_be_shown_are_silent(capsys):
    with progress.showing("work", 1):
        progress.tell("stage", "fold", 1, 2)
    with progress.showing("work", 0):
        progress.tell("stage", "fold", 1, 2)
    assert not capsys.readouterr().out


def test_a_bar_where_there_is_a_terminal_and_lines_without_rich(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_interactive", lambda: True)
    with progress.showing("work", 1):
        progress.tell("stage", "fold", 1, 2)
        shown = progress._SHOWN.get()
        if shown.bar is not None:  # rich is installed
            (task,) = shown.bar.tasks
            assert task.description == "stage, fold 1 of 2"
            assert task.percentage == 50
    capsys.readouterr()
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with progress.showing("work", 1):
        progress.tell("stage", "fold", 1, 2)
    assert capsys.readouterr().out == "[covey] work: stage, fold 1 of 2 (50%)\n"
