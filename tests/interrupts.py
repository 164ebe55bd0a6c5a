"""Work that is killed at random moments and taken up again: ``python tests/interrupts.py WORK FOLDER SEED KILLS``.

The work runs in forked children of this one process, which has one thread and has imported everything: a child that is
killed costs milliseconds, so many moments can be tried. Prints what was done; fails where the result of the disturbed
work is not that of the undisturbed one to the last bit.
"""

import os
import pickle
import random
import signal
import sys
import time
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from covey import limit_path
from covey.datasets import make_group_sparse
from covey.paper.experiments import Claim, Verdict, registry
from covey.paper.experiments.runner import reproduce
from covey.paper.experiments.style import panels
from covey.paper.experiments.tasks import records
from covey.settings import FitSettings
from covey.workflow.fit import fit_table
from covey.workflow.folder import GROUP_FILES, check_out, write_fit

DATA = make_group_sparse(150, 300, 3, active=6, sigma=1.0, random_state=0)
KILLS = 6


def wake_ups(seed):
    data = make_group_sparse(100, 300, 3, active=4, sigma=1.0, random_state=seed)
    path = limit_path(data.X, data.y, 3, max_groups=20)
    return [{"seed": seed, "i": i, "t": t} for i, (_, t) in enumerate(path.entered)]


def reproduction(folder):
    install_toy()
    (outcome,) = reproduce(["toy"], "quick", Path(folder))
    return outcome.frame.to_csv(), outcome.figure["svg"]


def overwriting(folder):
    """A fit that replaces another one: at every moment one of them is there, complete."""
    folder.mkdir(parents=True, exist_ok=True)
    table = pd.DataFrame(DATA.X[:60, :12], columns=[f"g{j // 3}_{j}" for j in range(12)])
    table.assign(y=DATA.y[:60]).to_csv(folder / "table.csv", index=False)
    settings = FitSettings((str(folder / "table.csv"),), ("y",), groups=("_",), selection="bic")
    if not (folder / "fit").exists():
        write_fit(fit_table(settings), folder / "fit")
    write_fit(fit_table(replace(settings, selection="ebic")), folder / "fit", overwrite=True)
    assert [file.name for file in folder.iterdir() if file.name.startswith(".")] == []
    return [(folder / "fit" / "coefficients.csv").read_text()]


def check(name, folder, was_there):
    """What must hold after every kill: a fit that was there once is there, complete. Returns whether it is."""
    if name != "overwriting" or not (was_there or (folder / "fit").exists()):
        return False
    assert {file.name for file in (folder / "fit").iterdir()} == GROUP_FILES
    check_out(folder / "fit", overwrite=True)  # compares checksums, and clears up
    return True


WORKS = {
    "reproduction": reproduction,
    "overwriting": overwriting,
}


def install_toy():
    """An experiment of many small tasks."""
    from dataclasses import make_dataclass

    kind = make_dataclass("Settings", [("repeats", int, 15)], frozen=True)
    kind.quick = classmethod(lambda cls: cls())

    @panels()
    def plot(frame, axes):
        axes.plot(frame["i"], frame["t"], ".")

    module = types.ModuleType("covey_test_toy", doc="Toy.")
    module.__dict__.update(
        TITLE="Toy",
        Settings=kind,
        run=lambda settings, jobs: pd.DataFrame(records(wake_ups, range(settings.repeats), jobs)),
        plot=plot,
        claims=lambda frame: [Claim("Toys work.", "rows", f"{len(frame)} rows", Verdict.HOLDS)],
    )
    sys.modules["covey_test_toy"] = module
    registry.MODULES["toy"] = "covey_test_toy"


def attempt(work, folder, result, kill=None, after=0.0):
    """Run the work in a child; true if it finished before it was killed."""
    child = os.fork()
    if child == 0:
        interrupts = []

        def interrupt(*given):
            interrupts.append(given)
            signal.default_int_handler(*given)

        signal.signal(signal.SIGINT, interrupt)
        try:
            result.with_suffix(".part").write_bytes(pickle.dumps(work(folder)))
            result.with_suffix(".part").rename(result)
        except BaseException as error:
            if interrupts:  # compiled code of libraries may turn a KeyboardInterrupt into an error of its own
                os._exit(130)
            print(f"{type(error).__name__}: {error}", flush=True)
            os._exit(1)
        os._exit(0)
    if kill is not None:
        time.sleep(after)
        os.kill(child, kill)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 130, -signal.SIGKILL, -signal.SIGINT), f"exit status {status}"
    return status == 0


def main(name, folder, seed, kills=KILLS):
    work, folder, rng = WORKS[name], Path(folder), random.Random(seed)
    work(folder / "warm-up")
    start = time.monotonic()
    assert attempt(work, folder / "undisturbed", folder / "undisturbed.pkl")
    seconds = time.monotonic() - start
    print(f"{name}: seed {seed}, {seconds:.2f} s undisturbed")
    pieces, survived, was_there = [], 0, False
    # a run that finished before its kill was not interrupted: the next kill comes sooner, until one was in time
    while len(pieces) < kills or survived == len(pieces):
        kill = rng.choice([signal.SIGKILL, signal.SIGINT])
        after = rng.uniform(0, (1.2 if name == "overwriting" else 0.4) * seconds) * 0.7**survived
        survived += attempt(work, folder / "disturbed", folder / "disturbed.pkl", kill, after)
        was_there = check(name, folder / "disturbed", was_there)
        pieces.append(len(list((folder / "disturbed").rglob("*.json"))))
        print(f"  {kill.name} after {after:.2f} s: {pieces[-1]} pieces kept")
    assert attempt(work, folder / "disturbed", folder / "disturbed.pkl")
    expected, found = (pickle.loads((folder / f"{kind}.pkl").read_bytes()) for kind in ("undisturbed", "disturbed"))
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(a, b)
    print("  the same to the last bit")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *map(int, sys.argv[4:]))
