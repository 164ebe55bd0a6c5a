"""What covey[cli,plot,formula] must do in an environment of its own; run by tools/check_wheel.sh."""

import subprocess
from pathlib import Path

import numpy as np
import pandas as pd

import covey

assert "site-packages" in covey.__file__, covey.__file__
rng = np.random.default_rng(0)
X = rng.standard_normal((80, 6))
frame = pd.DataFrame(X, columns=[f"{name}_{j}" for name in "ab" for j in range(3)])
frame["y"] = X[:, :3].sum(axis=1) + 0.1 * rng.standard_normal(80)
frame.to_csv("table.csv", index=False)
command = "covey fit table.csv --target y --groups _ --out fit --overwrite"
subprocess.run(command.split(), check=True, capture_output=True)
assert {"report.html", "model.skops"} <= {file.name for file in Path("fit").iterdir()}
model = covey.load("fit/model.skops")[-1]
assert model.selected_groups_[0] == "a", model.selected_groups_
covey.plots.GroupPathDisplay.from_estimator(model).figure_.savefig("path.png")
print("extras: fine")
