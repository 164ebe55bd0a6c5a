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
    """Means over seeds, methods x problems.

    `error` is the test deviance, `to_best` relative to the least of the methods that ran on all seeds, but for the
    references, `to_null` relative to the null model; a method that ran on some seeds is compared on these. `false` and
    `missed` are counted where the truth is known; `stability` is Nogueira's.
    """

    def __init__(self, store: Store) -> None:
        frame = pd.DataFrame(list(store.rows.values()))
        self.problems, self.methods = list(frame["problem"].unique()), list(frame["method"].unique())
        self.seeds = sorted(int(seed) for seed in frame["seed"].unique())
        for column in ("error", "false", "missed", "groups", "seconds", "reason", "selected", "n_groups"):
            if column not in frame:
                frame[column] = np.nan
        self.frame = frame
        errors = self._by_seed("error")
        self.error = self._means(errors)
        whole = errors.notna().all(axis=1).unstack("problem").reindex(self.methods)[self.problems]
        judged = self.error.where(whole | ~whole.any()).drop(index=[one for one in REFERENCES if one in self.methods])
        self.best = judged.idxmin()
        self.to_best, self.to_null = self.error.copy(), self.error.copy()
        for method, problem in errors.index:
            ran = errors.loc[(method, problem)].notna()
            for table, reference in ((self.to_best, self.best[problem]), (self.to_null, "null")):
                compared = errors.loc[(reference, problem)] if (reference, problem) in errors.index else ran * np.nan
                table.loc[method, problem] /= compared[ran].mean()
        self.false, self.missed, self.groups, self.seconds = (
            self._means(self._by_seed(measure)) for measure in ("false", "missed", "groups", "seconds")
        )
        self.stability = self._stability()

    def _by_seed(self, measure: str) -> pd.DataFrame:
        return self.frame.pivot(index=["method", "problem"], columns="seed", values=measure).astype(float)

    def _means(self, table: pd.DataFrame) -> pd.DataFrame:
        return table.mean(axis=1).unstack("problem").reindex(self.methods)[self.problems]

    def partial(self) -> dict[str, list[str]]:
        """By method, the problems that it ran on under some seeds only."""
        known = self._by_seed("error").notna().sum(axis=1)
        asked = self.frame[self.frame["reason"].isna()].groupby(["method", "problem"])["seed"].nunique()
        some = [key for key, count in asked.items() if 0 < count < len(self.seeds) and known[key]]
        found: dict[str, list[str]] = {}
        for method, problem in some:
            found.setdefault(str(method), []).append(str(problem))
        return found

    def absent(self) -> dict[str, list[str]]:
        """By method, the problems for which there is neither a result nor a reason."""
        there = set(zip(self.frame["method"], self.frame["problem"], strict=True))
        found = {method: [one for one in self.problems if (method, one) not in there] for method in self.methods}
        return {method: problems for method, problems in found.items() if problems}

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
