"""One contract for all responses and all ways to fit: everything that is shown describes one model."""

import pickle

import numpy as np
import pandas as pd
import pytest

import covey
from covey import Groups
from covey.selection import HoldOut, Size
from estimator_problems import assert_one_model
from loss_problems import KINDS, MAIN, SLOW, estimator, grouped_problem


def validation(X, y):
    return HoldOut(validation=(X[:40] + 0.01, y[:40]))


def overlapping(p):
    return Groups.from_lists([list(range(j, min(j + 4, p))) for j in range(0, p - 1, 3)], overlap=True)


WAYS = {
    "folds": lambda X, y: {},
    "ebic": lambda X, y: {"selection": "ebic"},
    "size": lambda X, y: {"selection": Size(3)},
    "mean": lambda X, y: {"rule": "predict"},
    "validation rows": lambda X, y: {"selection": validation(X, y)},
    "mean on validation rows": lambda X, y: {"selection": validation(X, y), "rule": "predict"},
    "hold-out": lambda X, y: {"selection": "holdout"},
    "mean on held-out rows": lambda X, y: {"selection": "holdout", "rule": "predict"},
    "gcv": lambda X, y: {"selection": "gcv"},
    "bic": lambda X, y: {"selection": "bic"},
    "factors": lambda X, y: {"factors": 1},
    "overlapping": lambda X, y: {"groups": overlapping(X.shape[1])},
    "overlapping, size": lambda X, y: {"groups": overlapping(X.shape[1]), "selection": Size(3)},
    "always": lambda X, y: {"always": [5, 9]},
    "always, in a mean": lambda X, y: {"always": [5, 9], "rule": "predict"},
    "always, size": lambda X, y: {"always": [5, 9], "selection": Size(3)},
    "columns": lambda X, y: {"standardize": "column"},
    "blocks": lambda X, y: {"standardize": "block"},
    "as given": lambda X, y: {"standardize": False},
    "no group weights": lambda X, y: {"group_weights": None},
    "no intercept": lambda X, y: {"fit_intercept": False, "selection": "bic"},
    "discrepancy": lambda X, y: {"selection": "discrepancy"},
}
OTHERS = [kind for kind in (*KINDS, "survival with ties, strata and entry times") if kind not in MAIN]


PAIRS = [
    *(("squared", way) for way in WAYS),
    *((kind, way) for kind in MAIN[1:] for way in list(WAYS)[:16]),
    *((kind, "no intercept") for kind in MAIN[2:]),
    *((kind, way) for kind in OTHERS for way in list(WAYS)[:3]),
    *((kind, way) for kind in OTHERS if kind not in SLOW for way in ("mean", "validation rows")),
    ("ordered classes", "overlapping"),
]


def noises(kind, way):
    """Weak and strong noise; one of them for responses that are fitted as others are."""
    if kind in MAIN:
        return ["weak", "strong"]
    return ["strong" if way in ("mean", "validation rows") else "weak"]


@pytest.mark.parametrize(
    ("kind", "way", "noise"), [(kind, way, noise) for kind, way in PAIRS for noise in noises(kind, way)]
)
def test_one_model(kind, way, noise, tmp_path):
    X, y, groups = grouped_problem(kind, noise)
    model = estimator(kind, groups).set_params(**WAYS[way](X, y)).fit(X, y)
    assert_one_model(model, X, y)
    always = [5, 9] if "always" in way else []
    assert set(always) <= set(model.selected_groups_)
    if "size" in way:
        assert len(model.selected_groups_) == 3 + len(always)
    if way == "no intercept":
        assert not np.any(model.intercept_)
    if "mean" in way and model.candidates_["chosen"].sum() > 1:
        assert model.shrunk_
        assert f"mean of {model.candidates_['chosen'].sum()}" in model.recipe_
    if way not in ("folds", "mean", "overlapping", "validation rows", "size"):
        return
    covey.save(model, tmp_path / "model.skops")
    for again in (pickle.loads(pickle.dumps(model)), covey.load(tmp_path / "model.skops")):
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        np.testing.assert_array_equal(again.path_.coefs.toarray(), model.path_.coefs.toarray())
        np.testing.assert_array_equal(again.fold_frequencies_, model.fold_frequencies_)
        assert (again.loss_, again.path_.groups, again.recipe_) == (model.loss_, model.groups_, model.recipe_)
        assert (again.shrunk_, again.n_splits_) == (model.shrunk_, model.n_splits_)
        pd.testing.assert_frame_equal(again.candidates_, model.candidates_)
        pd.testing.assert_frame_equal(again.group_table(), model.group_table())
        if "survival" in kind:
            pd.testing.assert_frame_equal(again.baseline(), model.baseline())


@pytest.mark.parametrize("noise", ["weak", "strong"])
@pytest.mark.parametrize("selection", [5, "ebic"])
def test_weights_of_rows(selection, noise):
    X, y, groups = grouped_problem("squared", noise)
    weight = np.random.default_rng(0).uniform(0, 2, len(y))
    model = estimator("squared", groups, selection=selection).fit(X, y, sample_weight=weight)
    assert_one_model(model, X, y, weight)
