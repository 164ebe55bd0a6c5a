"""A table of survival times in which groups g1 and g4 matter."""

import numpy as np
import pandas as pd

N_GROUPS = 6


def make_trial(n_rows=160, seed=0):
    """Columns g0_0 to g5_1, months and dead; status, site and entry say the same in other words, or add to it."""
    rng = np.random.default_rng(seed)
    columns = [f"g{j // 2}_{j % 2}" for j in range(2 * N_GROUPS)]
    frame = pd.DataFrame(rng.standard_normal((n_rows, 2 * N_GROUPS)), columns=columns)
    eta = (frame["g1_0"] - frame["g1_1"] + frame["g4_0"]).to_numpy()
    site = np.array(["north", "south"])[np.arange(n_rows) % 2]
    entry = rng.uniform(0.0, 0.5, n_rows)
    death = entry + rng.exponential(np.exp(-eta) * np.where(site == "north", 10.0, 20.0))
    lost = entry + rng.uniform(1.0, 40.0, n_rows)
    dead = (death <= lost).astype(int)
    months = np.maximum(np.ceil(10 * np.minimum(death, lost)) / 10, 0.6)  # with ties
    return frame.assign(
        months=months, dead=dead, status=np.where(dead == 1, "dead", "alive"), site=site, entry=entry.round(2)
    )


OTHERS = ["--drop", "status", "--drop", "site", "--drop", "entry"]
