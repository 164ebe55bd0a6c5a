"""Pages from templates: the environment, style sheets, escaping, and conversion of plain text to HTML."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from covey.optional import optional
from covey.report.numbers import LONGEST_NAME, colour, per_cent, ratio, short, shown, time

if TYPE_CHECKING:
    from jinja2 import Environment, Template

__all__ = ["asset", "page", "script_json", "template"]

# Lone surrogates and control characters, which HTML cannot hold.
UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def asset(name: str) -> str:
    """A style sheet or script of `covey/report/assets`."""
    return files("covey.report").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    """The templates, in which every inserted value is escaped."""
    with optional("A report"):
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup

    def name(value: object, longest: int = LONGEST_NAME) -> str:
        """A name as HTML that keeps its direction."""
        return Markup("<bdi>{}</bdi>").format(short(value, longest))

    environment = Environment(
        loader=PackageLoader("covey.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "colour": colour, "name": name, "per_cent": per_cent, "ratio": ratio, "shown": shown, "time": time
    }  # fmt: skip
    return environment


def template(name: str) -> Template:
    """A template of `covey/report/templates`."""
    return _environment().get_template(name)


def script_json(value: object) -> str:
    r"""Plain data as JSON that is safe inside a script element.

    >>> script_json(["</script>", "<!--", "\u2028"])
    '["\\u003c/script\\u003e","\\u003c!--","\\u2028"]'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def page(
    title: str, body: str = "", *, styles: tuple[str, ...] = (), script: str = "", name: str = "page.html",
    **data: object,
) -> str:  # fmt: skip
    """A complete page with the common style, the named styles, and at most one script.

    The page is a template that extends ``page.html``, or that template itself around a body of HTML. The content policy
    allows this script only and forbids loading anything.
    """
    code = asset(script) if script else ""
    allowed = f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'" if code else "'none'"
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    style = "\n".join(asset(sheet) for sheet in ("page.css", *styles))
    text = template(name).render(title=title, body=body, policy=policy, style=style, script=code, **data)
    return UNPRINTABLE.sub("\ufffd", text)
