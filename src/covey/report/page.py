"""Pages from templates: the environment, style sheets, escaping, and numbers and names as readers see them."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from covey.optional import optional

if TYPE_CHECKING:
    from jinja2 import Environment, Template

# Lines with a colour; the others are grey.
MOST_COLOURS = 7

# Longer names are shortened.
LONGEST_NAME = 120

# Exponentials of larger numbers overflow.
LARGEST_POWER = 700.0

# Lone surrogates and control characters, which HTML cannot hold.
UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def time(value: float) -> str:
    """A time on a path: integers in full, and a dash for NaN.

    >>> time(1234567.0), time(1.82249), time(float("nan"))
    ('1234567', '1.822', '–')
    """
    if math.isnan(value):
        return "–"
    return f"{value:.0f}" if value == round(value) else f"{value:.4g}"


def shown(value: float, digits: int = 3) -> str:
    """A number with this many significant digits and a true minus sign; `shown` in fit.js writes the same.

    >>> shown(0.012345), shown(-1234.5), shown(0.0), shown(2.5e-9)
    ('0.0123', '−1234', '0', '2.50e-9')
    """
    size = abs(value)
    if size == 0:
        return "0"
    if not math.isfinite(size):
        return str(value)
    exponent = math.floor(math.log10(size))
    if -4 <= exponent < 6:
        text = f"{size:.{max(0, digits - 1 - exponent)}f}"
    else:
        mantissa, power = f"{size:.{digits - 1}e}".split("e")
        text = f"{mantissa}e{int(power)}"
    return f"−{text}" if value < 0 else text


def ratio(value: float) -> float:
    """The exponential of a coefficient, without overflow; `ratio` in fit.js gives the same."""
    return math.exp(min(max(value, -LARGEST_POWER), LARGEST_POWER))


def per_cent(share: float, digits: int = 2) -> str:
    """A share of the width or height, for a style.

    >>> per_cent(0.12345)
    '12.35%'
    """
    return f"{100 * share:.{digits}f}%"


def colour(index: int) -> str:
    """The class of a line: one of the colours, then grey."""
    return f"c{index + 1}" if index < MOST_COLOURS else "grey"


def short(name: object, longest: int = LONGEST_NAME) -> str:
    """A name as text; the middle of a very long one is left out.

    >>> short("cholesterol", 10), short("log_triglycerides~", 10)
    ('cholesterol', 'log_t…ides~')
    """
    text = str(name)
    return text if len(text) <= longest + 1 else f"{text[: longest // 2]}…{text[-longest // 2 :]}"


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


def page(title: str, *, name: str = "page.html", styles: tuple[str, ...] = (), script: str = "", **data: object) -> str:
    """A complete page from a template that extends ``page.html``: the common style, others, and at most one script.

    The content policy allows this script only and forbids loading anything.
    """
    code = asset(script) if script else ""
    allowed = f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'" if code else "'none'"
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    style = "\n".join(asset(sheet) for sheet in ("page.css", *styles))
    text = template(name).render(title=title, policy=policy, style=style, script=code, **data)
    return UNPRINTABLE.sub("\ufffd", text)
