"""The look of our pages, light and dark, wide and narrow; and plain text to HTML."""

from __future__ import annotations

import html
import re

__all__ = ["STYLE", "paragraphs"]

STYLE = """
:root { color-scheme: light dark; --ink: #1d1f21; --soft: #5c6166; --paper: #ffffff; --line: #dfe3e6; --tint: #f5f7f8;
  --link: #00598a; --holds: #00694d; --code: #8a5a00; --fails: #a83200; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e6e3; --soft: #a8adb2; --paper: #16181a; --line: #34383c; --tint: #1f2225; --link: #7cc4f0;
    --holds: #5fd3ab; --code: #f0b84a; --fails: #ff9466; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem 1.25rem 3rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 Charter, "Bitstream Charter", Georgia, serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0; }
h2 { font-size: 1.25rem; margin: 0 0 .6rem; }
h2 .id { color: var(--soft); font: 600 .85rem ui-monospace, Menlo, Consolas, monospace; margin-right: .4rem; }
a { color: var(--link); }
section { border-top: 1px solid var(--line); padding: 1.6rem 0 .6rem; }
nav { font: .85rem ui-monospace, Menlo, Consolas, monospace; line-height: 2; }
nav a { margin-right: .5rem; }
figure { margin: 1rem 0; background: #fff; border-radius: 4px; padding: .5rem; overflow-x: auto; }
figure img { display: block; width: 100%; height: auto; min-width: 30rem; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; line-height: 1.4; }
th, td { text-align: left; vertical-align: top; padding: .4rem .6rem .4rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
thead th { color: var(--soft); font-weight: 600; }
.claims td[data-label=verdict] { min-width: 7rem; }
.about { color: var(--ink); }
.about ul { padding-left: 1.2rem; }
.verdict { font: 600 .8rem system-ui, sans-serif; white-space: nowrap; }
.verdict::before { margin-right: .35em; }
.holds { color: var(--holds); } .holds::before { content: "✓"; }
.code { color: var(--code); } .code::before { content: "◐"; }
.fails { color: var(--fails); } .fails::before { content: "✗"; }
.summary { display: flex; flex-wrap: wrap; gap: .4rem 1.6rem; list-style: none; padding: 0; }
.problem { background: var(--tint); border-left: 3px solid var(--code); padding: .6rem .8rem; overflow-wrap: anywhere; }
.settings { width: auto; font: .82rem ui-monospace, Menlo, Consolas, monospace; }
.settings th { padding-right: 1.5rem; font-weight: 400; color: var(--soft); }
details { margin: .8rem 0; } summary { cursor: pointer; color: var(--soft); font-size: .9rem; }
.downloads { font-size: .85rem; color: var(--soft); } .downloads a { margin-left: .4rem; }
code { font: .9em ui-monospace, Menlo, Consolas, monospace; background: var(--tint); padding: 0 .2em; }
footer { border-top: 1px solid var(--line); color: var(--soft); font-size: .85rem; padding-top: 1rem; }
@media (max-width: 42rem) {
  .claims thead { display: none; }
  .claims tr { display: block; padding: .5rem 0; border-bottom: 1px solid var(--line); }
  .claims td { display: block; border: 0; padding: .1rem 0; }
  .claims td::before { content: attr(data-label) ": "; color: var(--soft); }
  .claims td[data-label=claim] { font-weight: 600; } .claims td[data-label=claim]::before { content: ""; } }
"""


def paragraphs(text: str) -> str:
    """Plain text as HTML: blank lines part paragraphs, lines with ``-`` are lists, with ``|`` tables, ticks are code.

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
        return "<ul>" + "".join(f"<li>{_inline(item)}</li>" for item in _items(lines)) + "</ul>"
    return f"<p>{_inline(' '.join(lines))}</p>"


def _items(lines: list[str]) -> list[str]:
    items: list[str] = []
    for line in lines:
        if line.startswith("- "):
            items.append(line[2:])
        else:
            items[-1] += " " + line
    return items


def _inline(text: str) -> str:
    return re.sub(r"``(.+?)``", r"<code>\1</code>", html.escape(text, quote=False))
