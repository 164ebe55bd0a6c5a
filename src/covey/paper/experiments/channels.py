"""Grouping as architecture: channels of a convolutional network on MNIST, pruned by training alone or by a penalty.

The paper hopes that its analysis helps to understand grouped architectures, and builds on power parametrisations, which
promote sparsity in networks. Here each output channel (and hidden unit) of a small convolutional network is a group.
Power layers ``u^N v`` are trained from smaller and smaller starts, without any penalty. They are compared with the
group lasso by proximal steps, with its smooth form, D-gating with weight decay (arXiv 2509.23898), and with a plain
network. All have the same training loop, the same choice of learning rates, and the same order of deletion
(`covey.paper.nn.channel_study`). Each method is scored by the smallest number of channels whose validation accuracy is
within one point of the full plain network's, at its best strength and learning rate; nothing is trained after
deletion.

The quick setting trains on 6000 images with one seed. The full setting trains on all of MNIST with three seeds; it
needs a GPU, and without one the saved results of such a run are shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from covey.paper.datasets import load_mnist
from covey.paper.experiments.autoencoders import has_gpu, needs_torch, saved_file
from covey.paper.experiments.base import Claim, Claims, Record, Scale, judge, scaled, where
from covey.paper.experiments.style import COLOURS, GREY, Axes, panel, panels
from covey.paper.experiments.tasks import each

if TYPE_CHECKING:
    from covey.paper.nn.channel_study import ChannelRun, Digits

TITLE = "Grouping as architecture: channels kept at equal accuracy"

PLAIN, LASSO = "plain", "group lasso"
POWERS, GATES = ("power 2", "power 3"), ("D-gating 2", "D-gating 3")
METHODS = (PLAIN, LASSO, *GATES, *POWERS)
LOOK = dict(zip(METHODS, (GREY, *COLOURS[:5]), strict=True))
DROP = 0.01  # "equal accuracy": at most one point below the full plain network
LAYERS = ("first", "second", "hidden")
SETTING = ["method", "strength", "learning_rate"]


@dataclass(frozen=True)
class Settings(Scale):
    images: int = scaled(60_000, quick=8000)
    validation: int = scaled(10_000, quick=2000)
    test_images: int = scaled(10_000, quick=2000)
    widths: tuple[int, ...] = scaled((32, 64, 128), quick=(16, 32, 64))
    epochs: int = scaled(15, quick=8)
    batch_size: int = scaled(128, quick=64)
    penalties: tuple[float, ...] = scaled((3e-4, 1e-3, 3e-3, 1e-2), quick=(2e-3, 5e-3, 1e-2))
    starts: tuple[float, ...] = scaled((1.0, 0.5, 0.25, 0.125), quick=(1.0, 0.5, 0.25))
    learning_rates: tuple[float, ...] = scaled((0.1, 0.3), quick=(0.2,))
    seeds: tuple[int, ...] = scaled((0, 1, 2), quick=(0,))
    rungs: int = scaled(32, quick=24)
    needs_gpu: bool = scaled(True, quick=False)

    def strengths(self) -> dict[str, tuple[float, ...]]:
        penalised, powers = dict.fromkeys((LASSO, *GATES), self.penalties), dict.fromkeys(POWERS, self.starts)
        return {PLAIN: (0.0,), **penalised, **powers}


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """Train, delete and measure; or read the saved results of the full setting if there is no GPU."""
    if settings.needs_gpu and not has_gpu():
        return pd.read_csv(saved_file("channels", "curves.csv", "over a hundred networks"))
    needs_torch()
    from covey.paper.nn.channel_study import COLUMNS, Digits, all_runs

    images = load_mnist().head(settings.images, settings.test_images)
    work = all_runs(settings.strengths(), settings.learning_rates, settings.seeds)
    if has_gpu():
        data = Digits.of(images, settings.validation)
        parts = each(lambda item: _one(settings, data, item), work, 1)
    else:
        parts = each(lambda item: _one(settings, Digits.of(images, settings.validation, "cpu"), item), work, jobs)
    return pd.DataFrame([record for part in parts for record in part], columns=list(COLUMNS))


def _one(settings: Settings, data: Digits, item: ChannelRun) -> list[Record]:
    import torch

    from covey.paper.nn.channel_study import measure_channels, train_channels

    if not torch.cuda.is_available():
        torch.set_num_threads(1)
    net = train_channels(item, data, widths=settings.widths, epochs=settings.epochs, batch_size=settings.batch_size)
    return measure_channels(item, net, data, settings.rungs)


def target_accuracy(frame: pd.DataFrame) -> float:
    """One point below the validation accuracy of the full plain network, at its better learning rate."""
    rungs = where(frame, method=PLAIN, rule="ladder")
    full = where(rungs, channels=rungs["channels"].max())
    return float(full.groupby("learning_rate")["validation"].mean().max()) - DROP


def best_settings(frame: pd.DataFrame) -> Any:
    """For each method, the setting with the fewest channels that reaches the target on every seed; missing if none."""
    rungs = where(frame, rule="ladder")
    good = rungs[rungs["validation"] >= target_accuracy(frame)].sort_values("channels")
    fewest = good.groupby([*SETTING, "seed"], as_index=False).first()
    by_setting = fewest.groupby(SETTING)
    table = by_setting[["channels", "weights", "test", *LAYERS]].mean()
    table["error"] = by_setting["channels"].sem().fillna(0.0)
    complete = table[by_setting.size() == frame["seed"].nunique()].reset_index()
    return complete.sort_values("channels", kind="stable").groupby("method").first().reindex(list(METHODS))


def claims(frame: pd.DataFrame) -> Claims:
    table, target, seeds = best_settings(frame), target_accuracy(frame), frame["seed"].nunique()
    over = f"{seeds} seed{'s' if seeds > 1 else ''}, validation accuracy at least {target:.4f}"

    def fewest(method: str) -> str:
        best = table.loc[method]
        if np.isnan(best["channels"]):
            return f"{method}: never at the target"
        spread = f" ± {best['error']:.1f}" if seeds > 1 else ""
        return f"{method} {best['channels']:.0f}{spread} (test {best['test']:.4f})"

    def ahead(text: str, method: str, rival: str) -> Claim:
        a, b = table.loc[method], table.loc[rival]
        return Claim(
            f"(Our extension.) {text}",
            "fewer channels at equal accuracy, by more than 2 standard errors where there are several seeds",
            f"{fewest(method)}, {fewest(rival)} ({over})",
            judge(b["channels"] - a["channels"] > 2 * np.hypot(a["error"], b["error"])),
        )

    def as_good(text: str, method: str) -> Claim:
        ratio = table.loc[method, "channels"] / table.loc[LASSO, "channels"]
        return Claim(
            f"(Our extension.) {text}",
            "at most 10% more channels at equal accuracy",
            f"{fewest(method)}, {fewest(LASSO)}: {ratio:.2f} times as many ({over})",
            judge(ratio <= 1.1),
        )

    for method in POWERS:
        yield ahead(f"{method}: training alone prunes, compared with a plain network.", method, PLAIN)
    for method in POWERS:
        yield as_good(f"{method}: training alone prunes as well as the group lasso by proximal steps.", method)
    two, three = GATES
    yield as_good("D-gating with two factors is as good as the group lasso, whose smooth form it is.", two)
    yield ahead("A third factor, which makes the penalty a quasi-norm, prunes more than two.", three, two)
    keys = [*SETTING, "seed"]
    awake = where(frame, rule="awake").set_index(keys)
    full = where(frame, rule="ladder").sort_values("channels").groupby(keys).last().reindex(awake.index)
    change, asleep = (full["test"] - awake["test"]).abs(), full["channels"] - awake["channels"]
    yield Claim(
        "(Our check.) Channels that are asleep can be deleted without any effect.",
        "test accuracy changes by at most 0.1 points in every run",
        f"by at most {100 * change.max():.2f} points over {len(change)} runs, in which up to {asleep.max():.0f} "
        f"channels are asleep",
        judge(change.max() <= 1e-3),
    )


@panels(1, 3, height=2.8, width=9.5)
def plot(frame: pd.DataFrame, deleted: Axes, layers: Axes, awake: Axes) -> None:
    target = target_accuracy(frame)
    table = best_settings(frame).dropna(subset="channels")
    rungs, shown = where(frame, rule="ladder"), list(table.index)
    for method, best in table.iterrows():
        chosen = where(rungs, method=method, strength=best["strength"], learning_rate=best["learning_rate"])
        mean = chosen.groupby("channels")["test"].mean()
        deleted.plot(mean.index, mean, color=LOOK[method], label=method)
    limits, labels = (max(0.0, target - 0.1), target + 0.015), {"xlabel": "channels kept", "ylabel": "test accuracy"}
    panel(deleted, "a", "accuracy as channels are deleted", xscale="log", ylim=limits, **labels)
    deleted.legend()
    left = np.zeros(len(shown))
    for layer, shade in zip(LAYERS, (1.0, 0.65, 0.35), strict=True):
        width = table[layer].to_numpy(dtype=float)
        layers.barh(shown, width, left=left, color=[LOOK[m] for m in shown], alpha=shade)
        left += width
    layers.invert_yaxis()
    panel(layers, "b", "fewest at equal accuracy", xlabel="channels: first, second, hidden")
    means = where(frame, rule="awake").groupby(SETTING, as_index=False)[["channels", "test"]].mean()
    for method in METHODS:
        part = where(means, method=method)
        awake.plot(part["channels"], part["test"], color=LOOK[method], marker="o", ls="", mfc="none")
    limits, labels = (max(0.0, target - 0.03), target + 0.02), {"xlabel": "channels awake", "ylabel": "test accuracy"}
    panel(awake, "c", "every setting: awake after training", ylim=limits, **labels)
    for axes in (deleted, awake):
        axes.axhline(target, color="black", ls="--", lw=0.8)
