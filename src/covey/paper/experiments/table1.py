"""The related-work table, with each regulariser demonstrated on a small problem.

Each network is trained, and the cost that its training is said to minimise is computed separately by other means:

| network | training | regulariser | computed by |
| --- | --- | --- | --- |
| diagonal, ``w = u^2 - v^2`` | descent from a small start, no noise | l1 norm | linear programme |
| grouped, ``w_l = u_l^2 v_l`` | descent with weight decay | group quasi-norm, power 2/3 | reweighted ridges |
| convolutional, size 3 | minimised with weight decay | nuclear norm (semidefinite programme) | proximal method |
| one group of all columns | normalised descent from random directions, no noise | l2 norm | pseudo-inverse |
| grouped, ``w_l = u_l^2 v_l`` | normalised descent, noise, stopped early | few groups | true groups known |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import linprog

from covey.datasets import GroupSparseData, make_group_sparse
from covey.paper.baselines import ConvolutionalNetwork, GroupLasso, grouped_cost, least_nuclear_norm, nuclear_regression
from covey.paper.dynamics import diagonal_descent, normalized_descent, plain_descent
from covey.paper.experiments.base import Claim, Claims, Record, Scale, judge, scaled, where
from covey.paper.experiments.style import COLOURS, GREY, Axes, panel, panels
from covey.paper.experiments.tasks import each
from covey.paper.experiments.traces import descend, errors

TITLE = "Related work: which network, which regulariser"

# The weight decay of the grouped network.
DECAY = 0.05


@dataclass(frozen=True)
class Settings(Scale):
    """Small problems, `repeats` draws of each."""

    repeats: int = scaled(20, quick=5)
    n_rows: int = 40
    n_columns: int = 60

    def data(self, seed: int, sigma: float, n_columns: int | None = None) -> GroupSparseData:
        """Two groups of three in twenty, entries standard normal."""
        n, p = self.n_rows, n_columns or self.n_columns
        return make_group_sparse(n, p, 3, active=2, values="normal", sigma=sigma, design="gaussian", random_state=seed)


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """One row per network and draw: the trained cost, the predicted cost, and a rival's value of the same cost."""

    def one(task: tuple[str, int]) -> Record:
        network, seed = task
        trained, predicted, rival = NETWORKS[network].measure(settings, seed)
        return {"row": network, "seed": seed, "trained": trained, "predicted": predicted, "rival": rival}

    tasks = [(network, seed) for network in NETWORKS for seed in range(settings.repeats)]
    return pd.DataFrame(each(one, tasks, jobs))


def _sparse(settings: Settings, seed: int) -> tuple[float, float, float]:
    """l1 norms of the diagonal network's limit, of the interpolant of least l1 norm, and of that of least l2 norm."""
    data = settings.data(seed, sigma=0.0)
    path = diagonal_descent(data.X, data.y, init_scale=1e-5, step_size=0.05, n_steps=60_000, record_every=60_000)
    p = settings.n_columns
    least = linprog(np.ones(2 * p), A_eq=np.hstack([data.X, -data.X]), b_eq=data.y, bounds=(0, None))
    return float(np.abs(path.w[-1]).sum()), float(least.fun), float(np.abs(np.linalg.pinv(data.X) @ data.y).sum())


def _quasi(settings: Settings, seed: int) -> tuple[float, float, float]:
    """Loss plus decay after training; the least loss plus quasi-norm, found without factors; the best group lasso's."""
    data = settings.data(seed, sigma=0.1)
    path = plain_descent(
        data.X, data.y, 3, init_scale=0.3, start="aligned", weight_decay=DECAY, n_steps=30_000, record_every=30_000
    )
    trained = float(path.loss[-1] + DECAY / 2 * (np.sum(path.u[-1] ** 2) + np.sum(path.v[-1] ** 2)))

    def objective(w: np.ndarray) -> float:
        return float(np.mean((data.y - data.X @ w) ** 2) / 2 + DECAY / 2 * grouped_cost(w, 3))

    best = min(objective(w) for w in _group_lasso(data))
    return trained, objective(quasi_norm_regression(data.X, data.y, 3, DECAY)), best


def _group_lasso(data: GroupSparseData) -> np.ndarray:
    return GroupLasso(groups=3, fit_intercept=False).path(data.X, data.y, n_penalties=60).coefs.toarray()


def quasi_norm_regression(X: np.ndarray, y: np.ndarray, size: int, decay: float) -> np.ndarray:
    """A minimiser of ``norm(y - Xw)^2/(2n) + decay/2 c sum_l norm(w_l)^(2/3)``, c = 3/2^(2/3), by reweighted ridges.

    ``m^(1/3)`` lies below its tangent in ``m = norm(w_l)^2 + e``, so each ridge lowers the smoothed objective. The
    smoothing e decreases from 1 to zero, so that the problem is nearly convex at first. The factors u, v are not used.
    """
    n, p = X.shape
    K, c = X.T @ X / n, X.T @ y / n
    w = np.linalg.solve(K + decay * np.eye(p), c)
    for smoothing in np.geomspace(1.0, 1e-16, 100):
        for _ in range(3):
            m = np.repeat(np.sum(w.reshape(-1, size) ** 2, axis=1), size) + smoothing
            w = np.linalg.solve(K + np.diag(decay / 2 ** (2 / 3) * m ** (-2 / 3)), c)
    return w


def _nuclear(settings: Settings, seed: int) -> tuple[float, float, float]:
    """Squared weights after training; twice the nuclear norm of the convex programme's solution; one channel's cost."""
    data = settings.data(seed, sigma=0.1, n_columns=24)
    trained = ConvolutionalNetwork(3, weight_decay=0.1).fit(data.X, data.y, random_state=seed)
    programme = nuclear_regression(data.X, data.y, 3, 0.1)
    rival = 2 * least_nuclear_norm(trained.coef, 1).value
    return trained.cost, 2 * float(np.linalg.svd(programme.Z, compute_uv=False).sum()), rival


