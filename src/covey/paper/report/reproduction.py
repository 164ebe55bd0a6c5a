"""The reproduction as one self-contained page: figures, claims, verdicts, settings and tables.

All inserted text is escaped. Figures are embedded as images, which cannot run scripts or affect one another, and tables
as downloads.
"""

from __future__ import annotations

import base64
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import covey
from covey.files import write_atomically
from covey.paper.experiments import Claim, Verdict
from covey.paper.experiments.registry import Mode
from covey.paper.experiments.runner import Outcome, as_csv
from covey.report.page import escape, page, paragraphs

__all__ = ["render_report", "write_report"]

TITLE = "Implicit Regularization for Group Sparsity, reproduced"
MARKS = {Verdict.HOLDS: "holds", Verdict.CODE_ONLY: "code", Verdict.FAILS: "fails"}


def write_report(outcomes: Sequence[Outcome], mode: Mode, folder: Path) -> Path:
    """Write ``index.html`` into the folder."""
    file = folder / "index.html"
    write_atomically(file, render_report(outcomes, mode).encode())
    return file


def render_report(outcomes: Sequence[Outcome], mode: Mode) -> str:
    """The page."""
    claims = [claim for outcome in outcomes for claim in outcome.claims]
    counts = {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in Verdict}
    summary = "".join(
        f'<li><span class="verdict {MARKS[verdict]}">{escape(verdict)}</span> {counts[verdict]}</li>'
        for verdict in Verdict
    )
    contents = "".join(f'<a href="#{escape(o.id)}">{escape(o.id)}</a> ' for o in outcomes)
    sections = "\n".join(_section(outcome) for outcome in outcomes)
    table = _claims_table(claims, with_id=True)
    repeats = "the paper's number of repeats" if mode == "full" else "a few repeats; use --full for the paper's number"
    body = f"""<header>
<h1>{TITLE}</h1>
<p>Every figure and table of the ICLR 2023 paper, run again: what the paper claims, what we measured, and whether the
claim holds. Where the paper's text and the authors' published code differ, both were run.
Settings: <b>{escape(mode)}</b> ({repeats}).</p>
<ul class="summary">{summary}</ul>
<nav aria-label="figures and tables">{contents}</nav>
</header>
<main>
{sections}
<section id="claims"><h2>All claims</h2>
{table}</section>
</main>
<footer>covey {escape(covey.__version__)}, Python {escape(platform.python_version())}. Verdicts: <i>holds</i>
as described in the paper's text; <i>holds in the code only</i>, that is, with the authors' code but not as described in
the text; <i>does not hold</i> in either.</footer>"""
    return page(TITLE, body, styles=("reproduction.css",))


def _section(outcome: Outcome) -> str:
    id, title = escape(outcome.id), escape(outcome.experiment.title)
    about = paragraphs(outcome.experiment.about)
    if outcome.frame is None:
        body = f'<p class="problem">Not run. {escape(outcome.problem)}</p>'
        return f'<section id="{id}"><h2><span class="id">{id}</span> {title}</h2>\n{about}\n{body}</section>'
    settings = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(_shown(value))}</td></tr>"
        for name, value in asdict(outcome.settings).items()
    )
    csv = as_csv(outcome.frame)
    svg, png = (outcome.figure[kind] for kind in ("svg", "png"))
    downloads = " ".join(
        f'<a download="{id}.{kind}" href="{_data_uri(media, content)}">{kind.upper()}</a>'
        for kind, media, content in (("csv", "text/csv", csv), ("svg", "image/svg+xml", svg), ("png", "image/png", png))
    )
    notices = "".join(f'<p class="problem">{escape(notice)}</p>' for notice in outcome.notices)
    return f"""<section id="{id}"><h2><span class="id">{id}</span> {title}</h2>
{about}
<figure><img src="{_data_uri("image/svg+xml", svg)}" alt="{title}"></figure>
{_claims_table(outcome.claims)}
{notices}
<details><summary>Settings, run time, data</summary>
<table class="settings">{settings}
<tr><th>run time</th><td>{outcome.seconds:.1f} s{" (kept from an earlier run)" if outcome.reused else ""}</td></tr>
<tr><th>rows</th><td>{len(outcome.frame)}</td></tr></table></details>
<p class="downloads">Download: {downloads}</p></section>"""


def _claims_table(claims: Sequence[Claim], with_id: bool = False) -> str:
    if not claims:
        return ""
    head = ("<th>id</th>" if with_id else "") + "<th>claim</th><th>expected</th><th>measured</th><th>verdict</th>"
    rows = []
    for claim in claims:
        first = f'<td data-label="id"><a href="#{escape(claim.id)}">{escape(claim.id)}</a></td>' if with_id else ""
        verdict = Verdict(claim.verdict)
        rows.append(
            f"<tr>{first}"
            f'<td data-label="claim">{escape(claim.claim)}</td>'
            f'<td data-label="expected">{escape(claim.expected)}</td>'
            f'<td data-label="measured">{escape(claim.measured)}</td>'
            f'<td data-label="verdict"><span class="verdict {MARKS[verdict]}">{escape(verdict)}</span></td></tr>'
        )
    return f'<table class="claims"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def _data_uri(media: str, content: bytes) -> str:
    return f"data:{media};base64,{base64.b64encode(content).decode()}"


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
