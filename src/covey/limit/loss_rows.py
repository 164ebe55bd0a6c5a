"""LossRows: the rows of some groups in working coordinates, for losses that need every row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from covey.limit.newton import ROUGH_TOLERANCE, TOLERANCE
from covey.limit.response import Response
from covey.limit.rows import Rows, Split
from covey.validation import FloatArray

__all__ = ["LossRows"]


class LossRows(Rows):
    """Working columns of some groups on all training and scoring rows.

    Parameters
    ----------
    Z : ndarray, shape (n_rows, n_columns)
        Columns group by group.
    extras : ndarray, shape (n_rows, n_extras)
        A column of ones if there is an intercept, and the scores of common factors.
    response : Response
        With weights for all rows.
    part : ndarray of int, shape (n_rows,)
        The part of each row; -1 for rows of weight zero.
    ranks : ndarray of int, shape (n_groups,)
        The number of columns of each group.
    final : Split
        The split whose models are returned to the user.
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
        super().__init__(ranks)
        self.Z, self.extras, self.response, self.part = np.asfortranarray(Z), extras, response, part
        self.final = final

    def widened(self, more: FloatArray, ranks: NDArray[np.intp]) -> LossRows:
        """These rows with the working columns of further groups appended."""
        Z, ranks = np.hstack([self.Z, more]), np.concatenate([self.ranks, ranks])
        return LossRows(Z, self.extras, self.response, self.part, ranks, self.final)

    def training(self, split: Split) -> Response:
        """The response with weight zero outside the training rows of a split."""
        return self.response.weighted(np.where(np.isin(self.part, split.train), self.response.weight, 0.0))

    def judging(self, split: Split) -> NDArray[np.intp]:
        """The rows that models of a split are scored on."""
        return np.flatnonzero(np.isin(self.part, split.judging(self.response.loss.coupled)))

    def weight(self, parts: Sequence[int]) -> float:
        """The total weight of the rows of some parts."""
        return float(self.response.weight[np.isin(self.part, list(parts))].sum())

    def tolerance(self, split: Split) -> float:
        """The tolerance of the models of a split."""
        return TOLERANCE if split == self.final else ROUGH_TOLERANCE
