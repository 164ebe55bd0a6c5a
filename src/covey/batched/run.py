"""Run a batch of paths: split it to fit in memory, advance it, and record the models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike, NDArray

from covey.batched.lockstep import Lockstep, Node, Numbers
from covey.batched.problems import Problems, prepare_many
from covey.designs.torch import TorchDesign
from covey.groups import Groups
from covey.network import Snapshot, StopRule
from covey.network.runner import MESSAGES, read_times
from covey.network.settings import ENTER, RETURN_RATE, check_engine, check_update, read_step, start_scale
from covey.path import Path
from covey.preprocess import Standardize, check_standardize
from covey.preprocess.group_weights import read_weights
from covey.validation import FloatArray, positive, whole

__all__ = ["run_batch"]

# The number of awake groups assumed when the size of a batch is chosen.
EXPECTED_AWAKE = 48

# A batch may use this share of the free memory on a GPU, or this many bytes on a CPU.
GPU_SHARE, CPU_BYTES = 0.4, 2**30


def run_batch(
    design: TorchDesign,
    responses: FloatArray,
    weights: FloatArray,
    groups: Groups,
    *,
    max_groups: int | None,
    stop: Sequence[StopRule | None] | None,
    algorithm: str = "single-stage",
    init_scale: float | str = "auto",
    step_size: float | str = "auto",
    direction_step: str = "auto",
    switch_tol: float | str = "auto",
    depth: int = 2,
    group_weights: Any = "noise",
    max_iter: int = 100_000,
    fit_intercept: bool = True,
    standardize: Standardize = "group",
    times: ArrayLike | None = None,
    engine: str = "auto",
    update: str = "fast",
    tol: float = 1e-3,
    start: None = None,
    verbose: int = 0,
) -> list[Path]:
    """The paths of many responses and weights, as rows, on one design; see `covey.group_paths`."""
    check_engine(engine)
    check_update(update, engine)
    check_standardize(standardize)
    max_iter, tol = whole(max_iter, "max_iter"), positive(tol, "tol")
    wanted = read_times(times, max_iter)
    at_once = _paths_at_once(design, groups)
    out: list[Path] = []
    for a in range(0, len(weights), at_once):
        own = slice(a, a + at_once)
        problems = prepare_many(
            design, responses[own], weights[own], groups, standardize=standardize, fit_intercept=fit_intercept
        )
        numbers = _numbers(problems, init_scale, step_size, direction_step, depth, group_weights, tol)
        rules = None if stop is None else stop[own]
        out += _Batch(problems, numbers, groups, max_iter, wanted, tol, max_groups, rules).run()
    return out


def _paths_at_once(design: TorchDesign, groups: Groups) -> int:
    X, size = design.X, int(groups.sizes.max())
    padded, awake = groups.n_groups * size, EXPECTED_AWAKE * size
    each = padded * (size * X.element_size() + 5 * 8) + awake * (X.shape[0] * X.element_size() + awake * 8)
    room = GPU_SHARE * torch.cuda.mem_get_info(X.device)[0] if X.is_cuda else CPU_BYTES
    return max(1, int(room // each))


def _numbers(
    problems: Problems, init_scale: Any, step_size: Any, direction_step: Any, depth: Any, group_weights: Any, tol: float
) -> Numbers:
    """The settings of every path; the batched version of `covey.network.settings.read_settings`."""
    N = whole(depth, "depth", least=2)
    start = start_scale(init_scale, N)
    if direction_step != "auto":
        raise ValueError("direction_step applies to algorithm='two-stage'; leave it 'auto' here.")
    weights = np.stack([read_weights(group_weights, ranks) for ranks in problems.ranks.cpu().numpy()])
    speeds = 1.0 / torch.as_tensor(weights, device=problems.X.device)
    norms = problems.c.norm(dim=2)
    largest, fastest = norms.amax(dim=1), (norms * speeds).amax(dim=1)
    step = read_step(step_size)
    power = (2 * N - 2) / N
    if step is None:
        gamma = torch.where(fastest > 0, RETURN_RATE / (N * N * fastest**power), 1.0)
    else:
        gamma = step * problems.y_scale**power * problems.column_scale ** (2 / N)
    enter = ENTER * torch.where(largest > 0, largest, 1.0)
    joins = (min(1.0, tol / ENTER) * enter) ** (1.0 / N)
    threshold = joins.log() if N == 2 else -(joins ** (2.0 - N)) / (N - 2.0)
    return Numbers(N, start, gamma, enter, threshold, speeds)


class _Batch:
    """The loop over looks: record, apply the stop rules, drop finished paths."""

    def __init__(
        self, problems: Problems, numbers: Numbers, groups: Groups, max_iter: int, wanted: NDArray[np.int64] | None,
        tol: float, max_groups: int | None, rules: Sequence[StopRule | None] | None,
    ) -> None:  # fmt: skip
        self.groups, self.max_iter, self.wanted = groups, max_iter, wanted
        self.max_groups, self.rules = max_groups, rules
        self.columns, self.real = (part.cpu().numpy() for part in (problems.padding.columns, problems.padding.real))
        N = numbers.depth
        unit = problems.y_scale ** ((2 * N - 2) / N) * problems.column_scale ** (2 / N)
        self.step_sizes = (numbers.gamma / unit).cpu().numpy()
        self.running = Lockstep(problems, numbers, tol)
        self.nodes: list[Node] = []
        self.paths: list[Path | None] = [None] * problems.c.shape[0]

    def run(self) -> list[Path]:
        """Run every path to its end."""
        running = self.running
        self._visit()
        while running.n_paths:
            limit = self.max_iter
            if self.wanted is not None:
                limit = int(min(self.wanted[self.wanted > running.t], default=limit))
            running.advance(limit)
            self._visit()
        return [path for path in self.paths if path is not None]

    def _visit(self) -> None:
        """Record the current models if requested, and drop paths that have ended."""
        running = self.running
        node = running.node()
        new = not self.nodes or running.t > self.nodes[-1].time
        asked = new and (self.wanted is None or running.t in self.wanted)
        if asked:
            self.nodes.append(node)
        explained, diverged = running.ended()
        growing, woken = running.can_grow(), (node.entered >= 0).sum(axis=1)
        most = np.inf if self.max_groups is None else self.max_groups
        going = []
        for j, i in enumerate(node.paths.tolist()):
            if diverged[j]:
                status = "diverged"
            elif woken[j] >= most or (asked and self._stops(i, node, j)):
                status = "stopped"
            elif explained[j] or not growing[j]:
                status = "exhausted"
            elif running.t >= self.max_iter:
                status = "completed"
            else:
                going.append(j)
                continue
            recorded = self.nodes[:-1] if diverged[j] and asked else self.nodes
            self.paths[i] = self._path(node, j, i, status, recorded)
        if len(going) < running.n_paths:
            running.keep(np.array(going, dtype=np.int64))

    def _stops(self, i: int, node: Node, j: int) -> bool:
        """Whether the rule of path i ends it here."""
        rule = None if self.rules is None else self.rules[i]
        return rule is not None and rule.stop_at(self._snapshot(node, j))

    def _snapshot(self, node: Node, j: int) -> Snapshot:
        slots = _order(node, j)
        groups = node.groups[j, slots]
        real = self.real[groups]
        return Snapshot(
            node.time, self.columns[groups][real].astype(np.intp), node.coefs[j, slots][real],
            float(node.intercepts[j]), slots.size, float(node.risen[j]),
        )  # fmt: skip

    def _path(self, last: Node, j: int, i: int, status: str, nodes: list[Node]) -> Path:
        """The recorded models of one path."""
        slots = _order(last, j)
        groups = last.groups[j, slots]
        size = self.real.shape[1]
        coefs = np.zeros((len(nodes), slots.size, size))
        strengths = np.zeros((len(nodes), slots.size))
        intercepts = np.empty(len(nodes))
        for r, node in enumerate(nodes):
            at = int(np.searchsorted(node.paths, i))
            known = slots < node.groups.shape[1]
            coefs[r, known], strengths[r, known] = node.coefs[at, slots[known]], node.strengths[at, slots[known]]
            intercepts[r] = node.intercepts[at]
        real = self.real[groups]
        looks, fetched = self.running.n_looks, int((last.groups[j] >= 0).sum()) * size
        return Path(
            times=np.array([node.time for node in nodes], dtype=np.int64),
            coefs=_sparse(coefs[:, real], self.columns[groups][real], self.groups.n_columns),
            intercepts=intercepts,
            groups=self.groups,
            entered=list(zip(groups.tolist(), last.entered[j, slots].astype(float).tolist(), strict=True)),
            status=status,
            message=MESSAGES[status].format(max_iter=self.max_iter, time=last.time),
            strengths=_sparse(strengths, groups, self.groups.n_groups),
            step_size=float(self.step_sizes[i]),
            n_passes=looks,
            n_gram_columns=fetched,
        )


def _order(node: Node, j: int) -> NDArray[np.intp]:
    """The slots of a path's awake groups, in the order in which they woke up."""
    up = np.flatnonzero(node.entered[j] >= 0)
    return up[np.argsort(node.entered[j, up], kind="stable")]


def _sparse(values: NDArray[np.float64], columns: NDArray[Any], width: int) -> sp.csr_array:
    """A sparse matrix with values in some of its columns."""
    order = np.argsort(columns)
    values = values[:, order]
    rows, places = np.nonzero(values)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(values)))]).astype(np.intp)
    return sp.csr_array((values[rows, places], columns[order][places], indptr), shape=(len(values), width))
