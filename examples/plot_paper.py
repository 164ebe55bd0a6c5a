"""
The paper's network, step by step
=================================

`covey.paper.dynamics` runs the algorithms of the paper as printed, one file each, and records everything. This is
figure 3 of the paper: Algorithm 2 on 150 rows and 300 columns in groups of three, with the authors' own draw. `covey
reproduce` makes all figures and tables, with a verdict on every claim. There is hardly any noise: the true groups
explain nearly everything.
"""

from covey.paper.datasets import legacy_paper_data
from covey.paper.dynamics import normalized_descent
from covey.paper.plots import TrajectoryDisplay

data = legacy_paper_data(support=range(5, 14))
print(f"predictable: the true groups explain {(data.X @ data.w_star).var() / data.y.var():.2%} of the variance")
path = normalized_descent(
    data.X, data.y, data.groups, n_steps=2000, direction_step=1e-3, switch=0.01, w_star=data.w_star
)
TrajectoryDisplay.from_path(path, w_star=data.w_star)
print(f"least error {path.error.min():.4f} at step {path.t[path.error.argmin()]}, last {path.error[-1]:.4f}")
