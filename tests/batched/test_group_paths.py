"""Many paths as one batch are the paths one by one."""

import numpy as np
import pytest

from covey import Groups, group_path, group_paths
from covey.datasets import make_group_sparse
from covey.selection.network_time import choose_by_folds
from covey.stopping import PathTask

torch = pytest.importorskip("torch")

from covey.batched import run as batch  # noqa: E402
from covey.designs.torch import TorchDesign  # noqa: E402

TIMES = [60, 120, 180, 250, 350]
DATA = make_group_sparse(120, 150, 3, active=4, random_state=0)
DRAWN = np.random.default_rng(0).multinomial(120, np.full(120, 1 / 120), size=4).T.astype(float)


def assert_same_paths(paths, expected, tolerance=4e-3):
    assert len(paths) == len(expected)
    for path, wanted in zip(paths, expected, strict=True):
        assert path.status == wanted.status
        np.testing.assert_array_equal(path.times, wanted.times)
        assert_same_entries(path, wanted)
        largest = abs(wanted.coefs).max()
        assert abs(path.coefs - wanted.coefs).max() <= tolerance * largest
        np.testing.assert_allclose(path.intercepts, wanted.intercepts, rtol=tolerance, atol=tolerance * largest)
        assert path.step_size == pytest.approx(wanted.step_size)
        assert abs(path.strengths - wanted.strengths).max() <= tolerance * abs(wanted.strengths).max()


def in_batch(X, y, groups, **settings):
    return group_paths(torch.as_tensor(X), y, groups, batch=True, **settings)


def assert_same_entries(path, wanted):
    """The same groups at the same times, those aside that have hardly grown: theirs hang on every digit."""
    strong = np.flatnonzero(wanted.group_norms[-1] > 0.05 * wanted.group_norms[-1].max())
    assert {l: dict(path.entered)[l] for l in strong} == pytest.approx(
        {l: dict(wanted.entered)[l] for l in strong}, abs=1.5
    )


def one_by_one(X, y, groups, weights, **options):
    """The same paths on numpy arrays, each by itself and ten times as accurate as by default."""
    return [group_path(X, y, groups, sample_weight=q, **{**options, "tol": 1e-4}) for q in weights.T]


