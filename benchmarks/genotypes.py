"""Simulated genotypes with linkage blocks in a .bed file: time and memory of fits beside adelie's path.

    python benchmarks/genotypes.py [--rows 10000] [--variants 20000] [--full] [--threads 1] [--methods ...] [--save]

Every chromosome of a person is a mosaic of 32 founders: at the start of each block of 20 variants it changes to another
founder with probability one half. Fifty variants, spread over the blocks, explain half of the variance of y. A fifth of
the rows is kept for the error on new samples. Every method runs in a process of its own, so that its peak memory is
known, and compiled code is loaded before the clock starts; the memory up to then is "of it before". adelie
(`snp_unphased`, its default path of 100 penalties on all training rows, without folds; the best penalty on the new
samples is taken) needs a file of its own, which is made from dense int8 before its clock starts.
--full is 50 000 x 100 000. Goals there: at most 0.2 of adelie's time, and a peak of the packed size and 10%.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

METHODS = (
    "covey, hold-out", "covey, five folds", "covey, five folds, float32", "covey, five folds, binomial", "adelie path",
)  # fmt: skip
BLOCK, FOUNDERS, CAUSAL = 20, 32, 50
RESULTS = Path(__file__).parent / "results" / "genotypes.md"


def simulate(folder: Path, n: int, p: int, seed: int = 0) -> None:
    """Write x.bed, x.bim, x.fam, and y.npy with the responses; causal.npy holds the causal variants."""
    import numpy as np

    rng = np.random.default_rng(seed)
    causal = np.sort(rng.choice(p // BLOCK, CAUSAL, replace=False) * BLOCK + rng.integers(0, BLOCK, CAUSAL))
    effects, eta = dict(zip(causal.tolist(), rng.choice([-1.0, 1.0], CAUSAL), strict=True)), np.zeros(n)
    founder = rng.integers(0, FOUNDERS, (2, n))
    code = np.array([3, 2, 0], dtype=np.uint8)  # of 0, 1 and 2 copies of A1
    with (folder / "x.bed").open("wb") as file:
        file.write(b"\x6c\x1b\x01")
        for start in range(0, p, BLOCK):
            change = rng.random((2, n)) < 0.5
            founder = np.where(change, rng.integers(0, FOUNDERS, (2, n)), founder)
            alleles = (rng.random((BLOCK, FOUNDERS)) < rng.uniform(0.1, 0.5, (BLOCK, 1))).astype(np.uint8)
            alleles[:, 0], alleles[:, 1] = 0, 1  # no variant is constant
            counts = alleles[:, founder[0]] + alleles[:, founder[1]]
            for j in range(start, start + BLOCK):
                if j in effects:
                    one = counts[j - start].astype(float)
                    eta += effects[j] * (one - one.mean()) / one.std()
            codes = np.zeros((BLOCK, -(-n // 4) * 4), dtype=np.uint8)
            codes[:, :n] = code[counts]
            codes = codes.reshape(BLOCK, -1, 4) << np.array([0, 2, 4, 6], dtype=np.uint8)
            file.write((codes[..., 0] | codes[..., 1] | codes[..., 2] | codes[..., 3]).tobytes())
    (folder / "x.bim").write_text("".join(f"{1 + 22 * j // p}\tv{j}\t0\t{1000 * j + 1}\tA\tC\n" for j in range(p)))
    (folder / "x.fam").write_text("".join(f"0 s{i} 0 0 0 -9\n" for i in range(n)))
    np.save(folder / "y.npy", eta / eta.std() + rng.standard_normal(n))
    np.save(folder / "causal.npy", causal)


def run(folder: Path, method: str, threads: int) -> dict[str, Any]:
    """One method in this process: seconds, peak memory, error on new samples, and what was found."""
    import numpy as np

    y, causal = np.load(folder / "y.npy"), np.load(folder / "causal.npy")
    n_fit = len(y) * 4 // 5
    prepare = _adelie if method.startswith("adelie") else _covey
    fit = prepare(folder, method, y, n_fit, threads)
    loaded = _peak()
    before, cpu = time.perf_counter(), time.process_time()
    score = fit()
    seconds, cpu = time.perf_counter() - before, time.process_time() - cpu
    peak = _peak()
    fitted, chosen, passes = score()
    held = slice(n_fit, None)
    blocks = set((causal // BLOCK).tolist())
    found = {int(j) // BLOCK for j in chosen}
    return {
        "method": method,
        "seconds": round(seconds, 1),
        "CPU seconds": round(cpu, 1),
        "passes": passes,
        "peak GiB": round(peak, 3),
        "of it before": round(loaded, 3),
        "correlation on new samples": round(float(np.corrcoef(fitted[held], y[held])[0, 1]), 3),
        "variants": len(chosen),
        "causal blocks found": len(found & blocks),
        "other blocks": len(found - blocks),
    }


def _peak() -> float:
    """Peak memory of the process so far, GiB; mapped files count."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _covey(folder: Path, method: str, y: Any, n_fit: int, threads: int) -> Any:
    import numpy as np

    import covey

    binomial, dtype = "binomial" in method, "float32" if "float32" in method else "float64"
    selection = "holdout" if "hold-out" in method else 5

    def model() -> Any:
        kind = covey.GroupSparseClassifier if binomial else covey.GroupSparseRegressor
        return kind(selection=selection, random_state=0)

    def response(values: Any) -> Any:
        return (values > np.median(values)).astype(int) if binomial else values

    ids = [f"s{i}" for i in range(len(y))]
    small = tempfile.mkdtemp()
    simulate(Path(small), 400, 2000)
    tiny = covey.open(f"{small}/x.bed")
    model().fit(tiny, response(np.load(f"{small}/y.npy"))).predict(tiny)

    def fit() -> Any:
        X = covey.open(folder / "x.bed", samples=ids[:n_fit], dtype=dtype)
        fitted = model().fit(X, response(y[:n_fit]))

        def score() -> tuple[Any, Any, int]:
            # the first rows are those of the fit, and only the others are scored
            passes, new = X.n_passes, covey.open(folder / "x.bed", like=X)
            eta = fitted.decision_function(new) if binomial else fitted.predict(new)
            return eta, np.flatnonzero(np.ravel(fitted.coef_)), passes

        return score

    return fit


