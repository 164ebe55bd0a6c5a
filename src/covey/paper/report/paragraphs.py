"""Plain text as HTML, for the page of the reproduction."""

from __future__ import annotations

import html
import re

__all__ = ["paragraphs"]


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
    return re.sub(r"``(.+?)``", r"<code>\1</code>", html.escape(text))
