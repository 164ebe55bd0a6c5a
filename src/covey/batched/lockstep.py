"""Paths in lockstep: every tensor has one entry per path, and all paths make the same iteration at the same time.

As in `covey.network`, only awake groups are stepped, each path in its own Gram block, and the growth of sleeping groups
is integrated between looks at X. Here a look is one product of X with the residuals of all paths, so all paths look at
common times. These are spaced geometrically: the rise of a group that wakes up at time t takes a sizeable fraction of
t, and `SPACING` times t is short compared with it, for slow groups as for fast ones. Groups join before they wake up,
so that the times at which they enter come from exact steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from covey.batched.problems import Problems
from covey.designs.torch_groups import product
from covey.network.awake import EIGENVALUE_MARGIN, LARGEST_STABLE
from covey.network.kernels import MOST_SUBSTEPS, SMALLEST
from covey.network.near import EXPLAINED

__all__ = ["Lockstep", "Node", "Numbers"]

# The time between two looks, relative to the time so far, at this tolerance; it scales with the square root of `tol`.
SPACING, SPACING_TOL = 1 / 64, 1e-3

# Groups join if they would wake up before the next look when growing this much faster than now.
AHEAD = 1.25

# Rounds of power iteration from the last eigenvector; the block changes by one group at a time.
ROUNDS = 20

# Gram rows of joining groups are computed in batches whose copied columns stay below this.
COPY_BYTES = 2**29


@dataclass(frozen=True)
class Numbers:
    """Settings of the paths: a common `depth` and `start`, and tensors with one entry per path.

    `gamma`, `enter` and `threshold` have shape (m,), `speeds` (m, groups); see `covey.network.settings`. The threshold
    applies to ``phi``.
    """

    depth: int
    start: float
    gamma: torch.Tensor
    enter: torch.Tensor
    threshold: torch.Tensor
    speeds: torch.Tensor


@dataclass(frozen=True)
class Node:
    """All running paths at a recorded time, on the host.

    Attributes
    ----------
    time : int
    paths : ndarray of int, shape (m,)
        The indices of the paths.
    groups, entered : ndarrays of int, shape (m, awake)
        The awake groups of each path, and when they entered; -1 for not yet, or for no group.
    coefs : ndarray, shape (m, awake, size)
        On the user's scale.
    strengths, intercepts : ndarrays, shapes (m, awake) and (m,)
    risen : ndarray, shape (m,)
        How many groups have risen; see `covey.network.Snapshot`.
    """

    time: int
    paths: NDArray[np.intp]
    groups: NDArray[np.intp]
    entered: NDArray[np.int64]
    coefs: NDArray[np.float64]
    strengths: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    risen: NDArray[np.float64]


# Tensors with one entry per path along the first axis, besides those of the problems.
PER_PATH = (
    "paths", "gamma", "enter", "threshold", "rate", "speeds", "phi", "pull", "g", "asleep",
    "count", "which", "entered", "u", "w", "c", "K", "Z", "T", "mean", "speed", "vector", "curvature", "s",
)  # fmt: skip
PROBLEM = ("q", "y", "y_mean", "y_scale", "column_scale", "mean", "T", "ranks", "c")


class Lockstep:
    """A batch of running paths: `advance` runs to the next look, `node` reads the models there.

    Attributes
    ----------
    phi, pull, asleep : tensors, shape (m, groups)
        As in `covey.network.near`; `g`, of shape (m, groups, size), are the correlations at the last look.
    which, entered, u, speed : tensors, shape (m, slots)
        The awake groups of each path, -1 for a free slot; when each entered, -1 for not yet; its magnitude; its growth
        rate relative to the average.
    w, c, K : tensors, shapes (m, slots * size) and (m, slots * size, slots * size)
        Coefficients, correlations at w = 0 and Gram block of the awake groups; zero in free slots.
    Z : tensor, shape (m, slots * size, n)
        Their working columns, as rows.
    T, mean : tensors
        Their factors and column means.
    s, curvature : tensors, shape (m,)
        As in `Awake`.
    """

    which: torch.Tensor
    entered: torch.Tensor
    u: torch.Tensor
    speed: torch.Tensor
    w: torch.Tensor
    c: torch.Tensor
    K: torch.Tensor
    Z: torch.Tensor
    T: torch.Tensor
    mean: torch.Tensor
    vector: torch.Tensor

    def __init__(self, problems: Problems, numbers: Numbers, tol: float) -> None:
        self.problems, self.depth = problems, numbers.depth
        self.spacing = SPACING * min(1.0, (tol / SPACING_TOL) ** 0.5)
        m, L, _ = problems.c.shape
        X = problems.X
        self.t, self.n_looks = 0, 1
        self.n_safe = 0  # number of groups when safe steps were last found
        self.paths = torch.arange(m, device=X.device)
        self.gamma, self.enter, self.threshold = numbers.gamma, numbers.enter, numbers.threshold
        self.speeds, self.rate = numbers.speeds, numbers.depth * numbers.gamma[:, None] * numbers.speeds
        self.phi = torch.full((m, L), _phi(numbers.start, self.depth), dtype=torch.float64, device=X.device)
        self.g = problems.c.clone()
        self.pull = self.g.norm(dim=2)
        self.asleep = problems.ranks > 0
        self.count = torch.zeros(m, dtype=torch.int64, device=X.device)
        self._reserve(0)
        self.curvature = torch.zeros(m, dtype=torch.float64, device=X.device)
        self.s = torch.ones_like(self.curvature)

    @property
    def n_paths(self) -> int:
        """The number of running paths."""
        return int(self.paths.numel())

    def advance(self, limit: int) -> None:
        """Run to the next look, but not beyond `limit`."""
        growth = self._growth(self.pull)
        if int(self.count.max()) == 0:
            self._jump(growth, limit)
            return
        steps = min(limit - self.t, max(1, int(self.spacing * self.t)))
        self._join(self.asleep & (self.phi + AHEAD * steps * growth >= self.threshold[:, None]))
        left = self.w.clone()
        mean = self._march(steps)
        self._look(left, mean, steps)
        self._make_safe()

    def can_grow(self) -> NDArray[np.bool_]:
        """For each path, whether a group is awake or would wake up at the current correlations."""
        return ((self.count > 0) | (self.asleep & (self.rate * self.pull > 0)).any(dim=1)).cpu().numpy()

    def keep(self, which: NDArray[Any]) -> None:
        """Continue with some of the paths only."""
        index = torch.as_tensor(which, device=self.paths.device)
        for name in PER_PATH:
            setattr(self, name, getattr(self, name)[index])
        self.n_safe = int((self.entered >= 0).sum())
        for name in PROBLEM:
            setattr(self.problems, name, getattr(self.problems, name)[index])

    # ------------------------------------------------------------------ between looks

    def _jump(self, growth: torch.Tensor, limit: int) -> None:
        """While no group is awake in any path, grow at a constant rate until just before one wakes up."""
        able = self.asleep & (growth > 0)
        steps = torch.where(able, (self.threshold[:, None] - self.phi) / growth, torch.inf)
        soonest = float(steps.min())
        until = limit if soonest >= limit - self.t else self.t + max(0, int(soonest) - 1)
        self.phi += torch.where(self.asleep, growth * (until - self.t), 0.0)
        if until == self.t:
            self._join(self.asleep & (self.phi + 2 * growth >= self.threshold[:, None]))
        self.t = until

    def _march(self, steps: int) -> torch.Tensor:
        """Step the awake groups; returns the mean of w over the steps."""
        N, size = self.depth, self.problems.c.shape[2]
        m, k = self.w.shape
        u, w = self.u, self.w
        total = torch.zeros_like(w)
        divided = self._substeps()
        most = int(divided.max())
        rate = N * (self.gamma / divided)[:, None] * self.speed
        s, enter = self.s[:, None], self.enter[:, None]
        for i in range(steps):
            total += w
            for j in range(most):
                g = torch.baddbmm(self.c[:, :, None], self.K, w[:, :, None], alpha=-1.0)[:, :, 0]
                v = (w + s * g).view(m, -1, size)
                v = v / torch.linalg.vector_norm(v, dim=2, keepdim=True).clamp_min(1e-300)
                change = rate * (v * g.view(m, -1, size)).sum(dim=2)
                if N != 2:
                    change = change * u ** (N - 2)
                # a step may shrink a magnitude strongly, but never change its sign
                new = (u * (1.0 + change.clamp_min(-0.9))).clamp_min(SMALLEST)
                moved = (new**N)[:, :, None] * v
                if most > 1:
                    still = (j >= divided)[:, None]
                    new, moved = torch.where(still, u, new), torch.where(still[..., None], w.view(m, -1, size), moved)
                u, w = new, moved.view(m, k)
            self.entered = torch.where((self.entered < 0) & (u**N >= enter), self.t + i + 1, self.entered)
        self.u, self.w, self.t = u, w, self.t + steps
        return total / steps

    def _substeps(self) -> torch.Tensor:
        """The number of substeps per iteration of each path until the next look, so that no path overshoots."""
        N = self.depth
        fastest = (self.speed * self.u ** (2 * N - 2)).amax(dim=1)
        return (N * N * self.gamma * fastest * self.curvature).clamp(1.0, MOST_SUBSTEPS).ceil()

    def _growth(self, pull: torch.Tensor) -> torch.Tensor:
        """The change of every ``phi`` in one iteration."""
        x = self.rate * pull
        if self.depth != 2:
            return x
        divided = self._substeps()[:, None]
        return divided * torch.log1p((x / divided).clamp_min(-0.9))

    # ------------------------------------------------------------------ looks

    def _look(self, left: torch.Tensor, mean: torch.Tensor, steps: int) -> None:
        """Add the growth of the sleeping groups since the last look; see `covey.network.kernels.gains`."""
        way = self.w - left
        length = (way * way).sum(dim=1)
        along = ((mean - left) * way).sum(dim=1)
        share = torch.where(length > 0, (along / length).clamp(0.0, 1.0), 0.5)[:, None]
        self.g, at_mean = self._correlations(self.w, mean)
        pull, low = self.g.norm(dim=2), self._growth(at_mean.norm(dim=2))
        ends = self._growth(self.pull) * (1.0 - share) + self._growth(pull) * share
        gain = steps * (low + (ends - low).clamp_min(0.0) / 3.0)
        self.phi += torch.where(self.asleep, gain, 0.0)
        self.pull = pull
        self.n_looks += 1

    def _correlations(self, *models: torch.Tensor) -> list[torch.Tensor]:
        """Correlations of all groups with the residuals of some models of every path, in one product with X."""
        problems, X = self.problems, self.problems.X
        fitted = torch.bmm(torch.stack(models, dim=1).to(X.dtype), self.Z)
        residuals = (problems.y[:, None, :] - fitted) * problems.q[:, None, :]
        G = product(residuals.transpose(0, 1).flatten(0, 1), X)
        return [problems.working(part) for part in G.split(self.n_paths)]

    # ------------------------------------------------------------------ joining

    def _join(self, ready: torch.Tensor) -> None:
        """Let groups join the awake ones of their path."""
        path, group = ready.nonzero().unbind(dim=1)
        if path.numel() == 0:
            return
        problems, size = self.problems, self.problems.c.shape[2]
        slot = (self.count[:, None] + ready.cumsum(dim=1) - 1)[path, group]
        self.count = self.count + ready.sum(dim=1)
        self._reserve(int(self.count.max()))
        m, A = self.which.shape
        self.asleep = self.asleep & ~ready
        self.which[path, slot] = group
        u = _u(self.phi[path, group], self.depth)
        self.u[path, slot] = u
        g = self.g[path, group]
        v = g / g.norm(dim=1, keepdim=True).clamp_min(1e-300)
        self.w.view(m, A, size)[path, slot] = u[:, None] ** self.depth * v
        self.c.view(m, A, size)[path, slot] = problems.c[path, group]
        self.T[path, slot] = problems.T[path, group].double()
        self.mean[path, slot] = problems.mean[path, group]
        self.speed[path, slot] = self.speeds[path, group]
        self.vector.view(m, A, size)[path, slot] = 1.0 / (A * size) ** 0.5
        n = self.Z.shape[2]
        step = max(1, COPY_BYTES // (self.Z.element_size() * n * A * size))
        pieces = [slice(a, a + step) for a in range(0, path.numel(), step)]
        for own in pieces:
            self.Z.view(m, A, size, n)[path[own], slot[own]] = problems.columns(path[own], group[own])
        K = self.K.view(m, A, size, A, size)
        for own in pieces:
            i, a = path[own], slot[own]
            weighted = (self.Z.view(m, A, size, n)[i, a] * problems.q[i][:, None, :]).to(self.Z.dtype)
            rows = torch.bmm(weighted, self.Z[i].transpose(1, 2)).double().view(-1, size, A, size)
            K[i, a] = rows
            K[i, :, :, a] = rows.permute(0, 2, 3, 1)

    def _reserve(self, slots: int) -> None:
        """Make room for this many awake groups in each path; free slots are zero."""
        m, L, size = self.problems.c.shape
        held = self.which.shape[1] if hasattr(self, "which") else 0
        if held and slots <= held:
            return
        A = min(L, max(8, slots, -(-3 * held // 2)))
        X, double = self.problems.X, {"dtype": torch.float64, "device": self.problems.X.device}
        new: dict[str, torch.Tensor] = {
            "which": torch.full((m, A), -1, dtype=torch.int64, device=X.device),
            "entered": torch.full((m, A), -1, dtype=torch.int64, device=X.device),
            **{name: torch.zeros((m, A), **double) for name in ("u", "speed")},
            **{name: torch.zeros((m, A * size), **double) for name in ("w", "c", "vector")},
            "mean": torch.zeros((m, A, size), **double),
            "T": torch.zeros((m, A, size, size), **double),
            "Z": torch.zeros((m, A * size, X.shape[0]), dtype=X.dtype, device=X.device),
        }
        K = torch.zeros((m, A * size, A * size), **double)
        if held:
            for name, room in new.items():
                old = getattr(self, name)
                room[:, : old.shape[1]] = old
            K[:, : held * size, : held * size] = self.K
        for name, room in new.items():
            setattr(self, name, room)
        self.K = K

    def _make_safe(self) -> None:
        """Find steps that cannot oscillate in the Gram block of the groups that have entered; see `Awake.make_safe`."""
        up = self.entered >= 0
        if int(up.sum()) == self.n_safe:
            return
        self.n_safe = int(up.sum())
        entered = up.repeat_interleave(self.problems.c.shape[2], dim=1)
        x = torch.where(entered, self.vector, 0.0)
        for _ in range(ROUNDS):
            y = torch.where(entered, torch.bmm(self.K, x[:, :, None])[:, :, 0], 0.0)
            value = y.norm(dim=1)
            x = y / value.clamp_min(1e-300)[:, None]
        self.vector = torch.where(entered, x, self.vector)
        self.curvature = EIGENVALUE_MARGIN * value
        self.s = torch.where(self.curvature < LARGEST_STABLE, 1.0, 1.0 / self.curvature)

    # ------------------------------------------------------------------ what is seen from outside

    def ended(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """For each path, whether nothing is left to explain, and whether it has diverged."""
        awake_g = self.c - torch.bmm(self.K, self.w[:, :, None])[:, :, 0]
        left = 1.0 - (self.w * self.c).sum(dim=1) - (self.w * awake_g).sum(dim=1)
        explained = (self.count > 0) & (left < EXPLAINED)
        return explained.cpu().numpy(), (~torch.isfinite(left)).cpu().numpy()

    def node(self) -> Node:
        """The models of all running paths."""
        problems, size = self.problems, self.problems.c.shape[2]
        m, A = self.which.shape
        w = self.w.view(m, A, size)
        up = self.entered >= 0
        scale = problems.y_scale[:, None]
        coefs = torch.where(up[..., None], (self.T @ w[..., None])[..., 0] * scale[..., None], 0.0)
        intercepts = problems.y_mean - (coefs * self.mean).sum(dim=(1, 2))
        norms = w.norm(dim=2)
        g = self.c - torch.bmm(self.K, self.w[:, :, None])[:, :, 0]
        pointed = (w + g.view(m, A, size)).norm(dim=2)
        risen = torch.where(norms > 0, norms / torch.maximum(pointed, norms), 0.0).sum(dim=1)
        host = (self.paths, self.which, self.entered, coefs, torch.where(up, norms * scale, 0.0), intercepts, risen)
        return Node(self.t, *(part.cpu().numpy() for part in host))


def _phi(u: float, N: int) -> float:
    """The coordinate in which a sleeping group's growth is additive."""
    return float(np.log(u)) if N == 2 else -(u ** (2.0 - N)) / (N - 2.0)


def _u(phi: torch.Tensor, N: int) -> torch.Tensor:
    """The magnitude for a ``phi``."""
    return phi.exp() if N == 2 else (-(N - 2.0) * phi) ** (-1.0 / (N - 2.0))
