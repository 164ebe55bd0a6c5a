"""Formulas as MathML, which every browser shows by itself: pages need no script from a server."""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx


def mathml(node: nodes.Element, *, as_block: bool) -> str:
    """The formula, or its source where docutils does not know a command in it (docstrings of other libraries)."""
    try:
        return str(tex2mathml(node.astext(), as_block=as_block))
    except MathError:
        return f"<code>{escape(node.astext())}</code>"


def inline(writer: Any, node: nodes.math) -> None:
    """A formula in a line of text."""
    writer.body.append(mathml(node, as_block=False))
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    """A formula of its own."""
    writer.body.append(f'<div class="math">{mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the writer; `html_math_renderer = "mathml"` chooses it."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
