"""A table with a response of every kind, and the estimator that each of them asks for."""

import numpy as np
import pandas as pd

from covey import Groups, GroupSparseClassifier, GroupSparseRegressor
from covey.losses import MultiQuantile, Ordinal, Tweedie
from covey.selection import Size

N_GROUPS = 6
RESPONSES = [
    "two", "truth", "three", "count", "positive", "heavy", "share", "first", "second", "events", "cost", "mark",
]  # fmt: skip
EXPOSURE = "years"


def make_table(n_rows=140, seed=0):
    """Groups g1 and g4 matter, for every response; `years` is the exposure of the counts."""
    rng = np.random.default_rng(seed)
    columns = [f"g{j // 2}_{j % 2}" for j in range(2 * N_GROUPS)]
    frame = pd.DataFrame(rng.standard_normal((n_rows, 2 * N_GROUPS)), columns=columns)
    eta = (1.6 * frame["g1_0"] - 1.2 * frame["g1_1"] + 1.5 * frame["g4_0"]).to_numpy()
    years = rng.uniform(0.5, 3.0, n_rows)
    other = np.random.default_rng(seed + 100)
    scores = np.column_stack([eta, 1.5 * frame["g4_1"], -eta]) + rng.gumbel(size=(n_rows, 3))
    return frame.assign(
        years=years,
        two=np.where(eta + rng.logistic(size=n_rows) > 0, "well", "ill <b>"),
        truth=eta + rng.logistic(size=n_rows) > 0,
        three=np.array(["red", "green", "blue"])[scores.argmax(axis=1)],
        count=rng.poisson(years * np.exp(0.5 * eta)),
        positive=np.exp(0.5 * eta) * rng.gamma(3.0, 1 / 3, n_rows),
        heavy=eta + rng.standard_t(1.5, n_rows),
        share=rng.binomial(20, 1 / (1 + np.exp(-eta))) / 20,
        first=eta + rng.standard_normal(n_rows),
        second=-eta + 0.5 * frame["g4_1"] + rng.standard_normal(n_rows),
        events=other.negative_binomial(3, 3 / (3 + years * np.exp(0.5 * eta))),
        cost=other.poisson(np.exp(0.4 * eta)) * np.exp(0.2 * eta) * other.gamma(2.0, 0.5, n_rows),
        mark=np.array(["poor", "fair", "good"])[np.digitize(eta + other.logistic(size=n_rows), [-1.0, 1.0])],
    )


def regress(**options):
    return lambda: GroupSparseRegressor(**{"random_state": 0, **options})


def classify(**options):
    return lambda: GroupSparseClassifier(**{"random_state": 0, **options})


# options of the command line, responses, and the estimator of the same model
CASES = {
    "folds": ("", "first", regress()),
    "seed": ("--seed 3", "first", regress(random_state=3)),
    "mean": ("--rule predict", "first", regress(rule="predict")),
    "hold-out": ("--selection holdout", "first", regress(selection="holdout")),
    "criterion": ("--selection gcv", "first", regress(selection="gcv")),
    "discrepancy": ("--selection discrepancy", "first", regress(selection="discrepancy")),
    "size": ("--selection size:2 --always g5", "first", regress(selection=Size(2), always=["g5"])),
    "columns": ("--standardize column --factors 1", "first", regress(standardize="column", factors=1)),
    "weights": (
        "--standardize none --group-weights none --selection 3", "first",
        regress(standardize=False, group_weights=None, selection=3),
    ),
    "two classes": ("--selection ebic", "two", classify(selection="ebic")),
    "truth values": ("--selection 3 --rule select --seed 2", "truth", classify(selection=3, random_state=2)),
    "three classes": ("--selection size:2 --always g5", "three", classify(selection=Size(2), always=["g5"])),
    "counts": (
        "--family poisson --offset log:years --selection 3", "count", regress(loss="poisson", selection=3),
    ),
    "positive": ("--family gamma --selection holdout", "positive", regress(loss="gamma", selection="holdout")),
    "heavy": ("--family huber --selection 3", "heavy", regress(loss="huber", selection=3)),
    "overdispersed counts": (
        "--family negative-binomial --offset log:years --selection bic", "events",
        regress(loss="negative-binomial", selection="bic"),
    ),
    "amounts with zeros": ("--power 1.4 --selection 3", "cost", regress(loss=Tweedie(1.4), selection=3)),
    "quantiles": (
        "--quantile 0.2,0.7 --selection size:2", "first", regress(loss=MultiQuantile([0.2, 0.7]), selection=Size(2)),
    ),
    "grades": (
        "--order poor,fair,good --selection 3", "mark",
        classify(loss=Ordinal(order=["poor", "fair", "good"]), selection=3),
    ),
    "shares": ("--family binomial --selection bic", "share", regress(loss="binomial", selection="bic")),
    "several": (
        "--selection 3 --rule predict --always g5", "first second",
        regress(selection=3, rule="predict", always=["g5"]),
    ),
}  # fmt: skip


def fitted(case, frame):
    """The estimator of a case, fitted; its columns and its offset."""
    options, targets, make = CASES[case]
    offset = np.log(frame[EXPOSURE].to_numpy()) if "--offset" in options else None
    X = frame[[name for name in frame.columns if name.startswith("g")]]
    groups = Groups.from_labels([name[:2] for name in X.columns], columns=list(X.columns))
    y = np.squeeze(frame[targets.split()].to_numpy())
    if y.dtype.kind not in "fib":
        y = y.astype(str)
    return make().set_params(groups=groups).fit(X, y, offset=offset), X, y, offset


def command(case, file, out):
    """The arguments of the same fit on the command line."""
    options, targets, _ = CASES[case]
    used = [*targets.split(), *([EXPOSURE] if "--offset" in options else [])]
    unused = [name for name in (*RESPONSES, EXPOSURE) if name not in used]
    wanted = [word for name in targets.split() for word in ("--target", name)]
    return ["fit", file, *wanted, "--drop", ",".join(unused), "--groups", "_", "--out", out, *options.split()]
