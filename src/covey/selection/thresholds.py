"""Every number of the search that could have been another one, with its reason."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["THRESHOLDS", "Thresholds"]


@dataclass(frozen=True)
class Thresholds:
    """Settings of the search; decided on simulated problems that no published figure is taken from (decision 0041).

    Attributes
    ----------
    most_columns : float
        A path ends when its groups have this share of the training rows as columns: beyond, least squares follows the
        noise, and backward elimination has nothing to go by.
    improvement, patience : float, int
        A path ends when the judged error has not fallen by this share for so many events.
    prefixes : tuple of int
        Elimination begins from the first so many groups, and from all: where most of a path is noise, a short prefix is
        eliminated in a better order.
    rounds : int
        How often a path is run at most, each time from the groups that were left before.
    worthwhile : float
        A further round or reweighting must lower the judged error by this share for another one to follow.
    noisy, dense : float
        Ridges on sets, and ridges on all columns, are tried where the best least squares model leaves more than this
        share of the null model's error: below, shrinking can gain next to nothing, and many small effects even less.
    ridges, low_ridges : tuple of float
        Penalties on sets of groups, in units of the columns' variance and of the loss's curvature without groups. The
        lower ones are for losses whose curvature falls as they fit (classes, counts).
    penalties : tuple of float
        Of ridges on all columns, in units of the mean eigenvalue of the kernel matrix.
    reweightings, within : int, float
        How often penalties on all columns are divided by the groups' norms at most, for the best penalty and its
        neighbours, as long as the error falls; not at all where it is more than `within` times the least.
    evidence : float
        The model without any group stands unless the best one beats it by this many standard errors: of hundreds of
        candidates one looks a little better than nothing by chance.
    """

    most_columns: float = 0.6
    improvement: float = 0.003
    patience: int = 8
    prefixes: tuple[int, ...] = (10, 40)
    rounds: int = 2
    worthwhile: float = 0.02
    noisy: float = 0.01
    dense: float = 0.1
    ridges: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0)
    low_ridges: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1, 0.3)
    penalties: tuple[float, ...] = (0.01, 0.04, 0.16, 0.6, 2.5, 10.0)
    reweightings: int = 5
    within: float = 1.3
    evidence: float = 1.0


THRESHOLDS = Thresholds()
