"""Models in files, through skops: no pickle, an explicit list of trusted types, and nothing else is ever made."""

from __future__ import annotations

import sys
import zipfile
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from covey.files import write_atomically
from covey.optional import optional
from covey.persistence.archive import LARGEST, TooLargeError, foreign_types, inspect
from covey.persistence.attributes import FITTED
from covey.persistence.contents import check_contents

__all__ = ["TRUSTED", "ModelFileError", "dump_bytes", "import_skops", "load", "save"]

ESTIMATORS = tuple(FITTED)

# What a file may hold besides numbers, text, arrays and scikit-learn's own estimators, which skops trusts by itself.
TRUSTED = (
    *ESTIMATORS,
    "covey.estimators.terms.TermGroups",
    "covey.groups.partition.Groups",
    "covey.network.settings.Network",
    "covey.path.Path",
    "covey.path.PathState",
    "covey.selection.criteria.Size",
    "covey.selection.splitting.Folds",
    "covey.losses.classes.Binomial",
    "covey.losses.classes.Multinomial",
    "covey.losses.cox.Cox",
    "covey.losses.huber.Huber",
    "covey.losses.log_link.Gamma",
    "covey.losses.log_link.Poisson",
    "covey.losses.squared.MultiSquared",
    "covey.losses.squared.Squared",
    "covey.selection.splitting.HoldOut",
    "covey.stopping.at_time.AtTime",
    "covey.stopping.discrepancy.Discrepancy",
    "covey.stopping.information.InformationCriterion",
    "covey.stopping.window.TheoryWindow",
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    # a fitted SplineTransformer holds scipy's splines, and these the function that made their arrays
    "scipy.interpolate._bsplines.BSpline",
    "scipy.interpolate._bsplines._BSpline",  # what one holds from scipy 1.18 on
    "scipy._lib.array_api_compat.numpy._aliases.asarray",
    # splitters that may be given as selection=
    *(
        f"sklearn.model_selection._split.{name}"
        for name in (
            "GroupKFold",
            "GroupShuffleSplit",
            "KFold",
            "LeaveOneGroupOut",
            "LeaveOneOut",
            "LeavePGroupsOut",
            "LeavePOut",
            "PredefinedSplit",
            "RepeatedKFold",
            "RepeatedStratifiedKFold",
            "ShuffleSplit",
            "StratifiedGroupKFold",
            "StratifiedKFold",
            "StratifiedShuffleSplit",
            "TimeSeriesSplit",
        )
    ),
)


LARGER = "give covey.load a larger largest= if you know where it comes from."
UNCHECKED = (
    "covey.load could not check its arrays before compiled code trusts them: keep such a model by pickle, or by skops "
    "itself."
)


class ModelFileError(ValueError):
    """A file that holds no model of covey's, or a model that cannot be put into a file; the message says why."""


def save(model: Any, file: str | Path) -> None:
    """Write a model to a file, whole or not at all.

    Parameters
    ----------
    model : estimator
        A `GroupSparseRegressor`, `GroupSparseClassifier` or `GroupSparseCox`, or a scikit-learn pipeline around one.
    file : str or Path
        By habit it ends in ``.skops``.

    Raises
    ------
    ModelFileError
        Where the model holds something that `load` would not trust, such as a function of one's own for ``groups=``.

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


def dump_bytes(model: Any) -> bytes:
    """The content of a model's file."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    if hasattr(last, "formula_"):
        raise ModelFileError(
            "A model of a formula holds formulaic's objects, which covey.load would not trust: pickle it."
        )
    skops = import_skops()
    try:
        content: bytes = skops.dumps(model, compression=zipfile.ZIP_DEFLATED)
        held = skops.get_untrusted_types(data=content)
    except Exception as reason:
        raise ModelFileError(f"{type(model).__name__} cannot be put into a file: {reason}") from reason
    unchecked = foreign_types(inspect(content))
    if unchecked:
        raise ModelFileError(f"The model holds {', '.join(unchecked)}, and {UNCHECKED}")
    foreign = sorted(set(held) - set(TRUSTED))
    if foreign:
        raise ModelFileError(
            f"The model holds {', '.join(foreign)}, which covey.load would not trust. Groups given by a function of "
            "one's own can be given as covey.Groups or covey.TermGroups; a model with a loss of one's own is kept by "
            "pickle, or by skops itself with that type trusted."
        )
    if not set(held) & set(ESTIMATORS):
        raise ModelFileError(f"{type(model).__name__} holds no estimator of covey's; save it with skops itself.")
    return content


def load(file: str | Path, *, largest: int = LARGEST) -> Any:
    """Read a model that `save` wrote.

    Nothing in the file is run: types outside an explicit list are refused before anything is made, and whatever is
    indexed later (sparse matrices, splines, groups, shapes against each other) is checked like a user's input.

    Parameters
    ----------
    file : str or Path
    largest : int
        Bytes that the file may take once it is inflated.

    Returns
    -------
    estimator

    Raises
    ------
    FileNotFoundError
    ModelFileError
        Where the file is damaged, too large, or no model of covey's.
    """
    path = Path(file)
    if not path.is_file():
        raise FileNotFoundError(f"There is no model file {path}.")
    if path.stat().st_size > largest:
        raise ModelFileError(f"{path} has {path.stat().st_size:,} bytes, and at most {largest:,} are allowed: {LARGER}")
    skops = import_skops()
    content = path.read_bytes()
    try:
        unchecked = foreign_types(inspect(content, largest=largest))
        held = set(skops.get_untrusted_types(data=content))
    except zipfile.BadZipFile:
        raise ModelFileError(f"{path} is no model file, or it is damaged; models are written by covey.save.") from None
    except TooLargeError as reason:
        raise ModelFileError(f"{path} is too large: {reason}; {LARGER}") from None
    except Exception as reason:
        raise ModelFileError(f"{path} is no model file, or it is damaged ({_said(reason)}).") from None
    foreign = sorted(held - set(TRUSTED))
    if foreign:
        raise ModelFileError(
            f"{path} asks for {', '.join(foreign[:6])}, which covey does not trust; nothing of it was loaded."
        )
    if unchecked:
        raise ModelFileError(f"{path} asks for {', '.join(unchecked[:6])}; nothing of it was loaded, for {UNCHECKED}")
    if not held & set(ESTIMATORS):
        raise ModelFileError(f"{path} holds no model of covey's.")
    try:
        model = skops.loads(content, trusted=list(TRUSTED))
        check_contents(model)
    except Exception as reason:
        raise ModelFileError(f"{path} is damaged ({_said(reason)}); write it again with covey.save.") from None
    return model


def _said(reason: Exception) -> str:
    return f"{type(reason).__name__}: {str(reason).splitlines()[0] if str(reason) else ''}".rstrip(": ")


def import_skops() -> ModuleType:
    """skops, imported when it is needed and without the libraries that it has no use for.

    To list scikit-learn's estimators skops imports all of scikit-learn, and with it torch, dask and pytest where they
    are installed: seconds, of which nothing is used. For the name of every function of numpy it then looks through the
    modules that are loaded: whoever will need it anyway does well to import it first.
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
    """Lets libraries that are not imported yet seem not to be installed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name in ("torch", "dask", "pytest"):
            raise ModuleNotFoundError(f"{name} is not needed here", name=name)
