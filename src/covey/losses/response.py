"""Response: what an estimator was given as y, in the form that its loss takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from covey.losses.offsets import read_offset
from covey.validation import FloatArray

if TYPE_CHECKING:
    from covey.losses.base import Loss

__all__ = ["Response"]


@dataclass(frozen=True)
class Response:
    """A checked response and the loss that fits it.

    Attributes
    ----------
    loss : Loss
        Not always the loss that read the response: squared loss of several columns is `MultiSquared`.
    y : ndarray of float64, shape (n_rows,) or (n_rows, n_outputs)
        For survival times, rows of (start, stop, event, stratum).
    labels : ndarray or None
        The labels of classes or strata, in the order of their codes.
    columns : bool
        Whether a model of this response has one row of coefficients per output, even if there is one output.
    """

    loss: Loss
    y: Any
    labels: NDArray[Any] | None = None
    columns: bool = False

    @property
    def n_outputs(self) -> int:
        """The number of linear predictors per row."""
        return int(self.y.shape[1]) if self.loss.vector else 1

    def read_offset(self, offset: Any) -> FloatArray | None:
        """An offset in the shape of the linear predictor, (n_rows,) or (n_rows, n_outputs); None for None."""
        if offset is None:
            return None
        shift = read_offset(offset, len(self.y), self.n_outputs, self.loss)
        return shift if self.loss.vector else shift[:, 0]
