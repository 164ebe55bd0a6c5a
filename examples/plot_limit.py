"""
The limit of small starts
=========================

The network starts with every magnitude at ``init_scale`` and wakes its groups one after another. The smaller the start,
the cleaner the separation; as it goes to zero, the path becomes a list of events in closed form, with no step size and
nothing to iterate. `covey.limit_path` computes these events, and `covey.paper.dynamics.normalized_descent` runs the
paper's Algorithm 1 from a finite start. This example compares the two, on a response of which nearly everything can be
predicted.
"""

import matplotlib.pyplot as plt
import numpy as np

from covey import Groups, limit_path
from covey.datasets import make_group_sparse
from covey.paper.dynamics import normalized_descent

strengths = np.repeat([3.0, 2.2, 1.6, 1.2, 0.9, 0.7], 5)
data = make_group_sparse(200, 300, 5, active=6, values=strengths, design="ar", rho=0.5, sigma=1.5, random_state=0)
print(f"predictable: the true groups explain {np.var(data.X @ data.w_star) / np.var(data.y):.0%} of the variance")
limit = limit_path(data.X, data.y, 5, max_groups=12)
print("order in the limit:", [group for group, _ in limit.entered])

# %%
# The same problem from starts between 1e-2 and 1e-48, on orthonormal columns of each group, as the limit has them.
# Times are shown relative to the first wake-up, because the network counts iterations and the limit has its own unit of
# time. The limit also assumes small steps: the strongest group grows by 2% in an iteration.

groups, n = Groups.from_size(5, 300), len(data.y)
Z = data.X - data.X.mean(axis=0)
Z = np.hstack([np.linalg.qr(Z[:, columns])[0] for columns in groups.lists()]) * np.sqrt(n)
Z /= np.linalg.norm(Z, 2) / np.sqrt(n)  # the large step on the directions is stable up to this scale
y = (data.y - data.y.mean()) / data.y.std()
first = groups.norms(Z.T @ y / n).max()
starts = 10.0 ** -np.array([2, 2.5, 3, 4, 5, 6, 8, 12, 24, 48])
true = set(data.S.tolist())


def last_and_first(times):
    """When the last true group wakes, and when the first of the others does."""
    return max(times[group] for group in true), min(times[group] for group in set(times) - true)


wake_ups = []
for start in starts:
    path = normalized_descent(
        Z, y, groups, init_scale=start, step_size=0.01 / first, n_steps=100_000, record_every=20,
        stop=lambda t, w: np.sum(groups.norms(w) > 0.01 * first) >= 18,
    )  # fmt: skip
    awake = path.group_norms > 0.01 * first
    times = {int(group): float(path.t[np.argmax(awake[:, group])]) for group in np.flatnonzero(awake[-1])}
    wake_ups.append({group: time / min(times.values()) for group, time in times.items()})
    print(
        "{:.0e}: the last true group at {:.1f}, the first other at {:.1f}".format(start, *last_and_first(wake_ups[-1]))
    )
in_limit = {group: time / limit.entered[0][1] for group, time in limit.entered}
print("limit: the last true group at {:.1f}, the first other at {:.1f}".format(*last_and_first(in_limit)))

# %%
# Plotted against ``1 / log(1 / init_scale)``, the times lie on lines that meet the limit at zero. True groups are in
# colour, noise groups in grey. Selection depends on the gap between the two: it is narrow at 1e-2, and widens all the
# way to the limit.

figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
x = 1 / np.log10(1 / starts)
for group, time in in_limit.items():
    colour, size = ("#0072B2", 1.5) if group in true else ("#B8B8B8", 0.9)
    ax.plot(x, [found.get(group, np.nan) for found in wake_ups], "o-", color=colour, lw=size, ms=3)
    ax.plot(0, time, "D", color="#D55E00", ms=5, clip_on=False, zorder=3)
ax.set_yscale("log")
exponents = np.array([24, 12, 6, 4, 3, 2])
ax.set_xticks([0, *1 / exponents], ["limit", *(f"1e-{k}" for k in exponents)])
ax.set(xlim=(0, 0.51), xlabel="init_scale", ylabel="wake-up time relative to the first")
ax.plot([], [], color="#0072B2", label="true groups")
ax.plot([], [], color="#B8B8B8", label="noise")
ax.plot([], [], "D", color="#D55E00", ms=5, ls="", label="limit_path")
ax.legend(frameon=False, fontsize=9)
ax.spines[["top", "right"]].set_visible(False)
