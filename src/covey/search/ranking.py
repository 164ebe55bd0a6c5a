"""Rank groups: the first ones on the limit path, ordered by how long backward elimination keeps them."""

from __future__ import annotations

from covey.designs.rows import count_rows
from covey.search.cleaned import clean
from covey.search.paths import Paths
from covey.search.posed import pose
from covey.search.problem import Parts, Problem
from covey.search.search import trainings_of
from covey.search.table import Table
from covey.threads import fitting_threads

__all__ = ["ranked_groups"]


def ranked_groups(problem: Problem, n_groups: int) -> list[int]:
    """The `n_groups` groups that backward elimination keeps longest among the first on the limit path, best first.

    A group that resembles a true one accumulates correlation while the true one is asleep, and wakes soon after it
    although it explains nothing more. Elimination compares what each group adds to the others, and so drops it again.

    Parameters
    ----------
    problem : Problem
        Rows of weight zero are ignored.
    n_groups : int
        Groups that are always in the model do not count and are not listed. Fewer are returned if nothing is left to
        explain.
    """
    with fitting_threads(problem.design.shape, problem.design.on_device):
        posed = pose(problem, Parts.everything(problem.weight, count_rows(problem.weight)))
        table, begun = Table(posed), len(problem.always)
        paths = Paths(table, [problem.always])
        paths.advance(n_groups + posed.settings.spare(n_groups))
        (training,) = trainings = trainings_of(table, problem.always)
        clean(trainings, paths, 0, ())
        awake, places = paths.groups(0), list[int]()
        for left in sorted(training.rounds[0].sets.values(), key=len):
            places += [place for place in left if place >= begun and place not in places]
        return [awake[place] for place in places[:n_groups]]
