"""Numbers and names as readers see them; the filters of the templates."""

from __future__ import annotations

import math

__all__ = ["LONGEST_NAME", "MOST_COLOURS", "colour", "per_cent", "ratio", "short", "shown", "time"]

# Lines with a colour; the others are grey.
MOST_COLOURS = 7

# Longer names are shortened.
LONGEST_NAME = 120

# Exponentials of larger numbers overflow.
LARGEST_POWER = 700.0


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
