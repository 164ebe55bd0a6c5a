"""Groups to keep in every model, named by group, term or column."""

from __future__ import annotations

from typing import Any

from covey.tables import TableError, apart
from covey.tables.complaint import near
from covey.workflow.problem import Problem

__all__ = ["read_always"]


def read_always(wanted: tuple[str, ...], problem: Problem) -> list[Any]:
    """The groups with these names, or with table columns of these names. With ``--groups SIZE`` names are numbers."""
    groups = problem.groups
    names = {str(name): name for name in groups.names}
    found = []
    for given in apart(wanted, {*names, *problem.sources, *problem.X.columns}):
        if given in names:
            found.append(names[given])
            continue
        columns = [j for j, source in enumerate(problem.sources) if source == given]
        columns = columns or [j for j, name in enumerate(problem.X.columns) if name == given]
        if not columns:
            known = list(dict.fromkeys([*names, *problem.sources]))
            hint = near(given, known).replace("the columns are", "there are")
            raise TableError(f"--always: there is no group or column {given!r}; {hint}")
        group = int(groups.labels[columns[0]])
        if groups.sizes[group] > len(columns):
            raise TableError(
                f"--always: {given!r} is one of several columns of the group {groups.names[group]!r}: name the group, "
                "or give the column a group of its own."
            )
        found.append(groups.names[group])
    return list(dict.fromkeys(found))