LAYOUTS = {
    "equal": 3,
    "unequal": Groups.from_sizes([1, 2, 3, 4, 5] * 10),
    "scattered": Groups.from_labels(np.random.default_rng(5).permutation(np.repeat(np.arange(50), 3)).tolist()),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bootstrap_samples(layout):
    settings = {"times": TIMES, "max_iter": TIMES[-1]}
    found = in_batch(DATA.X, DATA.y, LAYOUTS[layout], sample_weight=DRAWN, **settings)
    assert_same_paths(found, one_by_one(DATA.X, DATA.y, LAYOUTS[layout], DRAWN, **settings))


@pytest.mark.parametrize(
    "options",
    [
        {"standardize": "column"},
        {"standardize": "block"},
        {"standardize": False, "fit_intercept": False},
        {"depth": 3, "init_scale": 0.05, "tol": 1e-4},
        {"group_weights": None, "step_size": 0.02},
        {"group_weights": np.linspace(1, 2, 50)},
    ],
    ids=lambda options: " ".join(options),
)
def test_settings(options):
    X = DATA.X * np.linspace(1, 3, 150) + np.linspace(-4, 4, 150)
    settings = {"times": TIMES[:3], "max_iter": TIMES[2], **options}
    found = in_batch(X, DATA.y, 3, sample_weight=DRAWN[:, :2], **settings)
    # with depth 3 groups rise so steeply that a small part of an iteration shows
    assert_same_paths(found, one_by_one(X, DATA.y, 3, DRAWN[:, :2], **settings), 0.03 if "depth" in options else 4e-3)


def test_one_response_per_path_and_a_dtype_of_32_bits():
    X = DATA.X.astype(np.float32)
    Y = np.column_stack([DATA.y, DATA.X[:, 30:33].sum(axis=1) + 0.1 * DATA.noise])
    settings = {"times": TIMES[:3], "max_iter": TIMES[2]}
    found = in_batch(X, torch.from_numpy(Y), 3, **settings)
    assert_same_paths(found, [group_path(X, y, 3, tol=1e-4, **settings) for y in Y.T])


def test_dependent_and_constant_columns():
    X = DATA.X.copy()
    X[:, 2] = X[:, 0] - X[:, 1]
    X[:, 5] = X[:, 3] + 1e-5 * X[:, 5]  # too close for a Gram block to tell
    X[:, 7] = 3.0
    X[:, 9:12] *= 1e160
    X[:, 12:15] *= 1e-160
    settings = {"times": TIMES[:3], "max_iter": TIMES[2]}
    found = in_batch(X, DATA.y, 3, sample_weight=DRAWN[:, :2], **settings)
    expected = one_by_one(X, DATA.y, 3, DRAWN[:, :2], **settings)
    for path, wanted in zip(found, expected, strict=True):
        assert_same_entries(path, wanted)
        for t in settings["times"]:
            np.testing.assert_allclose(
                path.predict(X[:, :9] @ np.eye(9, 150)), wanted.predict(X[:, :9] @ np.eye(9, 150)), atol=0.03
            )
            ratio = path.at(t)[9:15] / np.where(wanted.at(t)[9:15] == 0, 1, wanted.at(t)[9:15])
            np.testing.assert_allclose(ratio[wanted.at(t)[9:15] != 0], 1, atol=0.02)


def test_a_batch_in_parts_is_the_whole(monkeypatch):
    settings = {"sample_weight": DRAWN, "max_groups": 3}
    whole = in_batch(DATA.X, DATA.y, 3, **settings)
    monkeypatch.setattr(batch, "_paths_at_once", lambda design, groups: 3)
    parts = in_batch(DATA.X, DATA.y, 3, **settings)
    for a, b in zip(whole, parts, strict=True):
        assert a.entered == b.entered
        assert a.status == "stopped"
        assert len(a.entered) >= 3
        common = np.intersect1d(a.times, b.times)
        assert common[-1] > 0
        np.testing.assert_allclose(a.at(common[-1]), b.at(common[-1]), atol=1e-3)


def test_rules_see_every_record_and_end_their_path():
    seen = [[], []]

    def until(last, told):
        def rule(snapshot):
            told.append((snapshot.time, snapshot.n_woken, snapshot.columns, snapshot.coef, snapshot.intercept))
            return snapshot.time >= last

        return rule

    rules = [until(100, seen[0]), until(180, seen[1])]
    paths = in_batch(DATA.X, DATA.y, 3, sample_weight=DRAWN[:, :2], stop=rules)
    for path, told, last in zip(paths, seen, (100, 180), strict=True):
        assert path.status == "stopped"
        assert path.times[-2] < last <= path.times[-1]
        assert [t for t, *_ in told] == path.times.tolist()
        for (_, woken, columns, coef, intercept), row, level in zip(told, path.coefs, path.intercepts, strict=True):
            full = np.zeros(150)
            full[columns] = coef
            np.testing.assert_allclose(full, row.toarray().ravel())
            assert intercept == level
            assert columns.size == 3 * woken
        before, after = told[-2][2], told[-1][2]
        np.testing.assert_array_equal(after[: before.size], before)


def test_nothing_to_learn_and_nothing_left_to_learn():
    X = torch.from_numpy(DATA.X)
    constant, exact = in_batch(X, np.column_stack([np.full(120, 2.0), DATA.X[:, :3] @ [1.0, 2.0, 1.0]]), 3)
    assert (constant.status, len(constant)) == ("exhausted", 1)
    assert constant.intercepts[-1] == pytest.approx(2)
    assert exact.status == "exhausted"
    np.testing.assert_allclose(exact.at(exact.times[-1])[:3], [1, 2, 1], atol=1e-5)


def test_other_kinds_run_one_by_one():
    settings = {"times": TIMES, "max_iter": TIMES[-1]}
    found = group_paths(DATA.X, DATA.y, 3, sample_weight=DRAWN[:, :2], **settings)
    for path, q in zip(found, DRAWN.T, strict=False):
        expected = group_path(DATA.X, DATA.y, 3, sample_weight=q, **settings)
        assert path.entered == expected.entered
        assert abs(path.coefs - expected.coefs).max() == 0
    assert group_paths(DATA.X, DATA.y, 3, max_groups=2)[0].status == "stopped"


def test_folds_as_one_batch_choose_the_same_model(monkeypatch):
    def choose():
        task = PathTask(torch.from_numpy(DATA.X), DATA.y, DATA.groups, np.ones(120), {"max_iter": 600})
        return choose_by_folds(task, task.design.folds(2, DATA.y, None))

    expected = choose()
    asked = []
    monkeypatch.setattr(TorchDesign, "batches", lambda self, n_paths: not asked.append(n_paths))
    choice = choose()
    assert set(asked) == {2}
    np.testing.assert_array_equal(np.flatnonzero(choice.model[0]), np.flatnonzero(expected.model[0]))
    common = min(len(choice.scores), len(expected.scores))
    one, other = (table[["fold_0", "fold_1"]].to_numpy() for table in (choice.scores, expected.scores))
    np.testing.assert_allclose(one[:common], other[:common], atol=5e-3 * other[0].mean())
    np.testing.assert_allclose(choice.model[0], expected.model[0], atol=0.02)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"sample_weight": np.ones((119, 2))}, r"sample_weight must have shape \(n,\) or \(n, m\) with n = 120"),
        ({"y": np.ones((120, 2)), "sample_weight": np.ones((120, 3))}, "y has 2 columns and sample_weight 3"),
        ({"y": np.full((120, 4), np.nan)}, r"y\[:, 0\] has missing"),
        ({"sample_weight": np.eye(120)[:, :2] - 1}, r"sample_weight\[:, 0\] must not be negative"),
        ({"stop": [lambda snapshot: True]}, "sequence of 4 rules"),
        ({"max_groups": 0}, "max_groups"),
        ({"engine": "quick"}, "engine must be one of"),
        ({"engine": "exact"}, "batch=True is not possible: engine='exact' runs by itself"),
        ({"algorithm": "two-stage"}, "algorithm='two-stage' runs by itself"),
        (
            {"groups": [list(range(80)), list(range(80, 150))]},
            "has 80 columns, but a batch allows at most 64",
        ),
        ({"standardize": "rows"}, "standardize must be"),
        ({"direction_step": 0.1}, "direction_step"),
        ({"X": torch.full((120, 150), torch.nan)}, "missing or infinite values in columns 0, 1"),
    ],
)
def test_bad_input(arguments, match):
    settings = {"X": torch.from_numpy(DATA.X), "y": DATA.y, "sample_weight": DRAWN, **arguments}
    with pytest.raises(ValueError, match=match):
        in_batch(settings.pop("X"), settings.pop("y"), settings.pop("groups", 3), **settings)