def _adelie(folder: Path, method: str, y: Any, n_fit: int, threads: int) -> Any:
    import adelie as ad
    import numpy as np

    path = str(folder / "x.snpdat")

    def fit() -> Any:
        X = ad.matrix.snp_unphased(ad.io.snp_unphased(path), dtype=np.float64, n_threads=threads)
        w = np.zeros(len(y))
        w[:n_fit] = 1 / n_fit
        state = ad.grpnet(X, ad.glm.gaussian(y, weights=w), n_threads=threads, progress_bar=False)

        def score() -> tuple[Any, Any, str]:
            eta = ad.diagnostic.predict(X, state.betas, state.intercepts, n_threads=threads)
            # the best penalty on the new samples: better than any choice that does not see them
            best = int(np.argmin(((eta[:, n_fit:] - y[n_fit:]) ** 2).sum(axis=1)))
            return eta[best], state.betas[best].indices, ""

        return score

    return fit


def _for_adelie(folder: Path, n: int, p: int, threads: int) -> float:
    """Write adelie's file; the seconds that it took."""
    import adelie as ad
    import numpy as np

    import covey

    start = time.perf_counter()
    X = covey.open(folder / "x.bed", dtype="float32")
    calls = np.empty((n, p), dtype=np.int8, order="F")
    for a in range(0, p, 64):
        calls[:, a : a + 64] = X.take(np.arange(a, min(a + 64, p)))
    ad.io.snp_unphased(str(folder / "x.snpdat")).write(calls, n_threads=threads)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--variants", type=int, default=20_000)
    parser.add_argument("--full", action="store_true", help="50 000 x 100 000")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=METHODS)
    parser.add_argument("--save", action="store_true", help="keep the table in benchmarks/results/")
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    n, p = (50_000, 100_000) if args.full else (args.rows, args.variants)
    if args.one == "write":
        print(json.dumps(_for_adelie(Path(args.folder), n, p, args.threads)))
        return
    if args.one:
        print(json.dumps(run(Path(args.folder), args.one, args.threads)))
        return
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(args.threads)
    with tempfile.TemporaryDirectory() as folder:
        simulate(Path(folder), n, p)

        def call(what: str) -> Any:
            command = [sys.executable, __file__, "--folder", folder, "--one", what, "--threads", str(args.threads)]
            output = subprocess.run(
                [*command, "--rows", str(n), "--variants", str(p)], stdout=subprocess.PIPE, text=True, check=True
            )
            return json.loads(output.stdout.splitlines()[-1])

        packed = (Path(folder) / "x.bed").stat().st_size / 2**30
        methods = [m for m in args.methods if not m.startswith("adelie") or find_spec("adelie")]
        written = call("write") if "adelie path" in methods else None
        rows = []
        for method in methods:
            rows.append(call(method))
            print(rows[-1], file=sys.stderr, flush=True)
    lines = [
        f"{n:,} samples (four fifths to fit) and {p:,} variants, packed {packed:.3f} GiB, threads: {args.threads}, "
        f"load average at the end: {os.getloadavg()[0]:.1f}.\n",
        "| " + " | ".join(rows[0]) + " |",
        "| " + " | ".join(["---"] * len(rows[0])) + " |",
        *("| " + " | ".join(map(str, row.values())) + " |" for row in rows),
    ]
    if written is not None:
        lines.append(f"\nadelie's file took {written:.1f} s to write, which is not in its time.")
    text = "\n".join(lines)
    print(text)
    if args.save:
        RESULTS.write_text(f"<!-- What benchmarks/genotypes.py wrote; its docstring says how to run it. -->\n{text}\n")


if __name__ == "__main__":
    main()
