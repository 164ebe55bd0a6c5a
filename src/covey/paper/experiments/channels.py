"""Grouping as architecture: channels of a convolutional network on MNIST, pruned by training alone or by a penalty.

The paper hopes that its analysis helps to understand grouped architectures, and builds on power parametrisations, which
promote sparsity in networks. Here each output channel (and hidden unit) of a small convolutional network is a group.
Power layers ``u^N v`` are trained from smaller and smaller starts, without any penalty. They are compared with the
group lasso by proximal steps, with its smooth form, D-gating with weight decay (arXiv 2509.23898), and with a plain
network. All have the same training loop, the same choice of learning rates, and the same order of deletion
(`covey.paper.nn.channel_study`). Each method is scored by the smallest number of channels whose validation accuracy is
within one point of the whole plain network's, at its best strength and learning rate; nothing is trained after
deletion.

The quick setting trains on 6000 images with one seed. The full setting trains on all of MNIST with three seeds; it
needs a GPU, and without one the saved results of such a run are shown.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import covey
from covey.datasets import DataNotFoundError, load_mnist
from covey.paper.experiments.autoencoders import needs_torch
from covey.paper.experiments.claim import Claim, judge
from covey.paper.experiments.parallel import each
from covey.paper.experiments.settings import Scale
from covey.paper.experiments.style import COLOURS, GREY, Figure, grid, letter, styled

__all__ = ["TITLE", "Settings", "best_settings", "claims", "plot", "run", "target_accuracy"]

TITLE = "Grouping as architecture: channels kept at equal accuracy"

PLAIN, LASSO = "plain", "group lasso"
POWERS, GATES = ("power 2", "power 3"), ("D-gating 2", "D-gating 3")
METHODS = (PLAIN, LASSO, *GATES, *POWERS)
LOOK = dict(zip(METHODS, (GREY, *COLOURS[:5]), strict=True))
DROP = 0.01  # "equal accuracy": at most one point below the whole plain network
LAYERS = ("first", "second", "hidden")
SETTING = ["method", "strength", "learning_rate"]
SAVED, FILE = "channels", "curves.csv"


@dataclass(frozen=True)
class Settings(Scale):
    """Training, and the strengths and learning rates to choose from."""

    QUICK: ClassVar[dict[str, Any]] = {
        "images": 8000,
        "validation": 2000,
        "test_images": 2000,
        "widths": (16, 32, 64),
        "epochs": 8,
        "batch_size": 64,
        "penalties": (2e-3, 5e-3, 1e-2),
        "starts": (1.0, 0.5, 0.25),
        "learning_rates": (0.2,),
        "seeds": (0,),
        "rungs": 24,
        "needs_gpu": False,
    }

    images: int = 60_000
    validation: int = 10_000
    test_images: int = 10_000
    widths: tuple[int, ...] = (32, 64, 128)
    epochs: int = 15
    batch_size: int = 128
    penalties: tuple[float, ...] = (3e-4, 1e-3, 3e-3, 1e-2)
    starts: tuple[float, ...] = (1.0, 0.5, 0.25, 0.125)
    learning_rates: tuple[float, ...] = (0.1, 0.3)
    seeds: tuple[int, ...] = (0, 1, 2)
    rungs: int = 32
    needs_gpu: bool = True

    def strengths(self) -> dict[str, tuple[float, ...]]:
        """By method."""
        return {
            PLAIN: (0.0,),
            LASSO: self.penalties,
            **dict.fromkeys(GATES, self.penalties),
            **dict.fromkeys(POWERS, self.starts),
        }


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """Train, delete and measure; or read the saved results of the full setting if there is no GPU."""
    if settings.needs_gpu and not _has_gpu():
        file = saved_file()
        if file is None:
            raise DataNotFoundError(
                "The full setting trains over a hundred networks on all of MNIST and needs torch with a CUDA GPU, "
                "which is not here, and there are no saved results of benchmarks/channels_full.py in "
                "docs/results/channels or in COVEY_DATA. The quick setting runs anywhere."
            )
        return pd.read_csv(file)
    needs_torch()
    from covey.paper.nn.channel_study import COLUMNS, Digits, all_runs

    images = load_mnist().head(settings.images, settings.test_images)
    work = all_runs(settings.strengths(), settings.learning_rates, settings.seeds)
    if _has_gpu():
        data = Digits.of(images, settings.validation)
        parts = each(lambda item: _one(settings, data, item), work, 1)
    else:
        parts = each(lambda item: _one(settings, Digits.of(images, settings.validation, "cpu"), item), work, jobs)
    return pd.DataFrame([row for rows in parts for row in rows], columns=list(COLUMNS))


def _one(settings: Settings, data: Any, item: Any) -> list[dict[str, Any]]:
    """One network, trained and measured."""
    import torch

    from covey.paper.nn.channel_study import measure_channels, train_channels

    if not torch.cuda.is_available():
        torch.set_num_threads(1)
    net = train_channels(item, data, widths=settings.widths, epochs=settings.epochs, batch_size=settings.batch_size)
    return measure_channels(item, net, data, settings.rungs)


def _has_gpu() -> bool:
    try:
        import torch
    except ModuleNotFoundError:
        return False
    return torch.cuda.is_available()


def saved_file() -> Path | None:
    """The curves of a full run on a GPU: next to the source, or in the folder of `COVEY_DATA`."""
    places = [Path(covey.__file__).parents[2] / "docs" / "results" / SAVED]
    if os.environ.get("COVEY_DATA"):
        places.append(Path(os.environ["COVEY_DATA"]) / SAVED)
    return next((place / FILE for place in places if (place / FILE).is_file()), None)


def target_accuracy(frame: pd.DataFrame) -> float:
    """One point below the validation accuracy of the whole plain network, at its better learning rate."""
    whole = frame[(frame["method"] == PLAIN) & (frame["rule"] == "ladder")]
    whole = whole[whole["channels"] == whole["channels"].max()]
    return float(whole.groupby("learning_rate")["validation"].mean().max()) - DROP


def best_settings(frame: pd.DataFrame) -> Any:
    """For each method, the strength and learning rate with the fewest channels at the target, with means over seeds.

    A setting counts if every seed reaches the target. A method without one has missing values.
    """
    target, rungs = target_accuracy(frame), frame[frame["rule"] == "ladder"]
    good = rungs[rungs["validation"] >= target].sort_values("channels")
    fewest = good.groupby([*SETTING, "seed"], as_index=False).first()
    seeds = frame["seed"].nunique()
    rows: list[dict[str, Any]] = []
    for method in METHODS:
        options: list[dict[str, Any]] = []
        setting: Any
        for setting, part in fewest[fewest["method"] == method].groupby(SETTING):
            if len(part) == seeds:
                values = {name: float(part[name].mean()) for name in ("channels", "weights", "test", *LAYERS)}
                error = float(part["channels"].std(ddof=1) / np.sqrt(seeds)) if seeds > 1 else 0.0
                options.append({**dict(zip(SETTING, setting, strict=True)), **values, "error": error})
        rows.append(min(options, key=lambda option: option["channels"]) if options else {"method": method})
    columns = [*SETTING, "channels", "error", "weights", "test", *LAYERS]
    return pd.DataFrame(rows, columns=columns).set_index("method")


def claims(frame: pd.DataFrame) -> list[Claim]:
    """Channels kept at equal accuracy, method by method, and the cost of deleting sleeping channels."""
    table, target, seeds = best_settings(frame), target_accuracy(frame), frame["seed"].nunique()
    over = f"{seeds} seed{'s' if seeds > 1 else ''}, validation accuracy at least {target:.4f}"

    def kept(method: str) -> str:
        row = table.loc[method]
        if np.isnan(row["channels"]):
            return f"{method}: never at the target"
        spread = f" ± {row['error']:.1f}" if seeds > 1 else ""
        return f"{method} {row['channels']:.0f}{spread} (test {row['test']:.4f})"

    def lead(method: str, rival: str) -> bool:
        a, b = table.loc[method], table.loc[rival]
        return bool(b["channels"] - a["channels"] > 2 * np.hypot(a["error"], b["error"]))

    out = [
        Claim(
            f"(Our extension.) {method}: training alone prunes, compared with a plain network.",
            "fewer channels at equal accuracy, by more than 2 standard errors where there are several seeds",
            f"{kept(method)}, {kept(PLAIN)} ({over})",
            judge(lead(method, PLAIN)),
        )
        for method in POWERS
    ]
    for method in POWERS:
        ratio = table.loc[method, "channels"] / table.loc[LASSO, "channels"]
        out.append(
            Claim(
                f"(Our extension.) {method}: training alone prunes as well as the group lasso by proximal steps.",
                "at most 10% more channels at equal accuracy",
                f"{kept(method)}, {kept(LASSO)}: {ratio:.2f} times as many ({over})",
                judge(bool(ratio <= 1.1)),
            )
        )
    ratio = table.loc[GATES[0], "channels"] / table.loc[LASSO, "channels"]
    out.append(
        Claim(
            "(Our extension.) D-gating with two factors is as good as the group lasso, whose smooth form it is.",
            "at most 10% more channels at equal accuracy",
            f"{kept(GATES[0])}, {kept(LASSO)}: {ratio:.2f} times as many ({over})",
            judge(bool(ratio <= 1.1)),
        )
    )
    out.append(
        Claim(
            "(Our extension.) A third factor, which makes the penalty a quasi-norm, prunes more than two.",
            "fewer channels at equal accuracy, by more than 2 standard errors where there are several seeds",
            f"{kept(GATES[1])}, {kept(GATES[0])} ({over})",
            judge(lead(GATES[1], GATES[0])),
        )
    )
    keys = [*SETTING, "seed"]
    whole = frame[frame["rule"] == "ladder"].sort_values("channels").groupby(keys).last()
    awake = frame[frame["rule"] == "awake"].set_index(keys)
    change = (whole["test"].reindex(awake.index) - awake["test"]).abs()
    asleep = whole["channels"].reindex(awake.index) - awake["channels"]
    out.append(
        Claim(
            "(Our check.) Channels that are asleep can be deleted without any effect.",
            "test accuracy changes by at most 0.1 points in every run",
            f"by at most {100 * change.max():.2f} points over {len(change)} runs, in which up to {asleep.max():.0f} "
            f"channels are asleep",
            judge(bool(change.max() <= 1e-3)),
        )
    )
    return out


@styled
def plot(frame: pd.DataFrame) -> Figure:
    """Test accuracy as channels are deleted, at each method's best setting; channels kept by layer; all settings."""
    table, target = best_settings(frame), target_accuracy(frame)
    figure, axes = grid(1, 3, height=2.8, width=9.5)
    rungs = frame[frame["rule"] == "ladder"]
    for method in METHODS:
        row = table.loc[method]
        if np.isnan(row["channels"]):
            continue
        chosen = rungs[
            (rungs["method"] == method)
            & (rungs["strength"] == row["strength"])
            & (rungs["learning_rate"] == row["learning_rate"])
        ]
        mean = chosen.groupby("channels")["test"].mean()
        axes[0, 0].plot(mean.index, mean, color=LOOK[method], label=method)
    axes[0, 0].axhline(target, color="black", ls="--", lw=0.8)
    axes[0, 0].set(
        xscale="log", xlabel="channels kept", ylabel="test accuracy", ylim=(max(0.0, target - 0.1), target + 0.015)
    )
    axes[0, 0].legend()
    letter(axes[0, 0], "a", "accuracy as channels are deleted")
    shown = [method for method in METHODS if not np.isnan(table.loc[method, "channels"])]
    left = np.zeros(len(shown))
    for layer, shade in zip(LAYERS, (1.0, 0.65, 0.35), strict=True):
        width = table.loc[shown, layer].to_numpy(dtype=float)
        axes[0, 1].barh(shown, width, left=left, color=[LOOK[m] for m in shown], alpha=shade)
        left += width
    axes[0, 1].invert_yaxis()
    axes[0, 1].set(xlabel="channels: first, second, hidden")
    letter(axes[0, 1], "b", "fewest at equal accuracy")
    _draw_settings(axes[0, 2], frame, target)
    letter(axes[0, 2], "c", "every setting: awake after training")
    return figure


def _draw_settings(panel: Any, frame: pd.DataFrame, target: float) -> None:
    """Test accuracy against the channels that training left awake."""
    awake = frame[frame["rule"] == "awake"].groupby(SETTING, as_index=False)[["channels", "test"]].mean()
    for method in METHODS:
        part = awake[awake["method"] == method]
        panel.plot(part["channels"], part["test"], color=LOOK[method], marker="o", ls="", mfc="none")
    panel.axhline(target, color="black", ls="--", lw=0.8)
    panel.set(xlabel="channels awake", ylabel="test accuracy", ylim=(max(0.0, target - 0.03), target + 0.02))
