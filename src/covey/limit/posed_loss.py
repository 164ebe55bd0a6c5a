"""Any other loss: the rows of the near groups are held in memory, and gradients are products with X."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.designs import Design
from covey.designs.rows import standard_response
from covey.layout import spans
from covey.limit.likelihood import Likelihood
from covey.limit.loss_rows import LossRows
from covey.limit.posed import Posed
from covey.limit.response import Response
from covey.losses import Huber, Loss, MultiSquared
from covey.preprocess.factoring import times_factors
from covey.validation import FloatArray

__all__ = ["Observed", "PosedLoss", "pose_response"]

# The largest number of rows times near columns held in memory (2 GiB), and the fewest near columns.
HELD, FEWEST_COLUMNS = 2**28, 50

# The most numbers that one product with X may return.
PRODUCTS = 2**26


@dataclass(frozen=True)
class Observed:
    """A response in the units in which it is fitted.

    Attributes
    ----------
    response : Response
        All rows, with weights that add up to one.
    level, scale : ndarray, shape (n_outputs of the loss,)
        The response was centred at `level` and divided by `scale`: 0 and 1 unless the link is the identity.
    null_scores : ndarray, shape (n_rows, n_outputs)
        Minus the derivative of the loss of each row at the null model.
    """

    response: Response
    level: FloatArray
    scale: FloatArray
    null_scores: FloatArray

    def read(self, y: Any, weight: FloatArray, offset: Any) -> Response:
        """The response of other rows in the same units."""
        loss, m = self.response.loss, self.level.size
        given = np.asarray(y, dtype=float)
        shift = np.zeros((len(given), m))
        if offset is not None:
            shift += np.asarray(offset, dtype=float).reshape(len(given), -1)
        if isinstance(loss, MultiSquared | Huber):
            given, shift = (given - self.level) / self.scale, shift / self.scale
        return Response(loss, given, weight, shift)


def pose_response(loss: Loss, design: Design, y: Any, weight: Any, offset: Any, intercept: bool) -> Observed:
    """The response in working units, with its scores at the null model."""
    n = design.shape[0]
    if n * FEWEST_COLUMNS > HELD:
        raise ValueError(
            f"The {loss.name} loss keeps columns of the most promising groups in memory, and {design.name} has {n:,} "
            f"rows; at most {HELD // FEWEST_COLUMNS:,} can be held. Fit a sample of the rows, or use loss='squared'."
        )
    given, q = np.asarray(y, dtype=float), np.asarray(weight, dtype=float)
    q = q / q.sum()
    m = given.shape[1] if loss.vector else 1
    level, scale = np.zeros(m), np.ones(m)
    if isinstance(loss, Huber) and intercept:
        # a large mean would cost the residuals digits
        level = np.array([q @ (given if offset is None else given - np.asarray(offset, dtype=float).reshape(n))])
    if isinstance(loss, MultiSquared):
        shown = given if offset is None else given - np.asarray(offset, dtype=float).reshape(n, -1)
        standard = [standard_response(column, q, centre=intercept) for column in shown.T]
        level, scale = np.array([own[1] for own in standard]), np.array([own[2] for own in standard])
    blank = Observed(Response(loss, given, q, np.zeros((n, m))), level, scale, np.empty((0, m)))
    response = blank.read(given, q, offset)
    scores = response.score(response.at_null(intercept))
    return Observed(
        response, level, scale, np.divide(scores, q[:, None], out=np.zeros_like(scores), where=q[:, None] > 0)
    )


@dataclass(frozen=True)
class PosedLoss(Posed):
    """One response with any loss, or several responses.

    Attributes
    ----------
    observed : Observed
    """

    observed: Observed

    @property
    def level(self) -> FloatArray:
        """Zero, or the means of several responses."""
        return self.observed.level

    @property
    def scale(self) -> FloatArray:
        """One, or the standard deviations of several responses."""
        return self.observed.scale

    @property
    def contrasts(self) -> FloatArray:
        """The matrix that maps working predictors to those of the loss."""
        return self.observed.response.contrasts

    def near_columns(self) -> tuple[int, int]:
        """As in `Posed`, limited to the columns that fit in memory."""
        some, every = super().near_columns()
        most = HELD // self.problem.design.shape[0]
        return min(some, most), min(every, most)

    def null_norms(self) -> FloatArray:
        """The norm of the gradient on each group at the null model."""
        q, scores = self.observed.response.weight, self.observed.null_scores
        if self.factors is not None:
            F = self.factors.scores(self.problem.design)
            scores = scores - F @ (F.T @ (q[:, None] * scores))
        return self._norms([(q[:, None] * scores)])[0]

    def rows(self, near: NDArray[np.intp]) -> LossRows:
        """The table of some groups, including the validation rows."""
        problem, response, other = self.problem, self.observed.response, self.validation
        parts = [np.asarray(weight) for weight in self.parts]
        weight = np.sum(parts, axis=0)
        part = np.where(weight > 0, np.argmax([own > 0 for own in parts], axis=0), -1)
        scores, response = self._scores(problem.design), response.weighted(weight)
        if other is not None:
            judges = self.observed.read(other.y, np.asarray(other.weight, dtype=float), other.offset)
            scores = np.concatenate([scores, self._scores(other.design)])
            part = np.concatenate([part, np.where(judges.weight > 0, len(parts), -1)])
            response = Response(
                response.loss,
                np.concatenate([response.y, judges.y]),
                np.concatenate([response.weight, judges.weight]),
                np.concatenate([response.offset, judges.offset]),
            )
        extras = np.hstack([np.ones((len(scores), int(self.intercept))), scores])
        return LossRows(self._working(near), extras, response, part, problem.ranks[near], self.splits[-1])

    def wider_rows(self, rows: LossRows, near: NDArray[np.intp], n_known: int) -> LossRows:
        """The table of some groups, given the table of the first `n_known` of them."""
        new = near[n_known:]
        return rows.widened(self._working(new), self.problem.ranks[new])

    def objective(self, rows: LossRows, split: int) -> Likelihood:
        """The loss on the training rows of a split."""
        return Likelihood(rows, self.splits[split], self.intercept)

    def gradients(
        self,
        near: NDArray[np.intp],
        rows: LossRows,
        objectives: Sequence[Likelihood],
        segments: Sequence[tuple[int, int]],
    ) -> tuple[NDArray[np.intp], FloatArray]:
        """Gradient norms of all groups at models of some paths."""
        which: list[int] = []
        scores = []
        for split, (first, last) in enumerate(segments):
            response = objectives[split].response
            for m in range(first, last + 1):
                which.append(split)
                scores.append(response.score(objectives[split].predictor(m)) / response.total_weight)
        return np.array(which, dtype=np.intp), self._norms(scores)

    def _norms(self, scores: Sequence[FloatArray]) -> FloatArray:
        """The norm of ``X' scores`` on each group in working coordinates, over all outputs."""
        problem = self.problem
        n, p = problem.design.shape
        out = np.empty((len(scores), problem.ranks.size))
        at_once = max(1, PRODUCTS // (p * len(self.contrasts)))
        for first in range(0, len(scores), at_once):
            some = scores[first : first + at_once]
            # validation rows do not enter a gradient
            R = np.concatenate([own[:n].T for own in some])
            squares = problem.design.gradient_norms(problem, R) ** 2
            out[first : first + len(some)] = np.sqrt(squares.reshape(len(some), -1, problem.ranks.size).sum(axis=1))
        return out

    def _working(self, near: NDArray[np.intp]) -> FloatArray:
        """The working columns of some groups, including the validation rows."""
        own = self._on_design(self.problem.design, near)
        return own if self.validation is None else np.concatenate([own, self._on_design(self.validation.design, near)])

    def _on_design(self, design: Design, near: NDArray[np.intp]) -> FloatArray:
        """The working columns of some groups on the rows of a design."""
        problem = self.problem
        own = spans(problem.layout.starts, near)
        X = design.take(problem.layout.members[own])
        design.refuse(problem.layout.members[own][~np.isfinite(X).all(axis=0)])
        mean = problem.mean[own]
        if mean.any():
            X = X - mean
        return times_factors(X, problem.factors_of(near)[0], problem.layout.sizes[near], problem.ranks[near])

    def _scores(self, design: Design) -> FloatArray:
        return np.empty((design.shape[0], 0)) if self.factors is None else self.factors.scores(design)
