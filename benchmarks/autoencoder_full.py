"""The five autoencoders on all of MNIST, three seeds each, measured: a few minutes on one GPU.

Needs torch, numpy, pandas and the MNIST files in COVEY_DATA; nothing else. One process a model, all on the same device:
the networks are small, and what costs time is starting kernels. The number of epochs is chosen so that everything ends
in time, unless it is given; it is the same for every model. Results are written into the output folder after every
trained model, so that whatever is finished is there.

    COVEY_DATA=... python benchmarks/autoencoder_full.py --out docs/results/autoencoder
    COVEY_DATA=... python benchmarks/autoencoder_full.py --out tiny --tiny          # a check of the script itself
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import traceback
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODELS = ("AE", "VAE", "GAE8", "GAE4", "IRMAE")


def import_covey():
    """Import covey.paper.nn from this checkout, also where only torch and numpy are installed."""
    sys.path.insert(0, str(ROOT / "src"))
    try:
        import scipy.sparse
    except ImportError:  # covey.validation asks it one thing: whether a matrix is sparse; there are none here
        scipy, sparse = types.ModuleType("scipy"), types.ModuleType("scipy.sparse")
        sparse.issparse = lambda _: False
        scipy.sparse = sparse
        sys.modules |= {"scipy": scipy, "scipy.sparse": sparse}
    try:
        import covey.datasets
    except ImportError:  # its loaders of tables need pandas; the images need numpy only
        for name in [name for name in sys.modules if name.startswith("covey.datasets")]:
            del sys.modules[name]
        bare = types.ModuleType("covey.datasets")
        bare.__path__ = [str(ROOT / "src" / "covey" / "datasets")]
        sys.modules["covey.datasets"] = bare
    import covey.paper.nn

    return covey


def load(options):
    if options.synthetic:
        from covey.paper.datasets.digits import make_digits

        data = make_digits(options.images or 2000, 500)
    else:
        from covey.paper.datasets.mnist import load_mnist

        data = load_mnist()
    return data.head(options.images, 500 if options.tiny else None)


def chosen(options):
    return [name for name in MODELS if not options.only or name in options.only.split(",")]


def worker(options):
    """Train and measure one model from every seed, or time a few steps of it."""
    import_covey()
    import torch

    from covey.paper.nn.classifier import Classifier, train_classifier
    from covey.paper.nn.models import build
    from covey.paper.nn.study import Judge, run_study
    from covey.paper.nn.training import choose_device, train
    from covey.paper.results import combined, write

    torch.set_num_threads(options.threads)
    torch.backends.cudnn.benchmark = True
    place = choose_device(options.device)
    data = load(options)
    sizes = {"latent": 32, "width": 8} if options.tiny else {}
    folder = Path(options.out) / "parts"
    folder.mkdir(parents=True, exist_ok=True)
    if options.time:
        model = build(options.worker, **sizes)
        few = data.train_images[: options.batch_size * (5 if options.tiny else 60)]
        runs = [train(model, few, epochs=2, batch_size=options.batch_size, device=place, amp=False) for _ in range(2)]
        seconds = runs[-1].history[-1]["seconds"] * len(data.train_images) / len(few)
        (folder / f"{options.worker}.time.json").write_text(json.dumps({"epoch_seconds": seconds}))
        if options.worker == chosen(options)[0]:
            judge = train_classifier(data.train_images, data.train_labels, epochs=3, device=place)
            torch.save(judge.cpu().state_dict(), folder / "classifier.pt")
        return
    classifier = None
    if (folder / "classifier.pt").is_file():  # the same judge for every model
        classifier = Classifier()
        classifier.load_state_dict(torch.load(folder / "classifier.pt", weights_only=True))
    judge = Judge.of(data, device=place, pairs=50 if options.tiny else 1000, epochs=3, classifier=classifier)
    results = []
    begin = time.monotonic()
    for done, seed in enumerate(range(options.seeds)):
        left = options.until - time.time()
        if done and left < 1.05 * (time.monotonic() - begin) / done:
            print(f"{options.worker}: no time for seed {seed}", flush=True)
            break
        try:
            found = run_study(
                data, models=[options.worker], seeds=[seed], epochs=options.epochs, batch_size=options.batch_size,
                device=place, amp=False, judge=judge, progress=False, options=sizes,
                report=lambda line: print(line, flush=True),
            )  # fmt: skip
        except Exception:  # one seed that fails must not take the others with it
            traceback.print_exc()
            continue
        results.append(found)
        write(combined(results), folder / options.worker)
    if options.worker == chosen(options)[0]:
        accuracy = judge.classifier.accuracy(judge.test, judge.test_labels)
        about = {
            "device": torch.cuda.get_device_name(place) if place.type == "cuda" else "CPU",
            "torch": torch.__version__,
            "images": len(data.train_images),
            "classifier_accuracy": round(accuracy, 5),
            "blend_midpoint_ratio": round(judge.blend_ratio(), 5),
        }
        (folder / "about.json").write_text(json.dumps(about))


def launch(options, extra, until):
    """One process a model, all at once; waits for them and says which failed."""
    shared = ["--out", options.out, "--device", options.device, "--batch-size", str(options.batch_size)]
    shared += ["--seeds", str(options.seeds), "--threads", str(options.threads), "--until", str(until)]
    shared += ["--only", options.only, *(["--tiny"] if options.tiny else [])]
    shared += ["--synthetic"] if options.synthetic else []
    shared += ["--images", str(options.images)] if options.images else []
    command = [sys.executable, str(Path(__file__).resolve()), *shared, *extra]
    models = chosen(options)
    running = {name: subprocess.Popen([*command, "--worker", name]) for name in models}
    failed = []
    for name, process in running.items():
        try:
            code = process.wait(timeout=max(1.0, until + 30 - time.time()))
        except subprocess.TimeoutExpired:
            process.kill()
            code = "out of time"
        if code != 0:
            failed.append(name)
            print(f"{name} did not finish: {code}", flush=True)
    return models, failed


def choose_epochs(options, models, begin):
    """As many epochs as fit into the time, at most 40, where all models train at once."""
    times = []
    for name in models:
        file = Path(options.out) / "parts" / f"{name}.time.json"
        if file.is_file():
            times.append(json.loads(file.read_text())["epoch_seconds"])
    if not times:
        return 10
    print(f"seconds an epoch, all models at once: at most {max(times):.2f}", flush=True)
    # a quarter of the time is kept for loading, measuring, and for having timed too well
    left = 0.75 * (60 * options.minutes - (time.time() - begin))
    return max(2, min(40, int(left / (options.seeds * max(times)))))


def collect(options, models, epochs, begin):
    """Gather what the processes wrote."""
    import_covey()
    from covey.paper.results import combined, read, write

    out = Path(options.out)
    results = [read(out / "parts" / name) for name in models if (out / "parts" / name).is_dir()]
    if not results:
        sys.exit("No model was trained.")
    frame = combined(results)
    write(frame, out)
    about = {"epochs": epochs, "batch_size": options.batch_size, "seeds": options.seeds, "learning_rate": 1e-3}
    if (out / "parts" / "about.json").is_file():
        about |= json.loads((out / "parts" / "about.json").read_text())
    about["minutes"] = round((time.time() - begin) / 60, 2)
    (out / "about.json").write_text(json.dumps(about, indent=1) + "\n")
    for measure in ("reconstruction_error", "effective_rank", "components_99", "midpoint_ratio", "confidence_middle",
                    "frechet", "probe_accuracy", "seconds"):  # fmt: skip
        by_model = frame[frame["quantity"] == measure].groupby("model", sort=False)["value"]
        table = by_model.agg(["mean", "sem", "count"]).itertuples(name=None)
        print(f"{measure:<22}" + "  ".join(f"{m} {v:.5g}±{e:.2g} (n={n})" for m, v, e, n in table))
    print(f"{about['minutes']} minutes in all; results in {out}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="autoencoder-results", help="folder for the results")
    parser.add_argument("--epochs", type=int, default=0, help="0 (the default) fits them into --minutes")
    parser.add_argument("--minutes", type=float, default=8.5, help="time for everything")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=max(1, (os.cpu_count() or 2) // 5))
    parser.add_argument("--images", type=int, default=None, help="the first so many training images")
    parser.add_argument("--only", default="", help="models, separated by commas")
    parser.add_argument("--tiny", action="store_true", help="small networks, few images")
    parser.add_argument("--synthetic", action="store_true", help="drawn digits instead of MNIST")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--time", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, default=0.0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.tiny and options.images is None:
        options.images = 1000
    if options.worker:
        return worker(options)
    begin = time.time()
    Path(options.out).mkdir(parents=True, exist_ok=True)
    shutil.rmtree(Path(options.out) / "parts", ignore_errors=True)
    models, _ = launch(options, ["--time"], begin + 120)
    epochs = options.epochs or choose_epochs(options, models, begin)
    print(f"{epochs} epochs", flush=True)
    models, failed = launch(options, ["--epochs", str(epochs)], begin + 60 * options.minutes)
    collect(options, models, epochs, begin)
    if not failed:
        shutil.rmtree(Path(options.out) / "parts")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
