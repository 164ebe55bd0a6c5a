"""Save and load models with skops: no pickle, and only types on an explicit list are ever created."""

from __future__ import annotations

import sys
import zipfile
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from sklearn.base import BaseEstimator

from covey.files import write_atomically
from covey.optional import optional
from covey.persistence.archive import LARGEST, TooLargeError, foreign_types, inspect
from covey.persistence.attributes import FITTED
from covey.persistence.contents import check_contents
from covey.validation import last_step

__all__ = ["TRUSTED", "ModelFileError", "dump_bytes", "import_skops", "load", "save"]

# Types allowed in a file besides numbers, text, arrays and scikit-learn's estimators, which skops trusts by default.
TRUSTED = (
    *FITTED,
    "covey.estimators.terms.TermGroups",
    "covey.groups.partition.Groups",
    "covey.path.Path",
    "covey.search.criteria.Discrepancy",
    "covey.search.criteria.InformationCriterion",
    "covey.search.criteria.Size",
    "covey.search.held_out.HeldOut",
    "covey.search.splits.Folds",
    "covey.search.splits.HoldOut",
    "covey.losses.classes.Binomial",
    "covey.losses.classes.Multinomial",
    "covey.losses.cox.Cox",
    "covey.losses.huber.Huber",
    "covey.losses.log_link.Gamma",
    "covey.losses.log_link.Poisson",
    "covey.losses.ordinal.Ordinal",
    "covey.losses.overdispersed.NegativeBinomial",
    "covey.losses.quantile.MultiQuantile",
    "covey.losses.quantile.Quantile",
    "covey.losses.squared.MultiSquared",
    "covey.losses.squared.Squared",
    "covey.losses.tweedie.Tweedie",
    *(f"covey.terms.kinds.{name}" for name in ("Auto", "Curve", "Drop", "Levels", "Linear")),
    "covey.terms.terms.Terms",
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    # a fitted SplineTransformer holds scipy's splines, and these hold the function that made their arrays
    "scipy.interpolate._bsplines.BSpline",
    "scipy.interpolate._bsplines._BSpline",  # held by a BSpline since scipy 1.18
    "scipy._lib.array_api_compat.numpy._aliases.asarray",
    # splitters that may be given as selection=
    *(
        f"sklearn.model_selection._split.{name}"
        for name in (
            "GroupKFold", "GroupShuffleSplit", "KFold", "LeaveOneGroupOut", "LeaveOneOut", "LeavePGroupsOut",
            "LeavePOut", "PredefinedSplit", "RepeatedKFold", "RepeatedStratifiedKFold", "ShuffleSplit",
            "StratifiedGroupKFold", "StratifiedKFold", "StratifiedShuffleSplit", "TimeSeriesSplit",
        )
    ),
)  # fmt: skip


LARGER = "give covey.load a larger largest= if you know where it comes from."
UNCHECKED = (
    "covey.load cannot check its arrays before compiled code uses them: save such a model with pickle, or with skops "
    "itself."
)


class ModelFileError(ValueError):
    """A file that does not contain a covey model, or a model that cannot be saved; the message says why."""


def save(model: BaseEstimator, file: str | Path) -> None:
    """Write a model to a file, completely or not at all.

    Parameters
    ----------
    model : estimator
        A `GroupSparseRegressor`, `GroupSparseClassifier` or `GroupSparseCox`, or a scikit-learn pipeline around one.
    file : str or Path
        By convention it ends in ``.skops``.

    Raises
    ------
    ModelFileError
        If `load` would refuse the model, for instance because it holds a user-defined function for ``groups=``.

    Examples
    --------
    >>> import tempfile, covey
    >>> from covey.datasets import make_group_sparse
    >>> data = make_group_sparse(60, 12, 3, active=2, random_state=0)
    >>> model = covey.GroupSparseRegressor(groups=3).fit(data.X, data.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     covey.save(model, f"{folder}/model.skops")
    ...     same = covey.load(f"{folder}/model.skops")
    >>> bool((same.predict(data.X) == model.predict(data.X)).all())
    True
    """
    write_atomically(Path(file), dump_bytes(model))


