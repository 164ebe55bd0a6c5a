"""``covey autoencoder``: parsing and printing only."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from covey.cli.console import check_out, complaints

if TYPE_CHECKING:
    import pandas as pd

    from covey.paper.datasets import DigitImages

KEPT = "Stopped. Finished epochs are kept; run the same command again to resume."

autoencoder = typer.Typer(
    help="Grouped autoencoders on MNIST: train, interpolate, report.", no_args_is_help=True, add_completion=False,
    pretty_exceptions_enable=False,
)  # fmt: skip

Images = Annotated[int | None, typer.Option("--images", min=2, help="Use only the first N training images.")]
Synthetic = Annotated[bool, typer.Option("--synthetic", help="Use drawn digits instead of MNIST, with no download.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda, ...")]


@autoencoder.command()
def train(
    model: Annotated[str, typer.Argument(help="AE, VAE, GAE8, GAE4 or IRMAE.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the checkpoint and the log.")] = Path("autoencoder"),
    epochs: Annotated[int, typer.Option("--epochs", min=1)] = 10,
    batch_size: Annotated[int, typer.Option("--batch-size", min=1)] = 128,
    learning_rate: Annotated[float, typer.Option("--learning-rate")] = 1e-3,
    seed: Annotated[int, typer.Option("--seed", min=0)] = 0,
    patience: Annotated[
        int | None,
        typer.Option("--patience", min=1, help="Stop after this many epochs without a better validation loss."),
    ] = None,
    latent: Annotated[int, typer.Option("--latent", min=1, help="Dimension of the latent space.")] = 512,
    width: Annotated[int, typer.Option("--width", min=1, help="Channels of the first convolution.")] = 32,
    images: Images = None,
    synthetic: Synthetic = False,
    device: Device = "auto",
    fresh: Annotated[bool, typer.Option("--fresh", help="Start again instead of resuming from a checkpoint.")] = False,
) -> None:
    """Train a model. Writes OUT/MODEL-SEED/checkpoint.pt and log.csv after every epoch, and resumes from there."""
    with complaints(KEPT):
        from covey.paper.nn.models import build
        from covey.paper.nn.training import CHECKPOINT
        from covey.paper.nn.training import train as train_model

        data = _load(images, synthetic)
        network = build(model, seed=seed, latent=latent, width=width)
        held = len(data.train_images) // 10 if patience is not None else 0  # the last tenth decides when to stop
        folder = out / f"{network.title}-{seed}"
        result = train_model(
            network, data.train_images[: len(data.train_images) - held],
            validation=data.train_images[-held:] if held else None, epochs=epochs, batch_size=batch_size,
            learning_rate=learning_rate, seed=seed, device=device, patience=patience, folder=folder, resume=not fresh,
        )  # fmt: skip
        last = result.history[-1]
        typer.echo(f"{network.title}: {result.status} after {last['epoch']} epochs, loss {last['loss']:.5f}")
        typer.echo(f"{network.latent_parameter_count()} parameters in the latent layers; {folder / CHECKPOINT}")


@autoencoder.command()
def interpolate(
    checkpoint: Annotated[Path, typer.Argument(help="A checkpoint written by `covey autoencoder train`.")],
    out: Annotated[Path, typer.Option("--out", help="The picture, .png.")] = Path("interpolation.png"),
    steps: Annotated[int, typer.Option("--steps", min=2, help="Images in a row.")] = 9,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Pairs of digits.")] = 6,
    synthetic: Synthetic = False,
) -> None:
    """Draw interpolations between test digits in a trained model's latent space."""
    with complaints(KEPT):
        import numpy as np

        from covey.optional import optional

        with optional("A picture"):
            from matplotlib.image import imsave

        from covey.files import write_atomically
        from covey.paper.nn.study import grid
        from covey.paper.nn.training import load_model

        check_out(out, (".png",), overwrite=True)

        data = _load(None, synthetic)
        images = grid(load_model(checkpoint), data.test_images, data.test_labels, rows, steps)
        picture = 255 - images.transpose(0, 2, 1, 3).reshape(rows * 28, steps * 28)
        stream = io.BytesIO()
        imsave(stream, np.kron(picture, np.ones((2, 2))), cmap="gray", vmin=0, vmax=255, format="png")
        write_atomically(out, stream.getvalue())
        typer.echo(f"{rows} rows of {steps} images: {out}")


@autoencoder.command()
def report(
    folder: Annotated[Path, typer.Argument(help="A folder of runs: the --out of `covey autoencoder train`.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the tables; by default the folder of runs.")
    ] = None,
    images: Images = None,
    synthetic: Synthetic = False,
    device: Device = "auto",
    pairs: Annotated[int, typer.Option("--pairs", min=1, help="Lines between random test digits.")] = 1000,
) -> None:
    """Measure every checkpoint in a folder: means and standard errors over seeds.

    Writes measures.csv, singular_values.csv and interpolations.npz.
    """
    with complaints(KEPT):
        from covey.paper.nn.study import Judge, measure_folder
        from covey.paper.results import write

        data = _load(images, synthetic)
        judge = Judge.of(data, device=device, pairs=pairs)
        frame = measure_folder(folder, judge, report=typer.echo)
        for file in write(frame, folder if out is None else out):
            typer.echo(f"wrote {file}")
        _print(frame)


def _print(frame: pd.DataFrame) -> None:
    """One row per measure, one column per model: means and standard errors over seeds."""
    from rich.console import Console
    from rich.table import Table

    shown = {
        "latent_parameters": ".0f", "reconstruction_error": ".5f", "effective_rank": ".1f", "components_99": ".1f",
        "midpoint_ratio": ".4f", "confidence_middle": ".4f", "frechet": ".3f", "probe_accuracy": ".4f",
    }  # fmt: skip
    found = frame[frame["quantity"].isin(shown)].groupby(["quantity", "model"], sort=False)["value"]
    summary: Any = found.agg(["mean", "sem", "count"])
    table = Table("measure", pad_edge=False)
    for model, seeds in summary.loc["midpoint_ratio", "count"].items():
        table.add_column(f"{model} ({seeds})", justify="right")
    for name, form in shown.items():
        cells = (
            f"{row['mean']:{form}}" + (f" ± {row['sem']:{form}}" if row["sem"] > 0 else "")
            for _, row in summary.loc[name].iterrows()
        )
        table.add_row(name.replace("_", " "), *cells)
    Console().print(table)


def _load(images: int | None, synthetic: bool) -> DigitImages:
    from covey.paper.datasets import load_mnist, make_digits

    return make_digits(images or 2000, 500) if synthetic else load_mnist().head(images)
