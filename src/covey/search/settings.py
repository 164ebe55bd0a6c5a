"""Every number that decides which model is chosen, with its reason.

Numerical tolerances, which only decide how many digits a result has, stay where they are used.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SETTINGS", "Settings"]


@dataclass(frozen=True)
class Settings:
    """Settings of the search, decided on simulated problems and splits that no published figure uses (decision 0041).

    Attributes
    ----------
    first_groups : float
        Group weights are fair to all sizes until about this many groups are awake, not only for the first group.
    most_columns : float
        A path ends when its columns reach this share of the number of training rows: with more, refits follow the
        noise.
    patience : int
        A path ends when the held-out error has not fallen for this many events.
    rounds : int
        The largest number of paths, each starting from the groups that the one before kept. There is no further one if
        the path began with these very groups and leaves less than `dense` of the null model's error: it would find much
        the same.
    noisy, dense : float
        Ridges on sets, and ridges on all columns, are tried if the best model on the path leaves more than this share
        of the null model's error: with less, shrinkage gains next to nothing, and many small effects even less.
    ridges : tuple of float
        Penalties on sets of groups, for columns of unit variance and in units of the null model's curvature.
    late_ridges : tuple of float
        Smaller ones that are tried besides on sets with late groups, on which least squares is not.
    ridge_sizes : float
        The sizes of sets on which ridges are tried grow by this factor: sets in between differ less than ridges do.
    separated_ridge, elimination_ridge : float
        If the minimum lies at infinity (perfectly separated classes), models have the first of these ridges, which is
        far below any that is tried. If the loss has no scale parameter (classes, counts, survival times),
        groups are eliminated in the quadratic model of a fit with the second: near separation there is hardly any
        curvature left. Groups that are always in have the second if the minimum on them alone lies at infinity: no
        candidate shrinks them more.
    column_range : float
        A ridge scales a column by its standard deviation times its range over this number of standard deviations,
        which is the range of some hundred normal values: what a few rows decide is shrunk more.
    penalties : tuple of float
        Penalties of ridges on all columns, in units of the mean eigenvalue of the kernel matrix.
    reweightings : int
        The largest number of reweightings of ridges on all columns, for the best penalty and its neighbours. They stop
        when the error no longer falls.
    least_share : float
        A group's penalty grows by at most the inverse of this per reweighting, so that no group is lost for good.
    first_penalties, hopeless : tuple of int, float
        If fits on all columns are slow, the penalties at these positions are tried on one fold first, and everything
        else only if the better error there is at most `hopeless` times the least of all candidates: on simulated
        problems the other penalties lowered it by at most a tenth, and one fold is noisier than all.
    temperature : float
        A model whose total held-out deviance is larger by this many dispersions has 1/e of the weight. The likelihood
        itself (2) trusts differences of few rows: with 4, the square root of it, the mean of models is nearly as good
        as the best of them, however many there are (Leung and Barron, 2006).
    dense_share : float
        Before any row is held out, models on all groups have this share of the weight.
    least_weight : float
        Models whose weight is below this share of the largest are left out of the mean.
    alike : float
        A recipe whose model on all rows has more than this many times the columns that it has on the training rows of
        the folds, in the mean, is no candidate: another model would be returned than was scored.
    strictness, cost : float
        Models within `strictness` standard errors of the best count as equally good if their error is larger by at most
        this share (`cost`), and the simplest of them is chosen. The null model is, whatever it costs: among hundreds of
        candidates, some look a little better by chance. Where rows are many the standard errors decide, where they are
        few or the fit is close the cost does (decision 0068).
    start_strictness : float
        The next round starts from the simplest model within this many standard errors of the best. It is less strict
        than the choice: a path wakes what its start lacks, but in another order.
    predictable : float
        Models with late groups are judged on held-out rows that least squares on each of these groups, with its
        ancestors, predicts with at most this many times the variance of the noise. Where a curve ends, rows that are
        held out are far from any prediction by chance, and a few of them would outweigh all others.
    undivided : float
        Single columns are selected within groups only if no model of groups is within this many standard errors of the
        best: there are many more models of columns, and some look a little better by chance.
    contention : float
        If the rows are dealt to folds again, recipes are scored that are within this many standard errors of the best.
    settled : float
        A mean of models has settled if leaving out a deal moves it by at most this many times the noise per row.
    criterion_columns, criterion_patience : float, int
        With an information criterion, a path ends when its columns reach this share of the rows, beyond which criteria
        extrapolate, or when the criterion has not fallen for this many events.
    spare_groups, spare_share : int, float
        How many more groups than wanted a path wakes for elimination to choose from: a number, or a share if that is
        more.
    """

    first_groups: float = 10.0
    most_columns: float = 0.8
    patience: int = 8
    rounds: int = 2
    noisy: float = 0.01
    dense: float = 0.1
    ridges: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
    late_ridges: tuple[float, ...] = (0.003,)
    ridge_sizes: float = 1.2
    separated_ridge: float = 1e-3
    elimination_ridge: float = 0.03
    column_range: float = 6.0
    penalties: tuple[float, ...] = (0.01, 0.04, 0.16, 0.6, 2.5, 10.0)
    reweightings: int = 5
    least_share: float = 1e-3
    first_penalties: tuple[int, ...] = (2, 4)
    hopeless: float = 2.0
    temperature: float = 4.0
    dense_share: float = 0.25
    least_weight: float = 2e-3
    alike: float = 1.25
    strictness: float = 1.5
    cost: float = 0.1
    start_strictness: float = 1.0
    predictable: float = 0.5
    undivided: float = 0.5
    contention: float = 3.0
    settled: float = 0.1
    criterion_columns: float = 0.5
    criterion_patience: int = 10
    spare_groups: int = 8
    spare_share: float = 0.5

    def spare(self, n_groups: int) -> int:
        """How many more groups than wanted a path wakes."""
        return max(self.spare_groups, int(self.spare_share * n_groups))


SETTINGS = Settings()
