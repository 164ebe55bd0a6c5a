"""Reports to test with: one with constructed numbers of any size, one of a real fit."""

import numpy as np
import scipy.sparse as sp

from covey import Groups, Path
from covey.report import FitReport
from covey.report.path import keep_frames
from covey.report.quality import Score
from covey.report.remarks import Remark
from covey.search.chosen import Judged


def path_of(groups: Groups, times, strengths, model, entered, pattern=None) -> Path:
    """A stepwise path with these strengths that ends in a model; coefficients are multiples of a pattern."""
    pattern = np.ones(groups.n_columns) if pattern is None else pattern
    path = Path(
        times=np.asarray(times, dtype=float),
        coefs=sp.csr_array(strengths[:, groups.labels] * pattern),
        intercepts=np.zeros(len(times)),
        groups=groups,
        entered=entered,
        strengths=sp.csr_array(strengths),
        stepwise=True,
    )
    return path.ending_in(model[groups.labels] * pattern, 0.0, model, None)


def constructed_path(groups: Groups, *, n_times: int = 300) -> Path:
    """A path of many small steps: group l wakes up at 100 + 300 l/L and grows to a level; signs are mixed."""
    L, times = groups.n_groups, np.arange(0, 2 * n_times, 2)
    woke, level = 100 + 300 * np.arange(L) / L, 5.0 / np.sqrt(1 + np.arange(L))
    age = times[:, None] - woke
    strengths = np.where(age >= 0, level * (1 - np.exp(-np.maximum(age, 0) / 30)) + 1e-6, 0.0)
    pattern = np.random.default_rng(0).standard_normal(groups.n_columns)
    return path_of(groups, times, strengths, strengths[-1], list(enumerate(woke.tolist())), pattern)


def constructed_limit_path(groups: Groups) -> Path:
    """A limit path: a group wakes up at each of the times 1, 2, ...; the model after it has every other group."""
    L = groups.n_groups
    strengths = np.tril(np.ones((L + 1, L)), -1) * (5.0 / np.sqrt(1 + np.arange(L)))
    model = strengths[-1] * (np.arange(L) % 2 == 0) * 0.9
    pattern = np.random.default_rng(0).standard_normal(groups.n_columns)
    return path_of(groups, np.arange(L + 1), strengths, model, [(l, l + 1.0) for l in range(L)], pattern)


def constructed_report(groups: Groups, path: Path | None = None) -> FitReport:
    """A report on a path, by default a limit path, with candidates and everything else that a page shows."""
    path = constructed_limit_path(groups) if path is None else path
    counts = np.arange(groups.n_groups + 1.0)
    awake = np.flatnonzero(path.strengths[[-1]].toarray())
    chosen_by = Judged(
        label="mean squared error on held-out rows",
        x=counts,
        values=1.0 + (counts - awake.size) ** 2 / 10,
        band=np.full(counts.size, 0.3),
        at=float(awake.size),
        value=1.0,
        n_candidates=3 * counts.size,
        null=4.0,
    )
    return FitReport(
        title="What predicts y",
        estimator="GroupSparseRegressor",
        target="y",
        n_rows=100,
        n_columns=groups.n_columns,
        n_groups=groups.n_groups,
        model="least squares on some groups; coefficients are not shrunk",
        how_chosen="5-fold cross-validation, rule select",
        n_selected=awake.size,
        n_selected_columns=int(groups.sizes[awake].sum()),
        scores=(Score("Held-out R²", 0.75, "Mean of 5 folds."),),
        frames=keep_frames(path, 1 + np.arange(groups.n_groups) % 5),
        strength_label="standard deviation of the group's part of the prediction",
        n_folds=5,
        judged=chosen_by,
        remarks=(Remark("A heading", "A meaning.", "A remedy.", True),),
        settings={"seed": "0"},
        versions={"covey": "0"},
    )
