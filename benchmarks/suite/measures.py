"""What the suite reports of single results: errors to the best and to the null model, groups, stability, time."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .store import Store

REFERENCES = ("null", "oracle")


def stability(selections: list[list[int]], n_groups: int) -> float:
    """Nogueira's measure over splits: 1 if all select the same, 0 as if each drew its number of groups at random.

    It is not defined where every split selects all groups or none.
    """
    chosen = np.zeros((len(selections), n_groups))
    for row, groups in zip(chosen, selections, strict=True):
        row[groups] = 1
    share, m = chosen.mean(axis=0), len(selections)
    level = share.mean()
    if m < 2 or not 0 < level < 1:
        return np.nan
    return float(1 - m / (m - 1) * (share * (1 - share)).mean() / (level * (1 - level)))


class Results:
    """Means over seeds, methods x problems; a method has a result on a problem where it has one for every seed.

    `error` is the test deviance, `to_best` relative to the least of all methods but the references, `to_null` relative
    to the null model; `false` and `missed` are counted where the truth is known; `stability` is Nogueira's.
    """

    def __init__(self, store: Store) -> None:
        frame = pd.DataFrame(list(store.rows.values()))
        self.problems, self.methods = list(frame["problem"].unique()), list(frame["method"].unique())
        self.seeds = sorted(int(seed) for seed in frame["seed"].unique())
        for column in ("error", "false", "missed", "groups", "seconds", "reason", "selected", "n_groups"):
            if column not in frame:
                frame[column] = np.nan
        self.frame = frame
        self.error = self._means("error")
        judged = self.error.drop(index=[name for name in REFERENCES if name in self.error.index])
        self.to_best = self.error / judged.min()
        self.best = judged.idxmin()
        self.to_null = self.error / self.error.loc["null"]
        self.false, self.missed = self._means("false"), self._means("missed")
        self.groups, self.seconds = self._means("groups"), self._means("seconds")
        self.stability = self._stability()

    def _means(self, measure: str) -> pd.DataFrame:
        table = self.frame.pivot(index=["method", "problem"], columns="seed", values=measure).astype(float)
        return table.mean(axis=1, skipna=False).unstack("problem").reindex(self.methods)[self.problems]

    def _stability(self) -> pd.DataFrame:
        found = pd.DataFrame(np.nan, index=self.methods, columns=self.problems)
        for (method, problem), rows in self.frame.groupby(["method", "problem"]):
            if rows["selected"].notna().all():
                found.loc[method, problem] = stability(rows["selected"].tolist(), int(rows["n_groups"].iloc[0]))
        return found

    def reasons(self) -> dict[tuple[str, str], list[str]]:
        """Problems by method and reason."""
        failed = self.frame[self.frame["reason"].notna()]
        groups = failed.groupby(["method", "reason"], sort=False)["problem"]
        return {(str(method), str(reason)): list(found.unique()) for (method, reason), found in groups}


def geometric(values: pd.Series) -> float:
    values = values.dropna()
    return float(np.exp(np.log(values).mean())) if len(values) else np.nan