def _l2(settings: Settings, seed: int) -> tuple[float, float, float]:
    """l2 norms of the limit of one big group, of the pseudo-inverse's solution, and of the truth, which also fits.

    The start is a random direction, mostly outside the row space of X. Columns are divided by one number, so that
    Algorithm 1's direction step is stable (docs/limit.md).
    """
    data = settings.data(seed, sigma=0.0)
    start = np.random.default_rng(seed).standard_normal(settings.n_columns)
    shrink = float(np.linalg.norm(data.X, 2)) / np.sqrt(settings.n_rows)
    path = normalized_descent(
        data.X / shrink, data.y, settings.n_columns, step_size=0.02, start=start / np.linalg.norm(start),
        n_steps=10_000, record_every=10_000,
    )  # fmt: skip
    least = float(np.linalg.norm(np.linalg.pinv(data.X) @ data.y))
    return float(np.linalg.norm(path.w[-1])) / shrink, least, float(np.linalg.norm(data.w_star))


def _group(settings: Settings, seed: int) -> tuple[float, float, float]:
    """Least errors along Algorithm 1, of least squares on the true groups, and of the group lasso at its best."""
    data = settings.data(seed, sigma=0.5)
    path = descend(data, step_size=0.01, n_steps=1500)
    best = float(np.min(np.sum((_group_lasso(data) - data.w_star) ** 2, axis=1)))
    return float(errors(path).min()), float(np.sum((data.oracle() - data.w_star) ** 2)), best


@dataclass(frozen=True)
class Network:
    """A row of the table: how it is measured, its cost, its rival, what is claimed, and how close it must come."""

    measure: Callable[[Settings, int], tuple[float, float, float]]
    cost: str
    rival: str
    claim: str
    close: float = 0.02


SPARSE, QUASI, NUCLEAR, L2, GROUP = (
    "diagonal, small start", "grouped, weight decay", "convolutional, weight decay", "one group, normalised",
    "grouped, stopped early",
)  # fmt: skip
NETWORKS = {
    SPARSE: Network(
        _sparse, r"$\|w\|_1$", "least-l2 interpolant",
        "Descent on the diagonal network from a small start is biased to the l1 norm.",
    ),
    QUASI: Network(
        _quasi, "objective", "group lasso at its best",
        "Weight decay on the grouped network penalises a group quasi-norm of its coefficients.",
        close=0.001,  # the objectives differ little between good solutions
    ),
    NUCLEAR: Network(
        _nuclear, r"$\|U\|_F^2 + \|V\|_F^2$", "same $w$, one channel",
        "Weight decay on the convolutional network penalises a norm given by a semidefinite programme.",
    ),
    L2: Network(
        _l2, r"$\|w\|_2$", "the truth",
        "Weight normalisation of one group of all columns is biased to the l2 norm, from any direction.",
    ),
    GROUP: Network(
        _group, r"$\|w - w^\star\|_2^2$", "group lasso at its best",
        "Normalised descent on the grouped network, with noise, is biased to few groups.",
    ),
}  # fmt: skip


@panels(1, 5, height=2.35, width=8.2)
def plot(frame: pd.DataFrame, *axes: Axes) -> None:
    """Trained against predicted cost, one panel per row of the table, one point per draw."""
    for one, name, (key, network) in zip(axes, "abcde", NETWORKS.items(), strict=True):
        part = where(frame, row=key)
        costs = part[["trained", "predicted", "rival"]]
        ends = [0.92 * float(costs.min().min()), 1.08 * float(costs.max().max())]
        one.plot(ends, ends, color=GREY, ls="--", lw=0.9)
        one.plot(part["predicted"], part["rival"], "x", color=COLOURS[1], label=network.rival, alpha=0.8)
        one.plot(part["predicted"], part["trained"], "o", color=COLOURS[0], label="trained", alpha=0.8, mew=0)
        if key == GROUP:
            one.set(xscale="log", yscale="log")
        label = f"predicted {network.cost}" if key != GROUP else "error, groups known"
        panel(one, name, key.replace(", ", ",\n"), xlabel=label)
        one.legend(loc="upper center", bbox_to_anchor=(0.45, -0.27), fontsize=7, handletextpad=0.2)
        one.tick_params(labelsize=6.5)
    axes[0].set_ylabel("measured")


def claims(frame: pd.DataFrame) -> Claims:
    """Trained cost over predicted cost, per row; for this paper's row, error over the oracle's."""
    for key, network in NETWORKS.items():
        part = where(frame, row=key)
        ratio, rival = part["trained"] / part["predicted"], part["rival"] / part["predicted"]
        if key != GROUP:
            yield Claim(
                network.claim,
                f"trained cost within {network.close:.1%} of the predicted one on every draw",
                f"trained over predicted {ratio.min():.4f} to {ratio.max():.4f} on {len(part)} draws "
                f"({network.rival.replace('$', '')}: {rival.min():.2f} to {rival.max():.2f})",
                judge((ratio - 1).abs().max() < network.close),
            )
            continue
        ours, lasso = (float(np.exp(np.log(one).mean())) for one in (ratio, rival))
        yield Claim(
            network.claim,
            "error within a factor 2 of least squares on the true groups, smaller than the group lasso's",
            f"geometric mean {ours:.2f} times that of known groups over {len(part)} draws; "
            f"the group lasso {lasso:.2f} times",
            judge(ours < 2 and ours < lasso),
        )
