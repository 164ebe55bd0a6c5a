"""Common factors taken out of X and of the response, and fitted by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from covey.designs import AdjustedDesign, Design, Factors, count_factors, find_factors
from covey.groups import Groups
from covey.stopping.scorer import Scorer
from covey.validation import FloatArray, whole

__all__ = ["Adjustment", "adjust", "read_factors"]


@dataclass(frozen=True)
class Adjustment:
    """What is left of a problem once its common factors are fitted.

    Attributes
    ----------
    factors : Factors
    effects : ndarray, shape (k,)
        Of the factors on the response.
    design : AdjustedDesign
        X less what the factors explain.
    y : ndarray, shape (n,)
        The response less what they explain.
    """

    factors: Factors
    effects: FloatArray
    design: AdjustedDesign
    y: FloatArray

    def scorer(self, design: Design, y: Any, weight: Any) -> Scorer:
        """Other rows, less the same factors."""
        adjusted = AdjustedDesign.of(design, self.factors)
        return Scorer(adjusted, y - adjusted.scores @ self.effects, weight, whole=lambda: Scorer(design, y, weight))


def adjust(design: Design, y: FloatArray, weight: FloatArray, k: int, fit_intercept: bool) -> Adjustment | None:
    """Find k factors and fit them; None where X has no direction."""
    q = design.weights(weight)
    factors = find_factors(design, q, k, fit_intercept=fit_intercept)
    if factors.n_factors == 0:
        return None
    adjusted = AdjustedDesign.of(design, factors, q)
    # a response of 1e200 times its weights is still a number, but not its square
    effects = adjusted.scores.T @ (q * y)
    return Adjustment(factors, effects, adjusted, y - adjusted.scores @ effects)


def read_factors(factors: Any, design: Design, weight: Any, groups: Groups, fit_intercept: bool) -> int:
    """The number of factors that ``factors=`` asks for."""
    if isinstance(factors, str):
        if factors != "auto":
            raise ValueError(f"factors must be 'auto' or a whole number of at least 0, not {factors!r}.")
        if not _can_adjust(design):
            return 0
        q = design.weights(weight)
        return count_factors(design, q, groups.members, groups.starts, fit_intercept=fit_intercept)
    k = whole(factors, "factors", least=0)
    if k and not _can_adjust(design):
        raise ValueError(
            f"factors = {k} needs columns of X at hand, and {type(design).__name__} only streams them. Use factors=0."
        )
    return min(k, design.shape[0] - 1, design.shape[1])


def _can_adjust(design: Design) -> bool:
    """Whether a few columns of X can be held."""
    return design.reads_columns
