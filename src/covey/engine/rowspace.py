"""The exact path without a Gram matrix: what every group needs comes from two products with X.

With every group stepped the Gram matrix is soon p x p. Fetching it costs ``n p^2`` and multiplying by it ``p^2``; the
products ``X b`` and ``X' r`` cost ``2 n p`` and hold nothing. The steps, and so the path, are those of `ExactPath`.
"""

from __future__ import annotations

from covey.engine.exact import ExactPath
from covey.engine.growth import phi_of
from covey.engine.settings import ENTER, Settings
from covey.preprocess import WorkingProblem
from covey.validation import FloatArray

__all__ = ["RowSpacePath", "all_awake", "prefers_rows"]

# How long the first group may sleep for all to count as awake from the start, in units of the time in which its
# magnitude doubles or so near the top. For N = 2 it starts at no less than 1/150 of the norm of waking.
SHORT_SLEEP = 2.5

# Bytes beyond which no Gram matrix is held, whatever it would save.
LARGEST_GRAM = 2**30


class RowSpacePath(ExactPath):
    """One run of the exact engine in row space: `run` does it, and the attributes then say where it ended."""

    def _fetch(self) -> None:
        """Gram rows are not needed."""

    def _gram_product(self, w: FloatArray) -> FloatArray:
        return self.problem.gram_product(w)


def all_awake(settings: Settings) -> bool:
    """Whether all groups are awake from the start, or will be within a few iterations."""
    N, top, waking = settings.depth, settings.enter / ENTER, settings.enter ** (1.0 / settings.depth)
    sleep = phi_of(waking, N) - phi_of(settings.start, N)
    return bool(sleep * top ** ((N - 2.0) / N) <= SHORT_SLEEP)


def prefers_rows(problem: WorkingProblem) -> bool:
    """Whether the exact path is better run in row space than through Gram rows, which all groups need in time."""
    n, r = problem.design.shape[0], problem.n_columns
    small = r * r * problem.design.dtype.itemsize <= LARGEST_GRAM
    return problem.design.reads_columns and (2 * n < r or not small)
