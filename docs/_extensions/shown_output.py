"""Python blocks of the guide are run at build time, and what each prints is shown below it.

Blocks of a page share one namespace, in an empty folder. A block that is followed by a ``text`` block already shows
its output (a test compares the two) and is run without inserting anything. Results are kept in the folder of doctrees
under a key of the code, so that a page is run again only when it or covey itself has changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import tempfile
from functools import cache
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

import covey

BLOCK = re.compile(r"^```python\n(.*?)^```$(\n\n```text$)?", re.DOTALL | re.MULTILINE)


def printed(sources: list[str], page: str) -> list[str]:
    """What each block prints, the blocks run one after another in one namespace."""
    import matplotlib
    import matplotlib.pyplot as plt

    matplotlib.use("Agg")
    namespace = {"__name__": "__main__"}
    outputs = []
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for number, source in enumerate(sources, 1):
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    exec(compile(source, f"{page}, block {number}", "exec"), namespace)
                outputs.append(out.getvalue().rstrip())
        except Exception as error:
            raise ExtensionError(f"{page}, block {len(outputs) + 1}: {type(error).__name__}: {error}") from error
        finally:
            os.chdir(here)
            plt.close("all")
    return outputs


@cache
def library() -> str:
    """A digest of covey's source."""
    files = sorted(Path(covey.__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def kept(sources: list[str], page: str, folder: Path) -> list[str]:
    """The outputs of an earlier build, if the code is the same; otherwise those of a run."""
    key = hashlib.sha256(json.dumps([library(), *sources]).encode()).hexdigest()
    file = folder / f"{key}.json"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(printed(sources, page)))
    outputs: list[str] = json.loads(file.read_text())
    return outputs


def show_outputs(app: Sphinx, docname: str, source: list[str]) -> None:
    """Insert a ``text`` block after every Python block that prints something."""
    if not docname.startswith(app.config.shown_output_pages):
        return
    found = list(BLOCK.finditer(source[0]))
    if not found:
        return
    outputs = iter(kept([match.group(1) for match in found], docname, Path(app.doctreedir) / "shown_output"))

    def with_output(match: re.Match[str]) -> str:
        output = next(outputs)
        if not output or match.group(2):
            return match.group(0)
        return f"{match.group(0)}\n\n```{{code-block}} text\n:class: shown-output\n{output}\n```"

    source[0] = BLOCK.sub(with_output, source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """`shown_output_pages` are the beginnings of the names of pages whose code is run."""
    app.add_config_value("shown_output_pages", (), "env")
    app.connect("source-read", show_outputs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
