"""Files and folders that are whole or not there."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

__all__ = ["check_folder", "whole_folder", "write_atomically"]


def write_atomically(file: Path, content: bytes) -> None:
    """Write the file in one go: under another name first, then moved into place."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, 0o644)
        os.replace(name, file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def check_folder(folder: Path, names: Mapping[str, object] | frozenset[str], *, overwrite: bool) -> None:
    """Refuse, before any work is done, a folder that `whole_folder` could not write.

    A folder that is there already is replaced only when `overwrite` says so, and only if it holds nothing but files of
    these names: a slip such as ``--out ~ --overwrite`` must not cost anybody's files.
    """
    if not folder.exists():
        above = next(parent for parent in (folder.parent, *folder.parent.parents) if parent.exists())
        if not above.is_dir():
            raise NotADirectoryError(f"{above} is no folder; choose another place with --out.")
        return
    if not folder.is_dir():
        raise FileExistsError(f"{folder} is a file; choose another folder with --out.")
    present = sorted(file.name for file in folder.iterdir())
    if not present:
        return
    foreign = [name for name in present if name not in names]
    if foreign:
        shown = ", ".join(foreign[:3]) + (", ..." if len(foreign) > 3 else "")
        raise FileExistsError(f"{folder} holds other files ({shown}); choose another folder with --out.")
    if not overwrite:
        raise FileExistsError(f"{folder} exists already; choose another folder with --out, or add --overwrite.")


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A new folder to write into, which takes the place of `folder` at the end, and vanishes if anything goes wrong."""
    target = folder.absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part"))
    try:
        yield draft
        draft.chmod(0o755)
        _replace(draft, target)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _replace(draft: Path, target: Path) -> None:
    if not target.exists():
        draft.rename(target)
        return
    old = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=".old"))
    target.rename(old / "was")
    try:
        draft.rename(target)
    except BaseException:
        (old / "was").rename(target)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)
