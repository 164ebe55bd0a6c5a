"""Check the contents of a model from a file: everything that is indexed, counted or multiplied later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.interpolate import BSpline
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from covey.groups import Groups
from covey.groups.stored import StoredGroups
from covey.path import Path
from covey.persistence.attributes import ABSENT, FITTED, HELD_OUT, PATH, Check, check_fields, require
from covey.persistence.encoders import check_encoder, check_expansion, check_steps
from covey.search.held_out import HeldOut
from covey.terms import Expansion

# What scikit-learn's transformers may be set to return.
OUTPUTS = ("default", "pandas", "polars")

PLAIN = (str, bytes, int, float, complex, bool, type(None), type)


def check_contents(model: object) -> None:
    """Refuse a model with parts that are damaged or do not match each other.

    Raises
    ------
    ValueError
        Names the part.
    """
    for part in _parts(model):
        name = f"{type(part).__module__}.{type(part).__qualname__}"
        output = getattr(part, "__dict__", {}).get("_sklearn_output_config", {})
        known = isinstance(output, dict) and all(kind in OUTPUTS for kind in output.values())
        require(known, "a transformer with an unknown kind of output")
        if isinstance(part, BaseEstimator):
            _check_parameters(part)
        check_encoder(part)
        if sp.issparse(part):
            _check_sparse(part)
        elif type(part).__module__ == BSpline.__module__:  # a spline, or since scipy 1.18 its inner one
            _check_spline(part)
        elif isinstance(part, Pipeline):
            check_steps(part)
        elif isinstance(part, Groups):
            require(all(hasattr(part, slot) for slot in StoredGroups.__slots__), "groups without columns")
        elif isinstance(part, Expansion):
            check_expansion(part)
        elif name in FITTED:
            _check_estimator(part, FITTED[name])
        elif is_dataclass(part) and name.startswith("covey."):
            _check_dataclass(part)


def _parts(model: object) -> Iterator[object]:
    """All parts of a model, inner parts first, each once."""
    left, found, visited = [model], [], set()
    while left:
        part = left.pop()
        if id(part) in visited or isinstance(part, PLAIN):
            continue
        visited.add(id(part))
        found.append(part)
        if isinstance(part, dict):
            left += [*part, *part.values()]
        elif isinstance(part, list | tuple | set | frozenset):
            left += part
        elif isinstance(part, np.ndarray):
            left += part.ravel().tolist() if part.dtype == object else []
        elif not sp.issparse(part) and not isinstance(part, Expansion):
            left += getattr(part, "__dict__", {}).values()
    return reversed(found)


def _check_parameters(estimator: BaseEstimator) -> None:
    """Refuse an estimator or transformer without one of its parameters; scikit-learn looks for it only when used."""
    absent = [name for name in estimator._get_param_names() if name not in vars(estimator)]
    if absent:
        raise ValueError(f"{type(estimator).__name__} without its parameter {absent[0]!r}")


def _check_sparse(table: sp.sparray | sp.spmatrix) -> None:
    require(table.format in ("csr", "csc"), f"a sparse matrix of format {table.format}")
    table.check_format(full_check=True)
    require(table.has_canonical_format, "a sparse matrix with entries out of order")


def _check_spline(spline: BSpline) -> None:
    """Repeat the checks of scipy's constructor, which loading bypasses."""
    for part in (spline.t, spline.c):
        require(isinstance(part, np.ndarray) and part.dtype == np.float64, "a spline without numbers")
        require(part.flags.c_contiguous and np.isfinite(part).all(), "a spline with missing numbers")
    require(spline.c.ndim <= 2, "a spline with too many axes")
    BSpline(spline.t, spline.c, spline.k, spline.extrapolate, spline.axis)


def _check_dataclass(part: Any) -> None:
    names = {field.name for field in fields(part)}
    absent, foreign = names - {name for name in names if hasattr(part, name)}, set(vars(part)) - names
    require(not absent, f"{type(part).__name__} without {min(absent, default='')}")
    require(not foreign, f"{type(part).__name__} with {min(foreign, default='')}, which it does not have")
    replace(part, **{field.name: getattr(part, field.name) for field in fields(part) if field.init})
    if isinstance(part, Path | HeldOut):
        check_fields(part)


