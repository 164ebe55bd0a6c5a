"""Files and folders are complete or not there, private where the user wants it so, and nobody else's are touched."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import covey
from covey import files
from covey.datasets import make_group_sparse
from covey.files import atomic_folder, check_folder, check_writable, write_atomically
from covey.tables import read_table
from covey.tables.spreadsheet import guarded, unguarded

posix = pytest.mark.skipif(os.name != "posix", reason="permissions and locks of POSIX")
NAMES = {"a.txt", "b.txt"}


def mode(file):
    return stat.S_IMODE(file.stat().st_mode)


@pytest.fixture
def private():
    before = os.umask(0o077)
    yield
    os.umask(before)


@posix
def test_the_umask_is_honoured(tmp_path, private):
    write_atomically(tmp_path / "one", b"1")
    with atomic_folder(tmp_path / "folder", NAMES) as draft:
        (draft / "a.txt").write_text("a")
    data = make_group_sparse(30, 6, 3, active=1, random_state=0)
    covey.save(covey.GroupSparseRegressor(3).fit(data.X, data.y), tmp_path / "model.skops")
    for name in ("one", "model.skops", "folder/a.txt"):
        assert mode(tmp_path / name) == 0o600, name
    assert mode(tmp_path / "folder") == 0o700


@posix
def test_a_file_that_was_private_stays_private(tmp_path):
    (tmp_path / "one").write_text("old")
    (tmp_path / "one").chmod(0o600)
    write_atomically(tmp_path / "one", b"new")
    assert mode(tmp_path / "one") == 0o600
    assert (tmp_path / "one").read_text() == "new"


@posix
def test_symbolic_links_are_not_followed(tmp_path):
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "link").symlink_to("precious")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "precious").read_text() == "precious"
    assert not (tmp_path / "link").is_symlink()
    (tmp_path / "folder").mkdir()
    (tmp_path / "to folder").symlink_to("folder")
    with pytest.raises(FileExistsError, match="symbolic link"):
        check_folder(tmp_path / "to folder", NAMES, overwrite=True)
    (tmp_path / "folder" / "a.txt").symlink_to("../precious")
    with pytest.raises(FileExistsError, match="other files"):
        check_folder(tmp_path / "folder", NAMES, overwrite=True)


def test_nobody_can_guess_a_name(tmp_path):
    names = set()
    for _ in range(20):
        with atomic_folder(tmp_path / "folder", NAMES) as draft:
            names.add(draft.name)
    assert len(names) == 20
    assert all(len(name) >= len(".folder..part") + 16 for name in names)


@pytest.mark.parametrize("at_once", [True, False], ids=["in one step", "in two"])
def test_a_folder_is_replaced_at_once(tmp_path, monkeypatch, at_once):
    if not at_once:
        monkeypatch.setattr(files, "_exchange_at_once", lambda a, b: False)
    target = tmp_path / "folder"
    for text in ("old", "new"):
        with atomic_folder(target, NAMES) as draft:
            for name in NAMES:
                (draft / name).write_text(text)
    assert {file.name: file.read_text() for file in target.iterdir()} == dict.fromkeys(NAMES, "new")

    def interrupted():
        with atomic_folder(target, NAMES) as draft:
            (draft / "a.txt").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (target / "a.txt").read_text() == "new"
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]


KILLED = """
import os, sys, time
from pathlib import Path
from covey import files
target = Path(sys.argv[1])
def pause(*_):
    print("here", flush=True)
    time.sleep(60)
if sys.argv[2] == "after":
    files._remove = pause
with files.atomic_folder(target, {"a.txt", "b.txt"}) as draft:
    for name in ("a.txt", "b.txt"):
        (draft / name).write_text("new")
    if sys.argv[2] == "before":
        pause()
"""


@posix
@pytest.mark.parametrize(("when", "left"), [("before", "old"), ("after", "new")])
def test_what_a_killed_run_leaves_is_removed_by_the_next(tmp_path, when, left):
    target = tmp_path / "folder"
    target.mkdir()
    for name in NAMES:
        (target / name).write_text("old")
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(target), when], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert child.stdout.readline() == "here\n"
    # its draft is kept as long as it lives
    if when == "before":
        check_folder(target, NAMES, overwrite=True)
        assert len(list(tmp_path.iterdir())) == 2
    child.kill()
    child.wait()
    child.stdout.close()
    assert {file.read_text() for file in target.iterdir()} == {left}
    (other,) = (file for file in tmp_path.iterdir() if file != target)
    (other / "notes.txt").write_text("a user's")
    check_folder(target, NAMES, overwrite=True)
    assert [file.name for file in other.iterdir()] == ["notes.txt"]
    (other / "notes.txt").unlink()
    check_folder(target, NAMES, overwrite=True)
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]


@posix
def test_a_folder_that_lost_its_place_gets_it_back(tmp_path):
    # killed between the two steps, where the system has no single one
    old = tmp_path / ".folder.0123456789abcdef.old"
    old.mkdir()
    (old / "a.txt").write_text("old")
    with pytest.raises(FileExistsError, match="exists already"):
        check_folder(tmp_path / "folder", NAMES, overwrite=False)
    assert (tmp_path / "folder" / "a.txt").read_text() == "old"


@posix
def test_the_rest_of_a_killed_file_is_removed_by_the_next(tmp_path):
    (tmp_path / ".one.0123456789abcdef.part").write_text("half")
    (tmp_path / ".other.0123456789abcdef.part").write_text("half")
    write_atomically(tmp_path / "one", b"complete")
    assert sorted(file.name for file in tmp_path.iterdir()) == [".other.0123456789abcdef.part", "one"]


def test_a_place_that_cannot_be_written_is_refused_and_one_that_can_is_left_as_it_was(tmp_path):
    check_writable(tmp_path / "new" / "folder" / "out")
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="is not a folder"):
        check_writable(tmp_path / "file" / "out" / "deep")
    if Path("/proc/self").exists():
        with pytest.raises(OSError, match="/proc"):
            check_folder(Path("/proc/covey-fit"), NAMES, overwrite=False)


TEXTS = ["=1+1", "+a", "-b", "@sum", "'=1", "''+x", "'quoted", "plain", "-2", "+3.5", "\tx", "a=b", "", "-", "＝1"]


def test_formulas_are_guarded_and_come_back(tmp_path):
    frame = pd.DataFrame({"=head": TEXTS, "-n": np.arange(len(TEXTS)) - 5.0, "'@k": pd.Categorical(TEXTS)})
    shown = guarded(frame)
    assert list(shown.columns) == ["'=head", "'-n", "''@k"]
    cells = [*shown["'=head"], *shown["''@k"]]
    assert not [
        cell for cell in cells if cell.startswith(("=", "+", "@", "-", "\t", "＝")) and cell not in ("-2", "+3.5")
    ]
    pd.testing.assert_frame_equal(shown["'-n"].to_frame("-n"), frame[["-n"]])
    back = unguarded(shown)
    assert [list(back[name]) for name in frame] == [list(frame[name]) for name in frame]
    shown.to_csv(tmp_path / "t.csv", index=False)
    read = read_table(tmp_path / "t.csv")
    assert list(read.columns) == list(frame.columns)
    assert read["=head"].fillna("").tolist() == TEXTS


def test_names_that_are_one_without_their_guards_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text("=a,'=a\n1,2\n")
    with pytest.raises(ValueError, match="columns of the same name"):
        read_table(tmp_path / "t.csv")
