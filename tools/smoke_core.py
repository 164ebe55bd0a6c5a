"""What the light core must do in an environment of its own; run by tools/check_wheel.sh."""

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import pandas as pd
import scipy.sparse as sp

import covey
import covey.paper


def refused(use: Callable[[], object], extra: str) -> None:
    """Check that the pip line is in the error."""
    said = ""
    try:
        use()
    except ModuleNotFoundError as reason:
        said = str(reason)
    assert f"pip install 'covey[{extra}]'" in said, (extra, said)


assert "site-packages" in covey.__file__, covey.__file__
OPTIONAL = ("matplotlib", "typer", "rich", "skops", "pyarrow", "torch", "dask", "jinja2")
absent = [name for name in OPTIONAL if not find_spec(name)]
assert len(absent) == len(OPTIONAL), f"not a light core: only {absent} are absent"

rng = np.random.default_rng(0)
X = rng.standard_normal((80, 12))
y = X[:, :3].sum(axis=1) + 0.1 * rng.standard_normal(80)
frame = pd.DataFrame(X, columns=[f"g{j // 3}_{j % 3}" for j in range(12)])
for kind in (X, frame, sp.csr_array(X)):
    model = covey.GroupSparseRegressor(groups=3).fit(kind, y)
    assert model.selected_groups_[0] == 0, model.selected_groups_
assert 0 in covey.GroupSparseClassifier(groups=3).fit(X, y > 0).selected_groups_

refused(lambda: covey.report.fit_report(model, X, y, "report.html"), "report")
refused(lambda: covey.plots, "plot")
refused(lambda: covey.save(model, "model.skops"), "io")
refused(lambda: covey.paper.nn, "torch")
command = subprocess.run([sys.executable, "-m", "covey.cli", "--help"], capture_output=True, text=True)
assert command.returncode == 1, command
assert command.stderr.strip().endswith("pip install 'covey[cli]'"), command
print("core: fine")
