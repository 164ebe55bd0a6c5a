"""Channels of a convolutional network, pruned by six methods on all of MNIST, three seeds: minutes on one GPU.

Needs torch, numpy and the MNIST files in COVEY_DATA; nothing else. Several processes share the device: the networks
are small, and what costs time is starting kernels. The number of epochs is chosen so that everything ends in time,
unless it is given; it is the same for every run. A process begins no run that it cannot end in time, and runs are
ordered by seed, so that whatever is finished is complete for the first seeds. Results are written after every run.

    COVEY_DATA=... python benchmarks/channels_full.py --out docs/results/channels
    COVEY_DATA=... python benchmarks/channels_full.py --out tiny --tiny             # a check of the script itself
"""

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from autoencoder_full import import_covey

# as in covey.paper.experiments.channels.Settings, which needs pandas
PENALTIES, STARTS = (3e-4, 1e-3, 3e-3, 1e-2), (1.0, 0.5, 0.25, 0.125)
LEARNING_RATES = (0.1, 0.3)
WIDTHS, BATCH_SIZE, VALIDATION, RUNGS = (32, 64, 128), 128, 10_000, 32
MOST_EPOCHS = 20


def all_work(options):
    from covey.paper.nn.channel_study import all_runs

    strengths = {
        "plain": (0.0,), "group lasso": PENALTIES, "D-gating 2": PENALTIES, "D-gating 3": PENALTIES,
        "power 2": STARTS, "power 3": STARTS,
    }  # fmt: skip
    rates = LEARNING_RATES
    if options.tiny:
        strengths = {method: values[:1] for method, values in strengths.items()}
        rates = rates[:1]
    return all_runs(strengths, rates, range(options.seeds))


def load(options):
    from covey.paper.datasets.mnist import load_mnist
    from covey.paper.nn.channel_study import Digits

    data, validation = load_mnist(), VALIDATION
    if options.tiny:
        data, validation = data.head(1200, 300), 300
    return Digits.of(data, validation, options.device)


def write_rows(file, rows):
    """The whole file again, in one go."""
    from covey.paper.nn.channel_study import COLUMNS

    beside = file.with_name(f".{file.name}.{os.getpid()}")
    with beside.open("w", newline="") as stream:
        table = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        table.writeheader()
        for row in rows:
            table.writerow({name: f"{v:.8g}" if isinstance(v, float) else v for name, v in row.items()})
    os.replace(beside, file)


def worker(options):
    """The share of the runs that falls to this process, one after another; or the time of a few steps."""
    import_covey()
    import torch

    from covey.paper.nn.channel_study import ChannelRun, Digits, measure_channels, train_channels

    torch.set_num_threads(1)
    data, folder = load(options), Path(options.out) / "parts"
    widths = (8, 8, 8) if options.tiny else WIDTHS
    if options.time:
        few = 5 if options.tiny else 100
        part = Digits(tuple(t[: few * BATCH_SIZE] for t in data.train), data.validation, data.test)
        run = ChannelRun("D-gating 3", 1e-3, 0.1, 0)
        for _ in range(2):  # the first warms up
            start = time.perf_counter()
            train_channels(run, part, widths=widths, epochs=1, batch_size=BATCH_SIZE)
            if data.test[0].is_cuda:
                torch.cuda.synchronize()
            seconds = time.perf_counter() - start
        epoch = seconds * len(data.train[1]) / len(part.train[1])
        start = time.perf_counter()
        net = train_channels(run, part, widths=widths, epochs=1, batch_size=BATCH_SIZE)
        measure_channels(run, net, data, RUNGS)
        told = {"epoch": epoch, "measure": max(0.0, time.perf_counter() - start - seconds)}
        (folder / f"{options.worker}.time.json").write_text(json.dumps(told))
        return
    mine, rows, longest = all_work(options)[options.worker :: options.processes], [], 0.0
    for run in mine:
        start = time.time()
        if start + 1.1 * longest > options.until:
            print(f"process {options.worker}: no time for {run}", flush=True)
            break
        net = train_channels(run, data, widths=widths, epochs=options.epochs, batch_size=BATCH_SIZE)
        found = measure_channels(run, net, data, RUNGS)
        longest = max(longest, time.time() - start)
        rows += found
        write_rows(folder / f"{options.worker}.csv", rows)
        print(
            f"{run.method} {run.strength:g}, learning rate {run.learning_rate:g}, seed {run.seed}: "
            f"{found[0]['channels']} channels awake, test accuracy {found[0]['test']:.4f}, {time.time() - start:.1f} s",
            flush=True,
        )