def dump_bytes(model: BaseEstimator) -> bytes:
    """The content of a model file."""
    if hasattr(last_step(model), "formula_"):
        raise ModelFileError(
            "A model made from a formula holds formulaic's objects, which covey.load would not trust: pickle it."
        )
    kind, skops = type(model).__name__, import_skops()
    try:
        content: bytes = skops.dumps(model, compression=zipfile.ZIP_DEFLATED)
        unchecked, foreign, has_model = _audit(content)
    except Exception as reason:
        raise ModelFileError(f"{kind} cannot be saved: {_unwritable(model) or reason}") from reason
    if unchecked:
        raise ModelFileError(f"The model holds {', '.join(unchecked)}, and {UNCHECKED}")
    if foreign:
        raise ModelFileError(
            f"The model holds {', '.join(foreign)}, which covey.load would not trust. Instead of a function for "
            "groups=, give covey.Groups or covey.TermGroups; save a model with a loss, recipe or splitter of your own "
            "by pickle, or by skops itself with that type trusted."
        )
    if not has_model:
        raise ModelFileError(f"{kind} contains no covey estimator; save it with skops itself.")
    try:
        check_contents(model)
    except Exception as reason:
        raise ModelFileError(f"{kind} cannot be saved: covey.load would refuse it ({reason}).") from reason
    return content


def _unwritable(model: BaseEstimator) -> str:
    """The parameter that skops cannot write, and the remedy; empty if there is none."""
    for name, value in last_step(model).get_params(deep=False).items():
        try:
            import_skops().dumps(value)
        except Exception:
            return (
                f"{name}= is or holds a table, or names that are no text or numbers. Give arrays (.to_numpy()), lists "
                "and text there, or pickle the model."
            )
    return ""


def _audit(content: bytes, largest: int = LARGEST) -> tuple[list[str], list[str], bool]:
    """The types of a file that cannot be checked, those that are not trusted, and whether it has a covey estimator."""
    unchecked = foreign_types(inspect(content, largest=largest))
    held = set(import_skops().get_untrusted_types(data=content))
    return unchecked, sorted(held.difference(TRUSTED)), not held.isdisjoint(FITTED)


def load(file: str | Path, *, largest: int = LARGEST) -> Any:
    """Read a model that `save` wrote.

    Nothing in the file is executed: types outside an explicit list are refused before anything is created, and
    everything that is indexed later (sparse matrices, splines, groups, matching shapes) is checked like user input.

    Parameters
    ----------
    file : str or Path
    largest : int
        The most bytes that the decompressed file may have.

    Returns
    -------
    estimator

    Raises
    ------
    FileNotFoundError
    ModelFileError
        If the file is damaged, too large, or not a covey model.
    """
    path = Path(file)
    if not path.is_file():
        raise FileNotFoundError(f"There is no model file {path}.")
    if path.stat().st_size > largest:
        raise ModelFileError(f"{path} has {path.stat().st_size:,} bytes, but at most {largest:,} are allowed: {LARGER}")
    skops, content = import_skops(), path.read_bytes()
    try:
        unchecked, foreign, has_model = _audit(content, largest)
    except TooLargeError as reason:
        raise ModelFileError(f"{path} is too large: {reason}; {LARGER}") from None
    except Exception as reason:
        said = f" ({_in_words(reason)})" if not isinstance(reason, zipfile.BadZipFile) else ""
        raise ModelFileError(
            f"{path} is not a model file, or it is damaged{said}; models are written by covey.save."
        ) from None
    if foreign:
        raise ModelFileError(
            f"{path} requests {', '.join(foreign[:6])}, which covey does not trust; nothing was loaded."
            + " Another version of covey may have written it: fit the model again." * foreign[0].startswith("covey.")
        )
    if unchecked:
        raise ModelFileError(f"{path} requests {', '.join(unchecked[:6])}; nothing was loaded: {UNCHECKED}")
    if not has_model:
        raise ModelFileError(f"{path} does not contain a covey model.")
    try:
        model = skops.loads(content, trusted=list(TRUSTED))
        check_contents(model)
    except Exception as reason:
        raise ModelFileError(
            f"{path} is damaged, or written by another version of covey ({_in_words(reason)}); fit the model again and "
            "write it with covey.save."
        ) from None
    return model


def _in_words(reason: Exception) -> str:
    return f"{type(reason).__name__}: {str(reason).splitlines()[0] if str(reason) else ''}".rstrip(": ")


def import_skops() -> ModuleType:
    """Import skops on demand, without libraries that it does not need.

    To list scikit-learn's estimators, skops imports all of scikit-learn, and with it torch, dask and pytest if they are
    installed, which takes seconds for nothing. It then searches all loaded modules for the name of every numpy
    function, so importing it before other modules is faster.
    """
    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        with optional("A model in a file"):
            import scipy.special  # noqa: F401  before the modules of scikit-learn: its functions are then found early
            import skops.io
    finally:
        sys.meta_path.remove(absent)
    return skops.io


class _Absent(MetaPathFinder):
    """Hides libraries that are not imported yet, as if they were not installed."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name in ("torch", "dask", "pytest"):
            raise ModuleNotFoundError(f"{name} is not needed here", name=name)
