"""The group lasso beside adelie and skglm: the same solutions to 1e-5, and the time of a path of 50 penalties.

Needs an environment of its own, because adelie needs numpy below 2:

    python -m venv .venv-bench
    .venv-bench/bin/pip install "numpy<2" adelie skglm scikit-learn scipy numba pandas
    PYTHONPATH=src .venv-bench/bin/python benchmarks/baselines.py

Every peer solves the same penalties to a tight tolerance, one thread, after a warm-up. Agreement is the largest
difference of coefficients over the largest coefficient; the objective must be as good as the peer's as well.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import sys
import time
import warnings

import numpy as np

from covey.datasets import make_group_sparse
from covey.paper.baselines import GroupLasso, certify

CASES = [(150, 300, 3), (500, 2000, 5), (500, 300, 10)]
AGREE = 1e-5


def ours(data, size, penalties):
    model = GroupLasso(groups=size, fit_intercept=False, tol=1e-12, max_iter=10**6)
    return model.path(data.X, data.y, penalties).coefs.toarray()


def by_adelie(data, size, penalties):
    import adelie as ad

    state = ad.grpnet(
        np.asfortranarray(data.X), ad.glm.gaussian(data.y), groups=data.groups.starts[:-1], intercept=False,
        penalty=np.sqrt(data.groups.sizes), lmda_path=penalties, tol=1e-14, progress_bar=False, early_exit=False,
        max_iters=10**7,
    )  # fmt: skip
    return state.betas.toarray()


def by_skglm(data, size, penalties):
    from skglm import GeneralizedLinearEstimator
    from skglm.datafits import QuadraticGroup
    from skglm.penalties import WeightedGroupL2
    from skglm.solvers import GroupBCD
    from skglm.utils.data import grp_converter

    indices, pointers = grp_converter(size, data.X.shape[1])
    model = GeneralizedLinearEstimator(
        QuadraticGroup(pointers, indices),
        WeightedGroupL2(1.0, np.sqrt(data.groups.sizes.astype(float)), pointers, indices),
        GroupBCD(tol=1e-10, max_iter=1000, max_epochs=100_000, fit_intercept=False, warm_start=True),
    )
    out = []
    for penalty in penalties:
        model.penalty.alpha = penalty
        out.append(model.fit(np.asfortranarray(data.X), data.y).coef_.copy())
    return np.array(out)


def main():
    warnings.simplefilter("ignore")
    agreed = True
    print(f"{'n x p, size':>16} {'peer':>8} {'difference':>11} {'objective - ours':>17} {'peer s':>8} {'ours s':>8}")
    for n, p, size in CASES:
        data = make_group_sparse(n, p, size, active=5, values="normal", sigma=0.5, random_state=0)
        penalties = GroupLasso(groups=size, fit_intercept=False, tol=1.0).path(data.X, data.y, n_penalties=50).penalties
        W, seconds = timed(ours, data, size, penalties)
        for name, solver in (("adelie", by_adelie), ("skglm", by_skglm)):
            other, other_seconds = timed(solver, data, size, penalties)
            difference = np.abs(W - other).max() / np.abs(W).max()
            worse = max(
                certify(data.X, data.y, size, a, lam).primal - certify(data.X, data.y, size, b, lam).primal
                for a, b, lam in zip(W, other, penalties, strict=True)
            )
            agreed &= difference < AGREE
            numbers = f"{difference:>11.1e} {-worse:>17.1e} {other_seconds:>8.3f} {seconds:>8.3f}"
            print(f"{n:>5} x {p:<4}, {size:>2} {name:>8} {numbers}")
    print("all agree" if agreed else f"DISAGREE by more than {AGREE:g}")
    return 0 if agreed else 1


def timed(solver, data, size, penalties):
    solver(data, size, penalties[:2])
    start = time.perf_counter()
    W = solver(data, size, penalties)
    return W, time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
