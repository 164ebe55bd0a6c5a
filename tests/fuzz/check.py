"""What a case must come to: a finite model, or a documented exception that says something."""

from __future__ import annotations

import json
import signal
import traceback
import warnings
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

from fuzz.cases import Case, run

# What the documentation names.
DOCUMENTED = (ValueError, TypeError)
ALLOWED_WARNINGS = (ConvergenceWarning, DataConversionWarning)
ALLOWED_MESSAGES = (
    "y has only the values 0 and 1",
    "The number of unique classes is greater than",
    "selection=Size(",  # of more groups than there are
)
SECONDS = 60


def verdict(case: Case) -> str:
    """Empty when all is well; otherwise what is wrong."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with limited():
                found = run(case)
        except DOCUMENTED as error:
            found = {}
            if not str(error).strip():
                return f"{type(error).__name__} without a message"
            if from_below(error):
                return f"{type(error).__name__} from the depths: {error}\n{where(error)}"
        except Exception as error:
            return f"{type(error).__name__}: {error}\n{where(error)}"
    leaked = [
        w
        for w in caught
        if not issubclass(w.category, ALLOWED_WARNINGS) and not str(w.message).startswith(ALLOWED_MESSAGES)
    ]
    if leaked:
        first = leaked[0]
        return f"{first.category.__name__} leaked: {first.message} ({first.filename}:{first.lineno})"
    bad = [name for name, value in found.items() if not np.isfinite(np.asarray(value, dtype=float)).all()]
    return f"not finite: {', '.join(bad)}" if bad else ""


def where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    return "".join(traceback.format_list(frames))


def from_below(error: BaseException) -> bool:
    """Whether an error was raised by a library in the middle of a computation, where covey should have spoken."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    checks = ("validation.py", "_param_validation.py", "_split.py", "checks.py", "multiclass.py", "class_weight.py")
    return not ("covey" in last.filename or last.filename.endswith(checks))


@contextmanager
def limited() -> Any:
    """A case that does not come back is a finding too."""

    def too_long(*_: Any) -> None:
        raise TimeoutError(f"no answer in {SECONDS} s")

    # time of this process, so that a busy machine is no finding
    before = signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def show(case: Case) -> str:
    """A case in one line, as the corpus keeps it."""
    return json.dumps(case)
