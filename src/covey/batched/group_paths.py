"""group_paths: the public call for many paths of one design."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from covey.designs import Design, as_design
from covey.designs.protocol import LARGEST_BLOCK
from covey.groups import Groups
from covey.network import Snapshot, StopLike, StopRule, as_stop_rule
from covey.network.group_path import group_path
from covey.path import Path
from covey.validation import as_response, as_sample_weight, on_host, whole

__all__ = ["group_paths"]

# The most memory, relative to X, that padding all groups to the largest may cost; beyond it, paths run one by one.
MOST_PADDING = 8


def group_paths(
    X: Any,
    y: ArrayLike,
    groups: Any = None,
    *,
    sample_weight: ArrayLike | None = None,
    max_groups: int | None = None,
    stop: Sequence[StopLike] | None = None,
    batch: bool | None = None,
    **options: Any,
) -> list[Path]:
    """Many paths of one X: one per bootstrap sample, fold or response.

    Each is the path of `covey.group_path` for its own response and row weights, to the accuracy of its `tol`. If X is a
    torch tensor, they can run as one batch on its device, where a look at X is one product for all paths. Otherwise
    they run one after another.

    Parameters
    ----------
    X : torch tensor, or anything that `group_path` accepts, shape (n, p)
    y : array-like, shape (n,) or (n, m)
        One response for all paths, or one per path.
    groups : None, int, labels, lists of columns, dict or Groups
    sample_weight : array-like, shape (n,) or (n, m), or None
        Row weights, common to all paths or one column per path. For a bootstrap sample, give the number of times each
        row was drawn; for a fold, zero for held-out rows and one for the others.
    max_groups : int or None
        End a path once this many groups have woken up.
    stop : sequence of m callables or stop rules, or None
        A stop rule for each path; see `group_path`.
    batch : bool or None
        Whether to run them as one batch; None if that is faster, which means 20 paths or more on a GPU. A batch
        supports only ``algorithm="single-stage"``, and neither ``engine="exact"``, ``update="printed"``, ``start`` nor
        groups of more than 64 columns.
    **options
        `algorithm`, `init_scale`, `step_size`, `depth`, `group_weights`, `max_iter`, `fit_intercept`, `standardize`,
        `times`, `tol` and the other options of `group_path`.

    Returns
    -------
    list of Path
        Paths of a batch cannot be continued: their ``state`` is None.

    Examples
    --------
    How often each group is among the first three to wake up, over 20 bootstrap samples:

    >>> import numpy as np
    >>> import covey
    >>> from covey.datasets import make_group_sparse
    >>> data = make_group_sparse(100, 60, 3, active=3, random_state=0)
    >>> drawn = np.random.default_rng(0).multinomial(100, np.full(100, 0.01), size=20).T
    >>> paths = covey.group_paths(data.X, data.y, 3, sample_weight=drawn, max_groups=3)
    >>> first = [l for path in paths for l, _ in path.entered[:3]]
    >>> np.bincount(first, minlength=20)[:5].tolist()
    [20, 20, 20, 0, 0]
    """
    design = as_design(X)
    n, p = design.shape
    responses, weights = _columns(y, n, "y"), _columns(sample_weight, n, "sample_weight")
    m = _common_count(responses, weights)
    if stop is not None and (not isinstance(stop, Sequence) or len(stop) != m):
        raise ValueError(f"stop must be a sequence of {m} rules, one per path.")
    rules = None if stop is None else [as_stop_rule(rule) for rule in stop]
    if max_groups is not None:
        whole(max_groups, "max_groups")
    made = Groups.coerce(groups, p, getattr(design, "columns", None))
    obstacle = _obstacle(design, made, options)
    if batch and obstacle:
        raise ValueError(f"batch=True is not possible: {obstacle}. Leave batch=None to run the paths one by one.")
    if batch or (batch is None and not obstacle and design.batches(m)):
        from covey.batched.run import run_batch

        Y = [as_response(column, n, name=_name("y", i, responses)) for i, column in enumerate(responses)]
        Q = [as_sample_weight(column, n, name=_name("sample_weight", i, weights)) for i, column in enumerate(weights)]
        Y, Q = (rows if len(rows) == m else rows * m for rows in (Y, Q))
        return run_batch(
            cast(Any, design), np.stack(Y), np.stack(Q), made, max_groups=max_groups, stop=rules, **options
        )
    return [
        group_path(
            design,
            responses[i % len(responses)],
            made,
            sample_weight=weights[i % len(weights)],
            stop=_until(max_groups, None if rules is None else rules[i]),
            **options,
        )
        for i in range(m)
    ]


def _columns(values: Any, n: int, name: str) -> list[Any]:
    """One vector per path, or a single one for all."""
    if values is None:
        return [None]
    if getattr(values, "ndim", 2) == 1:
        return [values]
    array = np.asarray(on_host(values))
    if array.ndim < 2:
        return [array]
    if array.ndim > 2 or array.shape[0] != n or array.shape[1] == 0:
        raise ValueError(f"{name} must have shape (n,) or (n, m) with n = {n} rows, not {array.shape}.")
    return list(array.T)


def _name(what: str, i: int, columns: list[Any]) -> str:
    return f"{what}[:, {i}]" if len(columns) > 1 else what


def _common_count(responses: list[Any], weights: list[Any]) -> int:
    counts = {len(responses), len(weights)} - {1}
    if len(counts) > 1:
        raise ValueError(
            f"y has {len(responses)} columns and sample_weight {len(weights)}; give as many of "
            "both, or a single one of either."
        )
    return counts.pop() if counts else 1


def _obstacle(design: Design, groups: Groups, options: dict[str, Any]) -> str:
    """Why the paths cannot run in lockstep; empty if they can."""
    largest = int(groups.sizes.max())
    if not design.can_batch:
        return f"{design.name} is not a torch tensor"
    if options.get("algorithm", "single-stage") != "single-stage":
        return f"algorithm={options['algorithm']!r} runs by itself"
    if options.get("engine", "auto") == "exact":
        return "engine='exact' runs by itself"
    if options.get("update", "fast") == "printed":
        return "update='printed' runs by itself"
    if options.get("start") is not None:
        return "a path with start= runs by itself"
    if largest > LARGEST_BLOCK:
        return f"the largest group has {largest} columns, but a batch allows at most {LARGEST_BLOCK}"
    if groups.n_groups * largest > MOST_PADDING * groups.n_columns:
        return f"groups padded to {largest} columns take more than {MOST_PADDING} times the memory"
    return ""


def _until(max_groups: int | None, rule: StopRule | None) -> StopRule | None:
    """A rule that also ends a path once a number of groups is reached."""
    return rule if max_groups is None else _Until(max_groups, rule)


class _Until(StopRule):
    def __init__(self, max_groups: int, rule: StopRule | None) -> None:
        self.max_groups, self.rule = max_groups, rule

    def stop_at(self, snapshot: Snapshot) -> bool:
        return (self.rule is not None and self.rule.stop_at(snapshot)) or snapshot.n_woken >= self.max_groups