def launch(options, extra, until):
    """All processes at once; waits for them, and says how many failed."""
    shared = ["--out", options.out, "--device", options.device, "--seeds", str(options.seeds), "--until", str(until)]
    shared += ["--processes", str(options.processes), *(["--tiny"] if options.tiny else [])]
    command = [sys.executable, str(Path(__file__).resolve()), *shared, *extra]
    running = [subprocess.Popen([*command, "--worker", str(k)]) for k in range(options.processes)]
    failed = 0
    for process in running:
        try:
            failed += process.wait(timeout=max(1.0, until + 30 - time.time())) != 0
        except subprocess.TimeoutExpired:
            process.kill()
            failed += 1
    return failed


def choose_epochs(options, begin):
    """As many epochs as fit, where all processes train at once."""
    times = [json.loads(f.read_text()) for f in (Path(options.out) / "parts").glob("*.time.json")]
    if not times:
        return 5
    epoch, measure = (max(t[name] for t in times) for name in ("epoch", "measure"))
    runs = -(-len(all_work(options)) // options.processes)
    # a tenth of the time is kept for loading and for having timed too well
    left = 0.9 * (60 * options.minutes - (time.time() - begin)) / runs - measure
    print(f"{epoch:.2f} s an epoch, {measure:.1f} s to measure, {runs} runs per process", flush=True)
    return max(2, min(MOST_EPOCHS, int(left / epoch)))


def collect(options, epochs, begin):
    """One table of what the processes wrote."""
    import torch

    out, rows = Path(options.out), []
    for file in sorted((out / "parts").glob("*.csv")):
        with file.open(newline="") as stream:
            rows += list(csv.DictReader(stream))
    if not rows:
        sys.exit("No network was trained.")
    order = {(run.method, f"{run.strength:.8g}"): k for k, run in enumerate(all_work(options))}
    rows.sort(key=lambda r: (int(r["seed"]), order.get((r["method"], r["strength"]), 0), float(r["learning_rate"])))
    write_rows(out / "curves.csv", rows)
    done = {(r["method"], r["strength"], r["learning_rate"], r["seed"]) for r in rows}
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    about = {
        "runs": len(done), "planned": len(all_work(options)), "epochs": epochs, "batch_size": BATCH_SIZE,
        "widths": WIDTHS, "validation": VALIDATION, "seeds": options.seeds, "device": gpu, "torch": torch.__version__,
        "minutes": round((time.time() - begin) / 60, 2),
    }  # fmt: skip
    (out / "about.json").write_text(json.dumps(about, indent=1) + "\n")
    print(f"{len(done)} of {about['planned']} runs in {about['minutes']} minutes; results in {out}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="channels-results", help="folder for the results")
    parser.add_argument("--epochs", type=int, default=0, help="0 (the default) fits them into --minutes")
    parser.add_argument("--minutes", type=float, default=7.5, help="time for everything")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--processes", type=int, default=max(1, min(12, (os.cpu_count() or 2) - 2)))
    parser.add_argument("--tiny", action="store_true", help="small networks, few images, one setting per method")
    parser.add_argument("--worker", type=int, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--time", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, default=0.0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        return worker(options)
    import_covey()
    begin = time.time()
    parts = Path(options.out) / "parts"
    shutil.rmtree(parts, ignore_errors=True)
    parts.mkdir(parents=True)
    epochs = options.epochs
    if not epochs:
        launch(options, ["--time"], begin + 90)
        epochs = choose_epochs(options, begin)
    print(f"{epochs} epochs", flush=True)
    failed = launch(options, ["--epochs", str(epochs)], begin + 60 * options.minutes)
    collect(options, epochs, begin)
    if not failed:
        shutil.rmtree(parts)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
