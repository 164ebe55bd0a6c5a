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
from covey.persistence.attributes import ABSENT, FITTED, HELD_OUT, LENGTHS, PATH, Check
from covey.persistence.encoders import check_encoder, check_widths
from covey.persistence.encodings import check_expansion
from covey.search.held_out import HeldOut
from covey.terms import Expansion

# What scikit-learn's transformers may be set to return.
OUTPUTS = ("default", "pandas", "polars")


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
        if not isinstance(output, dict) or not all(kind in OUTPUTS for kind in output.values()):
            raise ValueError("a transformer with an unknown kind of output")
        if isinstance(part, BaseEstimator):
            _check_parameters(part)
        check_encoder(part)
        if sp.issparse(part):
            _check_sparse(part)
        elif type(part).__module__ == BSpline.__module__:  # a spline, or since scipy 1.18 its inner one
            _check_spline(part)
        elif isinstance(part, Pipeline):
            if not all(isinstance(step, tuple) and len(step) == 2 and step[1] is not None for step in part.steps):
                raise ValueError("a pipeline without steps")
            check_widths(part)
        elif isinstance(part, Groups):
            if not all(hasattr(part, slot) for slot in StoredGroups.__slots__):
                raise ValueError("groups without columns")
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
        if id(part) in visited or isinstance(part, str | bytes | int | float | complex | bool | type(None) | type):
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
    if table.format not in ("csr", "csc"):
        raise ValueError(f"a sparse matrix of format {table.format}")
    table.check_format(full_check=True)
    if not table.has_canonical_format:
        raise ValueError("a sparse matrix with entries out of order")


def _check_spline(spline: BSpline) -> None:
    """Repeat the checks of scipy's constructor, which loading bypasses."""
    if not all(isinstance(part, np.ndarray) and part.dtype == np.float64 for part in (spline.t, spline.c)):
        raise ValueError("a spline without numbers")
    if not (spline.t.flags.c_contiguous and spline.c.flags.c_contiguous and np.isfinite(spline.c).all()):
        raise ValueError("a spline with missing numbers")
    if spline.c.ndim > 2:
        raise ValueError("a spline with too many axes")
    BSpline(spline.t, spline.c, spline.k, spline.extrapolate, spline.axis)


def _check_dataclass(part: Any) -> None:
    absent = [field.name for field in fields(part) if not hasattr(part, field.name)]
    if absent:
        raise ValueError(f"{type(part).__name__} without {absent[0]}")
    foreign = set(vars(part)) - {field.name for field in fields(part)}
    if foreign:
        raise ValueError(f"{type(part).__name__} with {min(foreign)}, which it does not have")
    replace(part, **{field.name: getattr(part, field.name) for field in fields(part) if field.init})


def _check_estimator(model: Any, wanted: dict[str, Check]) -> None:
    """Check that a fitted model has all its attributes, and that they agree with each other."""
    if not any(name.endswith("_") and name in vars(model) for name in wanted):
        return  # not fitted
    absent = [name for name in wanted if name not in vars(model) and name not in ABSENT]
    if absent:
        raise ValueError(f"{type(model).__name__} has no {absent[0]}")
    path, groups = model.path_, model.groups_
    expansion = vars(model).get("expansion_")
    lengths = {
        "features": groups.n_columns if expansion is None else len(expansion.encoding.variables),
        "columns": groups.n_columns, "groups": groups.n_groups, "members": groups.members.size,
        "times": np.size(path.times), "outputs": path.n_outputs,
        **{length: np.size(getattr(model, name)) for length, name in LENGTHS.items() if name in vars(model)},
    }  # fmt: skip
    held_out = model.held_out_
    if held_out is not None:
        lengths |= {
            "folds": len(held_out.intercepts), "ends": len(held_out.intercepts) + 1, "scores": len(held_out.scores),
            "responses": path.n_outputs if model.loss_.several else 1,
            "thresholds": np.size(getattr(model, "classes_", ())) - 1,
        }  # fmt: skip
    for part, checks in ((path, PATH), (model, wanted), (held_out, HELD_OUT)):
        for name, check in checks.items():
            if hasattr(part, name) and not check(getattr(part, name), lengths):
                raise ValueError(f"{name} is not as it was written")
    _check_agreement(model)


def _check_agreement(model: Any) -> None:
    path, groups, names = model.path_, model.groups_, model.groups_.names
    if path.groups != groups:
        raise ValueError("groups_ are not those of path_")
    if hasattr(model, "expansion_"):
        if model.expansion_.groups != groups:
            raise ValueError("groups_ are not the terms of expansion_")
        if list(model.feature_names_in_) != list(model.expansion_.encoding.variables):
            raise ValueError("feature_names_in_ are not the variables of expansion_")
    if not (np.diff(path.times) >= 0).all():  # groups may wake up at the same time
        raise ValueError("the times of path_ decrease")
    if not all(0 <= l < len(names) for l, _ in path.entered):
        raise ValueError("path_ has groups that are not among groups_")
    chosen = [names[l] for l in np.flatnonzero(model.group_norms_)]
    if len(chosen) != len(model.selected_groups_) or set(chosen) != set(model.selected_groups_):
        raise ValueError("selected_groups_ are not those of group_norms_")
    if hasattr(model, "expansion_") != hasattr(model, "term_means_"):
        raise ValueError("expansion_ and term_means_ do not belong together")
    if model.held_out_ is not None:
        _check_held_out(model.held_out_)
    if hasattr(model, "fold_hazards_") and (model.fold_hazards_ is None) != (model.held_out_ is None):
        raise ValueError("held_out_ and fold_hazards_ do not belong together")
    if model.n_splits_ and not 1 <= model.n_deals_ <= model.n_splits_:
        raise ValueError("n_deals_ is not a number of deals of n_splits_ folds")
    if not set(model.always_groups_) <= set(names):
        raise ValueError("always_groups_ are not among groups_")
    coef, intercept = path.model(len(path) - 1)
    same = np.array_equal(np.atleast_2d(coef).astype(model.coef_.dtype), np.atleast_2d(model.coef_))
    if not same or not np.array_equal(np.atleast_1d(intercept), np.atleast_1d(model.intercept_)):
        raise ValueError("path_ does not end in coef_ and intercept_")
    if hasattr(model, "classes_"):
        labels, ordered = model.classes_.tolist(), model.loss_.coupled
        if len(set(labels)) < len(labels) or path.n_outputs != (1 if len(labels) == 2 or ordered else len(labels)):
            raise ValueError("classes_ do not belong to coef_")
        if ordered and len(model.loss_.thresholds or ()) != len(labels) - 1:
            raise ValueError("the thresholds of loss_ do not belong to classes_")
        if (model.fold_thresholds_ is None) == (ordered and model.held_out_ is not None):
            raise ValueError("held_out_ and fold_thresholds_ do not belong together")
    if "chosen" not in model.candidates_ or model.candidates_["chosen"].dtype.kind != "b":
        raise ValueError("candidates_ without the chosen one")


def _check_held_out(held_out: HeldOut) -> None:
    """Refuse scores that are not in the order in which they are searched."""
    starts, scores = held_out.starts, held_out.scores
    if starts[0] != 0 or starts[-1] != len(scores) or (np.diff(starts) < 0).any():
        raise ValueError("held_out_ has folds without scores")
    falls = (np.diff(scores, axis=0) < 0).any(axis=1)
    if not np.isin(np.flatnonzero(falls) + 1, starts).all():
        raise ValueError("the scores of held_out_ are not in order")
