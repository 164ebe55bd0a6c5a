"""FrequencyDisplay: in how many folds each group was chosen."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from matplotlib.axes import Axes
from sklearn.base import BaseEstimator

from covey.evidence.nested_result import NestedScore
from covey.plots.style import MARK, Display, bars, fitted_step, quiet
from covey.search.agreement import fold_counts


class FrequencyDisplay(Display):
    """In how many folds each group was chosen, as bars: selected groups in colour, the others in grey.

    Groups that were chosen in no fold are not drawn. The line marks half of the folds. Selected groups below it, and
    groups above it that were not selected, depend on how the rows were split.

    Parameters
    ----------
    counts : mapping from a group's name to its number of folds
    n : int
        The number of folds.
    selected : iterable
        The groups of the model.

    Attributes
    ----------
    figure_, ax_
        After `plot`.

    Examples
    --------
    >>> from covey import GroupSparseRegressor
    >>> from covey.datasets import make_group_sparse
    >>> from covey.plots import FrequencyDisplay
    >>> data = make_group_sparse(random_state=0)
    >>> model = GroupSparseRegressor(groups=3).fit(data.X, data.y)
    >>> FrequencyDisplay.from_estimator(model).ax_.get_xlabel()
    'folds, of 5'
    """

    def __init__(self, counts: Mapping[Hashable, int], n: int, selected: Iterable[Hashable] = ()) -> None:
        self.counts, self.n, self.selected = dict(counts), n, list(selected)

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, *, ax: Axes | None = None, n_bars: int = 20) -> FrequencyDisplay:
        """Draw the folds of any of covey's three fitted estimators."""
        estimator = fitted_step(estimator)
        counts = fold_counts(estimator)
        if not counts:
            raise ValueError(
                "There are no folds to count: fit with a number of folds, such as selection=5. A dense model has every "
                "group in every fold."
            )
        return cls(counts, estimator.n_splits_, estimator._found()).plot(ax=ax, n_bars=n_bars)

    @classmethod
    def from_score(cls, score: NestedScore, *, ax: Axes | None = None, n_bars: int = 20) -> FrequencyDisplay:
        """Draw the outer folds of `covey.nested_score`: how often the repeated fit chose each group."""
        return cls(score.frequencies, score.n_folds, score.frequencies).plot(ax=ax, n_bars=n_bars)

    def plot(self, *, ax: Axes | None = None, n_bars: int = 20) -> FrequencyDisplay:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
        n_bars : int
            The most groups to draw, in order of frequency.
        """
        inside = set(self.selected)
        counts = dict.fromkeys(self.selected, 0) | {name: count for name, count in self.counts.items() if count}
        ranked = sorted(counts, key=lambda name: (-counts[name], name not in inside))
        names = ranked[:n_bars]
        self.figure_, self.ax_ = bars(ax, names, [counts[name] for name in names], (name in inside for name in names))
        self.ax_.axvline(self.n / 2, color=MARK, lw=1, ls="--")
        self.ax_.set_xlim(0, self.n)
        left = len(ranked) - len(names)
        title = "How often each group is chosen" + (f" ({left} more are not shown)" if left else "")
        quiet(self.ax_, title=title, xlabel=f"folds, of {self.n}")
        return self
