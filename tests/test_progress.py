"""Progress is shown where it is asked for, with stage, number and share, and only of long work."""

import sys

import numpy as np

from covey import GroupSparseClassifier, GroupSparseRegressor, nested_score, progress, stability_selection
from covey.evidence import effect, knockoffs, test_groups


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


def work_of_evidence():
    """The functions that take long, on little data."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    y = X[:, 0] + 0.1 * rng.standard_normal(60)
    return {
        "nested_score": lambda: nested_score(GroupSparseRegressor(selection=3), X, y, 3, references=False),
        "stability_selection": lambda: stability_selection(X, y, n_pairs=2),
        "knockoffs": lambda: knockoffs(X, y, kind="gaussian", n_draws=2),
        "test_groups": lambda: test_groups(GroupSparseRegressor(), X[:16], y[:16]),
        "effect": lambda: effect(X, y, of=[0, 1]),
    }


def test_evidence_shows_its_progress_where_a_bar_can_be_drawn(capsys, monkeypatch):
    """Nobody has to know of an argument: by default, a terminal or a notebook has a bar, and a script has silence."""
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    said = {}
    for name, work in work_of_evidence().items():
        work()
        assert not capsys.readouterr().out
        monkeypatch.setattr(progress, "_interactive", lambda: True)
        monkeypatch.setitem(sys.modules, "rich.progress", None)  # lines instead of a bar
        work()
        said[name] = capsys.readouterr().out
        monkeypatch.setattr(progress, "_interactive", lambda: False)
    assert "[covey] nested_score: outer fold 1 of 3 (0%)" in said["nested_score"]
    assert "[covey] nested_score: outer fold 3 of 3: candidates of round 1, fit" in said["nested_score"]
    assert "[covey] stability_selection: half-sample 3 of 4 (50%)" in said["stability_selection"]
    assert "[covey] knockoffs: covariance of the columns, fold 1 of" in said["knockoffs"]
    assert "[covey] knockoffs: draw 2 of 2: path of groups and copies, group" in said["knockoffs"]
    assert "[covey] test_groups: group 4 of 6 (50%)" in said["test_groups"]
    assert "[covey] effect: search 3 of 3 (67%)" in said["effect"]


def test_a_caller_hears_what_would_be_shown(monkeypatch, capsys):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_interactive", lambda: True)
    heard = []
    with progress.listening(lambda text, share: heard.append(text)):
        progress.enter("reading")
        work_of_evidence()["stability_selection"]()
    assert [text for text in heard if ":" not in text] == ["reading", *(f"half-sample {i} of 4" for i in range(1, 5))]
    assert not capsys.readouterr().out
