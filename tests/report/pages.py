"""Reports to test with: one with constructed numbers of any size, one of a real fit."""

import numpy as np
import scipy.sparse as sp

from covey import Groups, Path
from covey.report import FitReport
from covey.report.curve import Curve
from covey.report.quality import Score
from covey.report.remarks import Remark
from covey.report.traces import keep_frames


def constructed_path(groups: Groups, *, n_times: int = 300, n_awake: int | None = None, seed: int = 0) -> Path:
    """Group l wakes up at 100 + 10 l/L and grows to a level of its own; coefficients have either sign."""
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
    return Path(
        times=times,
        coefs=sp.csr_array(coefs),
        intercepts=np.zeros(n_times),
        groups=groups,
        entered=[(l, float(woke[l])) for l in range(n_awake)],
        strengths=sp.csr_array(strengths),
    )


def constructed_report(groups: Groups, *, chosen: float = 300.0, **options) -> FitReport:
    """A report on such a path, with a cross-validation curve and everything else that a page shows."""
    path = constructed_path(groups, **options)
    values = 4.0 - 3.0 * np.exp(-(((path.times - 320.0) / 150.0) ** 2))
    curve = Curve(
        "mean squared error on held-out rows, mean of 5 folds",
        path.times.astype(float),
        values,
        np.full(len(values), 0.3),
        5,
        {"min": 320.0, "1se": chosen},
        held_out=True,
        null=4.0,
    )
    at = path.index(chosen)
    awake = np.flatnonzero(path.strengths[[at]].toarray())
    return FitReport(
        title="What predicts y",
        estimator="GroupSparseRegressorCV",
        target="y",
        n_rows=100,
        n_columns=groups.n_columns,
        n_groups=groups.n_groups,
        time=chosen,
        how_chosen="5-fold cross-validation, rule 1se",
        n_selected=awake.size,
        n_selected_columns=int(groups.sizes[awake].sum()),
        scores=(Score("Held-out R²", 0.75, "Mean of 5 folds."),),
        frames=keep_frames(path, chosen, curve.rules.values()),
        strength_label="standard deviation of the group's part of the prediction",
        curve=curve,
        remarks=(Remark("A heading", "A meaning.", "A remedy.", True),),
        settings={"seed": "0"},
        versions={"covey": "0"},
    )
