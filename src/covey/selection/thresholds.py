"""All tuning constants of the search, with their reasons."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["THRESHOLDS", "Thresholds"]


@dataclass(frozen=True)
class Thresholds:
    """Settings of the search, tuned on simulated problems that no published figure uses (decision 0041).

    Attributes
    ----------
    most_columns : float
        A path ends when its columns reach this share of the number of training rows: with more, least squares follows
        the noise.
    improvement, patience : float, int
        A path ends when the held-out error has not fallen by this share for `patience` events.
    prefixes, steady_columns : tuple of int, float
        Elimination starts from prefixes of these lengths, from the one whose columns reach this share of the rows, and
        from the whole path: if most of a path is noise, a short prefix is eliminated in a better order, and if columns
        are correlated, true groups may wake late.
    rounds : int
        The largest number of paths, each starting from the groups that the one before left.
    worthwhile : float
        A round must lower the held-out error by this share for another one to follow.
    noisy, dense : float
        Ridges on sets, and ridges on all columns, are tried if the best least-squares model leaves more than this share
        of the null model's error: with less, shrinkage gains next to nothing, and many small effects even less.
    ridges, low_ridges : tuple of float
        Penalties on sets of groups, for columns of unit variance and in units of the null model's curvature. The lower
        ones are for losses whose curvature falls as the fit improves (classes, counts).
    penalties : tuple of float
        Penalties of ridges on all columns, in units of the mean eigenvalue of the kernel matrix.
    reweightings, within : int, float
        The largest number of reweightings of ridges on all columns, for the best penalty and its neighbours. They stop
        when the error no longer falls, and do not start if it is more than `within` times the least.
    evidence : float
        The null model is kept unless the best one beats it by this many standard errors: among hundreds of candidates,
        some look a little better by chance.
    """

    most_columns: float = 0.8
    improvement: float = 0.003
    patience: int = 8
    prefixes: tuple[int, ...] = (10, 40)
    steady_columns: float = 0.6
    rounds: int = 2
    worthwhile: float = 0.02
    noisy: float = 0.01
    dense: float = 0.1
    ridges: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0)
    low_ridges: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1, 0.3)
    penalties: tuple[float, ...] = (0.01, 0.04, 0.16, 0.6, 2.5, 10.0)
    reweightings: int = 5
    within: float = 1.6
    evidence: float = 1.0


THRESHOLDS = Thresholds()
