"""Colours of the pages stand out from what they stand on, light and dark (WCAG 2.2: 1.4.3 and 1.4.11)."""

import re

import pytest

from covey.report.page import asset

TEXT, GRAPHIC = 4.5, 3.0
ROLES = {
    "ink": TEXT,
    "soft": TEXT,
    "link": TEXT,
    "mark": TEXT,
    "holds": TEXT,
    "code": TEXT,
    "fails": TEXT,
    "accent": GRAPHIC,
    "grey": GRAPHIC,
    "bar": GRAPHIC,
    **{f"c{i}": GRAPHIC for i in range(1, 8)},
}


def variables(dark: bool) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in ("page.css", "fit.css"):
        light, _, rest = asset(name).partition("@media screen and (prefers-color-scheme: dark)")
        for part in (light, rest) if dark else (light,):
            block = re.search(r":root \{(.*?)\}", part, re.DOTALL)
            assert block
            found |= dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block.group(1)))
    return found


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_the_measure():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_colour_stands_out(dark):
    colours = variables(dark)
    assert set(ROLES) <= set(colours)
    for name, least in ROLES.items():
        assert contrast(colours[name], colours["paper"]) >= least, name
        if least == TEXT:
            assert contrast(colours[name], colours["tint"]) >= least, name


def test_colours_of_groups_differ_also_in_their_dashes():
    css = asset("fit.css")
    styles = {i: re.search(rf"\.c{i} \{{ stroke: var\(--c{i}\);([^}}]*)\}}", css).group(1).strip() for i in range(1, 8)}
    dashed = [style for style in styles.values() if style]
    assert len(dashed) == len(set(dashed)) == 3
