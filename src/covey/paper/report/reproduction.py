"""The reproduction as one self-contained page: figures, claims, verdicts, settings and tables.

The template escapes all inserted text. Figures are embedded as images, which cannot run scripts or affect one another,
and tables as downloads.
"""

from __future__ import annotations

import base64
import html
import platform
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import covey
from covey.files import write_atomically
from covey.paper.experiments import Verdict
from covey.paper.experiments.registry import Mode
from covey.paper.experiments.runner import Outcome, as_csv
from covey.report.page import page

TITLE = "Implicit Regularization for Group Sparsity, reproduced"
MARKS = {Verdict.HOLDS: "holds", Verdict.CODE_ONLY: "code", Verdict.FAILS: "fails"}
REPEATS = {"quick": "a few repeats; use --full for the paper's number", "full": "the paper's number of repeats"}


def write_report(outcomes: Sequence[Outcome], mode: Mode, folder: Path) -> Path:
    file = folder / "index.html"
    write_atomically(file, render_report(outcomes, mode).encode())
    return file


def render_report(outcomes: Sequence[Outcome], mode: Mode) -> str:
    claims = [claim for outcome in outcomes for claim in outcome.claims]
    return page(
        TITLE, name="reproduction.html", styles=("reproduction.css",), mode=mode, repeats=REPEATS[mode], marks=MARKS,
        counts={verdict: sum(claim.verdict == verdict for claim in claims) for verdict in Verdict}, claims=claims,
        sections=[_section(outcome) for outcome in outcomes], version=covey.__version__,
        python=platform.python_version(),
    )  # fmt: skip


def _section(outcome: Outcome) -> dict[str, Any]:
    experiment = outcome.experiment
    section = {"id": outcome.experiment.id, "title": experiment.title, "about": paragraphs(experiment.about)}
    if outcome.frame is None:
        return {**section, "ran": False, "problem": outcome.problem}
    svg, png = (outcome.figure[kind] for kind in ("svg", "png"))
    files = {"csv": ("text/csv", as_csv(outcome.frame)), "svg": ("image/svg+xml", svg), "png": ("image/png", png)}
    downloads = {
        kind: f"data:{media};base64,{base64.b64encode(content).decode()}" for kind, (media, content) in files.items()
    }
    settings = {
        name: ", ".join(map(str, value)) if isinstance(value, tuple) else value
        for name, value in asdict(outcome.settings).items()
    }
    return {
        **section, "ran": True, "claims": outcome.claims, "notices": outcome.notices, "settings": settings,
        "seconds": f"{outcome.seconds:.1f} s{' (kept from an earlier run)' if outcome.reused else ''}",
        "rows": len(outcome.frame), "downloads": downloads,
    }  # fmt: skip


def paragraphs(text: str) -> str:
    """Plain text as HTML: blank lines separate paragraphs, ``-`` marks lists, ``|`` tables, and backticks code.

    >>> paragraphs("a < ``b``")
    '<div class="about"><p>a &lt; <code>b</code></p></div>'
    """
    blocks = re.split(r"\n\s*\n", text.strip())
    return f'<div class="about">{"".join(_block(block) for block in blocks if block)}</div>'


def _block(block: str) -> str:
    lines = [line.strip() for line in block.splitlines()]
    if all(line.startswith("|") for line in lines):
        cells = [[_inline(cell.strip()) for cell in line.strip("|").split("|")] for line in lines if "---" not in line]
        rows = [
            "".join(f"<{tag}>{cell}</{tag}>" for cell in row)
            for tag, row in zip(["th"] + ["td"] * 99, cells, strict=False)
        ]
        return "<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"
    if lines[0].startswith("- "):
        items = re.split("^- ", "\n".join(lines), flags=re.MULTILINE)[1:]
        return "<ul>" + "".join(f"<li>{_inline(' '.join(item.split()))}</li>" for item in items) + "</ul>"
    return f"<p>{_inline(' '.join(lines))}</p>"


def _inline(text: str) -> str:
    return re.sub(r"``(.+?)``", r"<code>\1</code>", html.escape(text))
