"""`python -m covey.warm`: compile the kernels of the network and of the dynamics once.

Compiled code is kept beside the package (or in NUMBA_CACHE_DIR); run this after installing, in an image build for
instance.
"""

from __future__ import annotations

import time

import numpy as np

from covey.datasets import make_group_sparse
from covey.dynamics import diagonal_descent, normalized_descent, plain_descent
from covey.network.group_path import group_path


def main() -> None:
    """Run something small in each memory layout and precision."""
    start = time.perf_counter()
    data = make_group_sparse(60, 24, 3, active=2, random_state=0)
    # so many columns that those of the groups near to waking are gathered
    wide = make_group_sparse(40, 2400, 3, active=2, random_state=0)
    for kind in (np.ascontiguousarray, np.asfortranarray):
        for dtype in (np.float64, np.float32):
            group_path(kind(data.X, dtype), data.y, 3, max_iter=300)
            group_path(kind(data.X, dtype), data.y, 3, engine="exact", max_iter=50)
            group_path(kind(wide.X, dtype), wide.y, 3, max_iter=50)
    for X in (data.X, np.asfortranarray(data.X)):
        normalized_descent(X, data.y, data.groups, n_steps=2)
        plain_descent(X, data.y, data.groups, n_steps=2)
        diagonal_descent(X, data.y, n_steps=2)
    print(f"covey is compiled ({time.perf_counter() - start:.0f} s).")


if __name__ == "__main__":
    main()
