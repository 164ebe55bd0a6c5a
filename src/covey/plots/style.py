"""What displays share: the estimators they accept, a palette for colour-blind readers, plain axes, and labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from covey.validation import last_step

# Okabe and Ito's colours, without yellow, which is too pale on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
GREY = "#B8B8B8"
MARK = "#444444"

# The most letters of a name.
LONGEST = 60

# The least distance of labels, relative to the height of the axes.
LABEL_GAP = 0.05

# What is accepted as ``ax=`` where there are several panels.
AxesLike: TypeAlias = Axes | Iterable[Axes] | None


class Display:
    """A plot on one axes, which it keeps."""

    figure_: Figure
    ax_: Axes


def fitted_step(estimator: BaseEstimator) -> BaseEstimator:
    """The fitted covey estimator that was given, or the last step of a pipeline."""
    last = last_step(estimator)
    if hasattr(last, "path_") and hasattr(last, "selected_groups_"):
        return last
    if hasattr(last, "group_table"):
        raise ValueError(f"{type(last).__name__} is not fitted: call fit first.")
    raise ValueError(
        f"{type(last).__name__} is not an estimator that this display accepts: give a GroupSparseRegressor, "
        "GroupSparseClassifier or GroupSparseCox, or a pipeline that ends in one."
    )


def unit_of(model: BaseEstimator) -> str:
    """The scale of the linear predictor, in words: of two classes, the log odds of the second."""
    loss, classes = model.loss_, [*getattr(model, "classes_", ())]
    if loss.identity_link:
        return "prediction"
    unit = {"binomial": "log odds", "cox": "log risk"}.get(loss.name, "linear predictor")
    return f"{unit} of {plain(classes[1], 12)}" if len(classes) == 2 else unit


def plain(text: object, longest: int = LONGEST) -> str:
    r"""Text for a plot: on one line, the middle of a long one left out, dollar signs without a meaning.

    >>> plain("a\n$x$"), plain("abcdefghij", 7)
    ('a \\$x\\$', 'abc…hij')
    """
    line = " ".join(str(text).split())
    if len(line) > longest:
        line = f"{line[: longest // 2]}…{line[-(longest // 2) :]}"
    return line.replace("$", r"\$")


def make_axes(ax: AxesLike, n: int, width: float = 3.6, height: float = 2.9) -> tuple[Figure, list[Axes]]:
    """``n`` axes: the given ones, or new ones in a row."""
    if ax is None:
        figure, axes = plt.subplots(1, n, figsize=(width * n, height), layout="constrained", squeeze=False)
        return figure, list(axes[0])
    given = [ax] if isinstance(ax, Axes) else list(ax)
    if len(given) != n:
        raise ValueError(f"{n} panels need {n} axes; {len(given)} were given.")
    drawn_on = given[0].get_figure(root=True)
    assert isinstance(drawn_on, Figure)
    return drawn_on, given


def colour(index: int) -> str:
    """A colour of the palette, which repeats."""
    return PALETTE[index % len(PALETTE)]


def bars(
    ax: Axes | None, names: Sequence[object], ends: ArrayLike, in_colour: Iterable[bool], left: ArrayLike = 0.0
) -> tuple[Figure, Axes]:
    """Named bars from the top down, some of them in colour and the others in grey."""
    at = np.arange(len(names))
    figure, (ax,) = make_axes(ax, 1, width=6.4, height=1.2 + 0.25 * max(at.size, 4))
    colours = [PALETTE[0] if one else GREY for one in in_colour]
    ax.barh(at, np.asarray(ends) - left, left=left, color=colours)
    ax.set_yticks(at, [plain(name) for name in names], fontsize=8)
    ax.invert_yaxis()
    return figure, ax


def label_ends(ax: Axes, names: Sequence[object], heights: ArrayLike, gap: float = LABEL_GAP) -> None:
    """Names at the right edge in the colours of their lines, moved up and then down until they do not overlap."""
    low, high = ax.get_ylim()
    order, gap = np.argsort(heights, kind="stable"), gap * (high - low)
    places = np.arange(len(order)) * gap
    places += np.maximum.accumulate(np.asarray(heights, dtype=float)[order] - places)
    places = np.minimum(places, high - gap * np.arange(len(order))[::-1])
    for i, place in zip(order.tolist(), places, strict=True):
        ax.annotate(
            str(names[i]), (1.0, place), xycoords=("axes fraction", "data"), xytext=(4, 0),
            textcoords="offset points", va="center", fontsize=8, color=colour(i), annotation_clip=False,
        )  # fmt: skip


def quiet(ax: Axes, *, title: str = "", xlabel: str = "", ylabel: str = "") -> None:
    """Label an axes and remove its top and right spines."""
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.set_title(title, fontsize=10, loc="left")
    ax.spines[["top", "right"]].set_visible(False)
