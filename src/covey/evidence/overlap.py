"""Which other group each selected group is most easily confused with, computed exactly from a few products with X."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.designs import RepeatedColumns, as_design
from covey.groups import Groups
from covey.preprocess import WorkingProblem, prepare
from covey.validation import MatrixLike, PerRow

# The largest number of entries of Gram rows held at once (160 MB): the strongest groups that fit are examined.
MOST_NUMBERS = 20_000_000

# Two groups with at least this canonical correlation carry much the same information; it must also be well above what
# groups of their sizes reach by chance.
CLOSE = 0.7


@dataclass(frozen=True)
class Overlap:
    """A selected group, another one, and the largest canonical correlation between them.

    It is 1 if one group's columns exactly predict some combination of the other's; `chance` is the value that unrelated
    groups of these sizes reach with this many rows.
    """

    group: int
    other: int
    correlation: float
    chance: float

    @property
    def is_close(self) -> bool:
        """Whether the two carry much the same information; False if chance alone makes any two groups alike."""
        return self.chance < 1 and self.correlation >= max(CLOSE, (1 + self.chance) / 2)


@dataclass(frozen=True)
class Overlaps:
    """For each examined group the closest other one, largest correlation first; and groups of dependent columns."""

    n_rows: int
    pairs: tuple[Overlap, ...]
    dependent: tuple[int, ...]


def find_overlaps(
    X: MatrixLike, groups: Groups, selected: NDArray[np.intp], weight: PerRow = None, *, centre: bool = True
) -> Overlaps:
    """Compare each selected group, the most important first, with every other group, on rows with these weights.

    If the columns of every group are orthonormal, the norm of ``Z_l'Z_m/n`` is the largest canonical correlation of two
    groups; one product with X gives all of them for one group. `centre` tells whether the model has an intercept.
    """
    problem, groups = _working(X, groups, weight, fit_intercept=centre)
    n_rows = int(np.count_nonzero(problem.q))
    dependent = tuple(int(l) for l in selected if problem.ranks[l] < groups.sizes[l])
    n_numbers = np.cumsum(problem.ranks[selected]) * problem.n_columns
    examined = [int(l) for l in selected[n_numbers <= MOST_NUMBERS] if problem.ranks[l] > 0]
    if groups.n_groups < 2 or not examined:
        return Overlaps(n_rows, (), dependent)
    ends = np.cumsum(problem.ranks[examined])
    found: dict[frozenset[int], Overlap] = {}
    for l, block in zip(examined, np.split(problem.gram_rows(examined), ends[:-1]), strict=True):
        closest = _closest(problem, l, block)
        found.setdefault(frozenset((l, closest.other)), closest)
    pairs = tuple(sorted(found.values(), key=lambda pair: -pair.correlation))
    return Overlaps(n_rows, pairs, dependent)


def _working(X: MatrixLike, groups: Groups, weight: PerRow, **options: Any) -> tuple[WorkingProblem, Groups]:
    """The columns in working coordinates, with a dummy response."""
    design = as_design(X)
    if groups.overlapping:
        design, groups = RepeatedColumns(design, groups.members), groups.apart()
    return prepare(design, np.zeros(design.shape[0]), groups, sample_weight=weight, **options)


def _closest(problem: WorkingProblem, l: int, block: NDArray[np.float64]) -> Overlap:
    """The group with the largest norm in one group's Gram rows; Frobenius norms, as upper bounds, prune the search."""
    bounds = problem.group_norms(np.linalg.norm(block, axis=0))
    best, other = -1.0, -1
    for m in np.argsort(-bounds, kind="stable"):
        if m == l:
            continue
        if bounds[m] <= best:
            break
        between = block[:, problem.starts[m] : problem.starts[m + 1]]
        value = float(np.linalg.norm(between, 2)) if between.size else 0.0
        if value > best:
            best, other = value, int(m)
    chance = chance_correlation(int(problem.ranks[l]), int(problem.ranks[other]), int(np.count_nonzero(problem.q)))
    return Overlap(l, other, min(best, 1.0), chance)


def chance_correlation(a: int, b: int, n: float) -> float:
    """The largest canonical correlation of unrelated groups of `a` and `b` columns with `n` rows, in the limit.

    This is Wachter's upper edge; 1 if the two groups together have at least as many columns as rows.

    >>> round(chance_correlation(5, 5, 120), 2), chance_correlation(60, 60, 100)
    (0.4, 1.0)
    """
    if a + b >= n:
        return 1.0
    p, q = a / n, b / n
    return float(np.sqrt(p * (1 - q)) + np.sqrt(q * (1 - p)))


def inner_coherence(
    X: MatrixLike, groups: Groups, selected: NDArray[np.intp], weight: PerRow = None
) -> list[tuple[int, float]]:
    """How far each selected group's correlation matrix is from the identity, ``norm(R_l - I)``, worst first."""
    problem, _ = _working(X, groups, weight, standardize="column")
    found = []
    for l in selected:
        Z = problem.working_columns(np.array([l]))
        eigenvalues = np.linalg.eigvalsh(Z.T @ (problem.q[:, None] * Z))
        found.append((int(l), float(np.abs(eigenvalues - 1.0).max(initial=0.0))))
    return sorted(found, key=lambda item: -item[1])