def _check_estimator(model: Any, wanted: dict[str, Check]) -> None:
    """Check that a fitted model has all its attributes, and that they agree with each other."""
    if not any(name.endswith("_") and name in vars(model) for name in wanted):
        return  # not fitted
    absent = [name for name in wanted if name not in vars(model) and name not in ABSENT]
    require(not absent, f"{type(model).__name__} has no {', '.join(absent)}")
    path, groups, held_out = model.path_, model.groups_, model.held_out_
    expansion = vars(model).get("expansion_")
    lengths = {
        "features": groups.n_columns if expansion is None else len(expansion.encoding.variables),
        "columns": groups.n_columns, "groups": groups.n_groups, "members": groups.members.size,
        "times": np.size(path.times), "outputs": path.n_outputs, "pair": 2,
    }  # fmt: skip
    for name in wanted:
        value: Any = getattr(model, name, None)
        if name.endswith("_") and (isinstance(value, list) or np.ndim(value) == 1):
            lengths[name] = len(value)
    if held_out is not None:
        lengths |= {
            "folds": len(held_out.intercepts), "ends": len(held_out.intercepts) + 1, "scores": len(held_out.scores),
            "responses": path.n_outputs if model.loss_.several else 1,
            "thresholds": np.size(getattr(model, "classes_", ())) - 1,
        }  # fmt: skip
    for part, checks in ((path, PATH), (model, wanted), (held_out, HELD_OUT)):
        for name, check in checks.items():
            require(not hasattr(part, name) or check(getattr(part, name), lengths), f"{name} is not as it was written")
    _check_agreement(model)


def _check_agreement(model: Any) -> None:
    path, groups, names, held_out = model.path_, model.groups_, model.groups_.names, model.held_out_
    require(path.groups == groups, "groups_ are not those of path_")
    require(
        hasattr(model, "expansion_") == hasattr(model, "term_means_"), "term_means_ without expansion_, or it alone"
    )
    if hasattr(model, "expansion_"):
        require(model.expansion_.groups == groups, "groups_ are not the terms of expansion_")
        same = list(model.feature_names_in_) == list(model.expansion_.encoding.variables)
        require(same, "feature_names_in_ are not the variables of expansion_")
    require((np.diff(path.times) >= 0).all(), "the times of path_ decrease")  # groups may wake up at the same time
    require(all(l < len(names) for l, _ in path.entered), "path_ has groups that are not among groups_")
    chosen = [names[l] for l in np.flatnonzero(model.group_norms_)]
    same = len(chosen) == len(model.selected_groups_) and set(chosen) == set(model.selected_groups_)
    require(same, "selected_groups_ are not those of group_norms_")
    require(set(model.always_groups_) <= set(names), "always_groups_ are not among groups_")
    dealt = not model.n_splits_ or 1 <= model.n_deals_ <= model.n_splits_
    require(dealt, "n_deals_ is not a number of deals of n_splits_ folds")
    coef, intercept = path.model(len(path) - 1)
    same = np.array_equal(np.atleast_2d(coef).astype(model.coef_.dtype), np.atleast_2d(model.coef_))
    same = same and np.array_equal(np.atleast_1d(intercept), np.atleast_1d(model.intercept_))
    require(same, "path_ does not end in coef_ and intercept_")
    if held_out is not None:
        _check_held_out(held_out)
    if hasattr(model, "fold_hazards_"):
        both = (model.fold_hazards_ is None) == (held_out is None)
        require(both, "held_out_ and fold_hazards_ do not belong together")
    if hasattr(model, "classes_"):
        labels, ordered = model.classes_.tolist(), model.loss_.coupled
        n_outputs = 1 if len(labels) == 2 or ordered else len(labels)
        distinct = len(set(labels)) == len(labels) > 1 and not any(isinstance(label, bytes) for label in labels)
        require(distinct and path.n_outputs == n_outputs, "classes_ do not belong to coef_")
        thresholds = not ordered or len(model.loss_.thresholds or ()) == len(labels) - 1
        require(thresholds, "the thresholds of loss_ do not belong to classes_")
        both = (model.fold_thresholds_ is not None) == (ordered and held_out is not None)
        require(both, "held_out_ and fold_thresholds_ do not belong together")


def _check_held_out(held_out: HeldOut) -> None:
    """Refuse scores that are not in the order in which they are searched."""
    starts, scores = held_out.starts, held_out.scores
    in_folds = starts[0] == 0 and starts[-1] == len(scores) and (np.diff(starts) >= 0).all()
    require(in_folds, "held_out_ has folds without scores")
    falls = (np.diff(scores, axis=0) < 0).any(axis=1)
    require(np.isin(np.flatnonzero(falls) + 1, starts).all(), "the scores of held_out_ are not in order")
