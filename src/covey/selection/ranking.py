"""Rank groups: the first ones on the limit path, ordered by how long backward elimination keeps them."""

from __future__ import annotations

from covey.designs.rows import count_rows
from covey.limit.lockstep import Near, Paths
from covey.limit.posing import pose
from covey.limit.rows import Split
from covey.selection.criteria import spare_groups
from covey.selection.search import fitting_of
from covey.selection.selecting import Problem
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
        return _ranked_groups(problem, n_groups)


def _ranked_groups(problem: Problem, n_groups: int) -> list[int]:
    posed = pose(
        problem.design, problem.y, problem.groups, problem.weight, [problem.weight],
        [count_rows(problem.weight)], [Split((0,))], loss=problem.loss, offset=problem.offset,
        **problem.options,
    )  # fmt: skip
    near, begun = Near(posed), len(problem.always)
    paths = Paths(near, [problem.always])
    paths.advance(min(int((posed.problem.ranks > 0).sum()), n_groups + spare_groups(n_groups)))
    total = begun + paths.n_events()
    if total == begun:
        return []
    (models,) = fitting_of(near, begun).cleaned(paths, 0, [[total]], ())
    awake = paths.groups(0)
    places: list[int] = []
    # for likelihoods, only some sizes of large sets are fitted; between two of them the path's order decides
    for left in sorted(models.sets.values(), key=len):
        places += [place for place in left if place >= begun and place not in places]
    return [awake[place] for place in places[:n_groups]]
