"""Atomic writing of files and folders: they are complete, or do not exist.

A draft has an unguessable name, permissions that follow the user's umask, and a lock that is released when its process
ends. The next run can therefore recognise what a killed process has left behind, and removes it.
"""

from __future__ import annotations

import ctypes
import os
import re
import secrets
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    CAN_LOCK = False
else:
    CAN_LOCK = True

__all__ = ["atomic_folder", "check_folder", "check_writable", "located", "sweep", "write_atomically"]

# The part of a name that is kept in the name of its draft, which must not be too long for the file system.
LONGEST_NAME = 200


def write_atomically(file: Path, content: bytes) -> None:
    """Write a file atomically: under another name first, then moved into place.

    An existing file keeps its permissions. A symbolic link is replaced, not followed.
    """
    file = located(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    sweep(file)
    draft = _draft(file)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o666)
    try:
        with _named(file), os.fdopen(handle, "wb") as stream:
            _lock(stream.fileno())
            if file.is_file() and not file.is_symlink() and hasattr(os, "fchmod"):
                os.fchmod(stream.fileno(), file.stat().st_mode & 0o777)
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
            os.replace(draft, file)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


@contextmanager
def atomic_folder(folder: Path, names: Collection[str]) -> Iterator[Path]:
    """A new folder to write into, which replaces `folder` at the end and is removed if anything goes wrong.

    `folder` always has a complete set of files, old or new; only files with these names are ever removed.
    """
    target = located(folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    sweep(target, names)
    draft = _draft(target)
    draft.mkdir()
    lock = os.open(draft, os.O_RDONLY) if CAN_LOCK else None
    try:
        if lock is not None:
            _lock(lock)
        with _named(folder):
            yield draft
        if target.exists():
            _exchange(draft, target)
        else:
            draft.rename(target)
    finally:
        _remove(draft, names)  # the old files, or the new ones if anything went wrong
        if lock is not None:
            os.close(lock)


def check_folder(folder: Path, names: Collection[str], *, overwrite: bool) -> None:
    """Refuse, before any work is done, a folder that `atomic_folder` could not write.

    An existing folder is replaced only with `overwrite`, and only if it holds nothing but files with these names: a
    slip such as ``--out ~ --overwrite`` must not delete anyone's files.
    """
    if folder.is_symlink():
        raise FileExistsError(f"{folder} is a symbolic link; give the folder itself with --out.")
    if str(folder) == "-":
        raise FileExistsError("A folder cannot be written to standard output (-); give its name with --out.")
    check_writable(folder)
    sweep(located(folder), names)
    if not folder.exists():
        return
    if not folder.is_dir():
        raise FileExistsError(f"{folder} is a file; choose another folder with --out.")
    present = sorted(folder.iterdir())
    foreign = [file.name for file in present if file.name not in names or file.is_symlink() or not file.is_file()]
    if foreign:
        shown = ", ".join(foreign[:3]) + (", ..." if len(foreign) > 3 else "")
        raise FileExistsError(f"{folder} holds other files ({shown}); choose another folder with --out.")
    if present and not overwrite:
        raise FileExistsError(f"{folder} exists already; choose another folder with --out, or add --overwrite.")


def check_writable(target: Path) -> None:
    """Refuse, before any work is done, a file or folder that could not be moved into place."""
    target = located(target)
    if not target.name:
        raise FileExistsError(f"{target} is the root of all folders; choose another place with --out.")
    above = next(parent for parent in target.parents if parent.exists())
    if not above.is_dir():
        raise NotADirectoryError(f"{above} is not a folder; choose another place with --out.")
    probe = _draft(above / target.name)
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError as reason:
        raise OSError(reason.errno, reason.strerror, str(above)) from None


def sweep(target: Path, names: Collection[str] = ()) -> None:
    """Remove drafts of a file or folder that killed processes have left; drafts still being written are kept.

    A folder that was moved away by a process killed before its replacement arrived is put back.
    """
    if not CAN_LOCK:
        return
    named = re.compile(rf"\.{re.escape(target.name[:LONGEST_NAME])}\.[0-9a-f]{{16}}\.(part|old)")
    with suppress(OSError):
        for name in sorted(os.listdir(target.parent)):
            if named.fullmatch(name):
                _sweep_one(target.parent / name, target, names)


def _sweep_one(left: Path, target: Path, names: Collection[str]) -> None:
    with suppress(OSError):
        handle = os.open(left, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails if its process is alive
            if left.suffix == ".old" and not target.exists():
                left.rename(target)
            elif left.is_dir():
                _remove(left, names)
            else:
                left.unlink()
        finally:
            os.close(handle)


def _remove(folder: Path, names: Collection[str]) -> None:
    """Remove these files from a folder, and the folder if it is then empty."""
    for name in names:
        with suppress(OSError):
            (folder / name).unlink()
    with suppress(OSError):
        folder.rmdir()


def _exchange(draft: Path, target: Path) -> None:
    """Exchange two folders, atomically if the system supports it."""
    if _exchange_at_once(draft, target):
        return
    old = draft.with_suffix(".old")
    target.rename(old)
    try:
        draft.rename(target)
    except BaseException:
        old.rename(target)
        raise
    old.rename(draft)


def _exchange_at_once(a: Path, b: Path) -> bool:
    """Exchange two folders by a system call that Python does not offer; return whether that worked."""
    here, swap = -100, 2  # AT_FDCWD; RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
    names, system = (os.fsencode(a), os.fsencode(b)), str(sys.platform)
    try:
        library = ctypes.CDLL(None)
        if system == "linux":
            return bool(library.renameat2(here, names[0], here, names[1], swap) == 0)
        if system == "darwin":
            return bool(library.renamex_np(*names, swap) == 0)
    except (OSError, AttributeError, TypeError):  # an old library, or none
        pass
    return False


@contextmanager
def _named(target: Path) -> Iterator[None]:
    """Give errors of writing the name of the file or folder, which Python leaves out if the disk is full."""
    try:
        yield
    except OSError as reason:
        if reason.filename is None and reason.errno is not None:
            raise OSError(reason.errno, reason.strerror, str(target)) from None
        raise


def located(path: Path) -> Path:
    """The absolute path without ``..``, so that no folder on the way there and back is made; a last link stays."""
    return path.resolve() if path.name in ("", "..") else path.parent.resolve() / path.name


def _draft(target: Path) -> Path:
    """An unguessable name beside the target."""
    return target.with_name(f".{target.name[:LONGEST_NAME]}.{secrets.token_hex(8)}.part")


def _lock(handle: int) -> None:
    if CAN_LOCK:
        with suppress(OSError):  # some network file systems have no locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
