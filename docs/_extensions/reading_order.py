"""The order of the gallery: what most readers come for first, torch and the paper last."""

from __future__ import annotations

FIRST = (
    "point", "gene_expression", "additive_splines", "categories", "splice_sites", "counts", "multi_task", "sparse",
    "correlated",
)  # fmt: skip
LAST = ("grid_search", "diagnostics", "limits", "grouping_layers", "paper")


def reading_order(file: str) -> tuple[int, str]:
    """A sort key for the files of the gallery's folder; new ones come in the middle."""
    name = file.removeprefix("plot_").removesuffix(".py")
    if name in LAST:
        return len(FIRST) + 1 + LAST.index(name), name
    return FIRST.index(name) if name in FIRST else len(FIRST), name
