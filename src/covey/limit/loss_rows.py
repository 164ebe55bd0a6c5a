"""LossRows: the rows of some groups in working coordinates, for losses that have to see every row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from covey.limit.newton import ROUGH_TOLERANCE, TOLERANCE
from covey.limit.response import Response
from covey.limit.rows import Split
from covey.preprocess.layout import offsets, spans
from covey.validation import FloatArray

__all__ = ["LossRows"]


class LossRows:
    """Working columns of some groups on all rows that are fitted or judged.

    Parameters
    ----------
    Z : ndarray, shape (n_rows, n_columns)
        One group after another.
    extras : ndarray, shape (n_rows, n_extras)
        Scores of common factors, and a column of ones where there is an intercept.
    response : Response
        With the weights of all rows.
    part : ndarray of int, shape (n_rows,)
        The part that each row belongs to.
    ranks : ndarray of int, shape (n_groups,)
        The number of columns of each group.
    final : Split
        The one whose models are shown.
    """

    def __init__(
        self,
        Z: FloatArray,
        extras: FloatArray,
        response: Response,
        part: NDArray[np.intp],
        ranks: NDArray[np.intp],
        final: Split,
    ) -> None:
        self.Z, self.extras, self.response, self.part, self.ranks = Z, extras, response, part, ranks
        self.final = final
        self.starts = offsets(ranks)
        self.n_columns = int(self.starts[-1])

    @property
    def n_groups(self) -> int:
        """How many groups there are."""
        return self.ranks.size

    def columns(self, groups: Sequence[int] | NDArray[np.intp]) -> NDArray[np.intp]:
        """The columns of some groups, one group after another."""
        return spans(self.starts, np.asarray(groups, dtype=np.intp))

    def training(self, split: Split) -> Response:
        """The response with weights for the rows that a split is fitted on; zero for the others."""
        return self.response.weighted(np.where(np.isin(self.part, split.train), self.response.weight, 0.0))

    def judging(self, split: Split) -> NDArray[np.intp]:
        """The rows that judge a split."""
        return np.flatnonzero(np.isin(self.part, split.test))

    def weight(self, parts: Sequence[int]) -> float:
        """The total weight of the rows of some parts."""
        return float(self.response.weight[np.isin(self.part, list(parts))].sum())

    def tolerance(self, split: Split) -> float:
        """How exact the models of a split have to be."""
        return TOLERANCE if split == self.final else ROUGH_TOLERANCE
