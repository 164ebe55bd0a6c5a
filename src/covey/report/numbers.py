"""Numbers as readers see them: a few significant digits and a true minus sign."""

from __future__ import annotations

import math

__all__ = ["shown", "time"]


def time(value: float) -> str:
    """A time on a path: integers in full, and a dash for NaN.

    >>> time(1234567.0), time(1.82249), time(float("nan"))
    ('1234567', '1.822', '–')
    """
    if math.isnan(value):
        return "–"
    return f"{value:.0f}" if value == round(value) else f"{value:.4g}"


def shown(value: float, digits: int = 3) -> str:
    """A number with this many significant digits; `shown` in fit.js writes the same.

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
