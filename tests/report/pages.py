"""Reports to test with: one with constructed numbers of any size, one of a real fit."""

import numpy as np
import scipy.sparse as sp

from covey import Groups, Path
from covey.report import FitReport
from covey.report.quality import Score
from covey.report.remarks import Remark
from covey.report.traces import keep_frames
from covey.search.chosen import Judged


def constructed_path(groups: Groups, *, n_times: int = 300, n_awake: int | None = None, seed: int = 0) -> Path:
    """A path of many small steps: group l wakes up at 100 + 300 l/L and grows to a level; signs are mixed."""
    rng = np.random.default_rng(seed)
    L = groups.n_groups
    n_awake = L if n_awake is None else n_awake
    times = np.arange(0, 2 * n_times, 2)
    woke = 100 + 300 * np.arange(L) / L
    woke[n_awake:] = np.inf
    level = 5.0 / np.sqrt(1 + np.arange(L))
    with np.errstate(invalid="ignore", over="ignore"):
        strengths = np.where(times[:, None] >= woke, level * (1 - np.exp(-(times[:, None] - woke) / 30)) + 1e-6, 0.0)
    pattern = rng.standard_normal(groups.n_columns)
    coefs = strengths[:, groups.labels] * pattern
    path = Path(
        times=times,
        coefs=sp.csr_array(coefs),
        intercepts=np.zeros(n_times),
        groups=groups,
        entered=[(l, float(woke[l])) for l in range(n_awake)],
        strengths=sp.csr_array(strengths),
        stepwise=True,
    )
    return path.ending_in(coefs[-1], 0.0, strengths[-1], None)


def constructed_limit_path(groups: Groups, *, seed: int = 0) -> Path:
    """A limit path: a group wakes up at each of the times 1, 2, ...; the model after it has every other group."""
    rng = np.random.default_rng(seed)
    L = groups.n_groups
    strengths = np.tril(np.ones((L + 1, L)), -1) * (5.0 / np.sqrt(1 + np.arange(L)))
    model = strengths[-1] * (np.arange(L) % 2 == 0) * 0.9
    pattern = rng.standard_normal(groups.n_columns)
    path = Path(
        times=np.arange(L + 1.0),
        coefs=sp.csr_array(strengths[:, groups.labels] * pattern),
        intercepts=np.zeros(L + 1),
        groups=groups,
        entered=[(l, l + 1.0) for l in range(L)],
        strengths=sp.csr_array(strengths),
        stepwise=True,
    )
    return path.ending_in(model[groups.labels] * pattern, 0.0, model, None)


def constructed_report(groups: Groups, path: Path | None = None, **options) -> FitReport:
    """A report on a path, by default a limit path, with candidates and everything else that a page shows."""
    path = constructed_limit_path(groups, **options) if path is None else path
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
