"""Seconds per epoch of the published runs, beside the authors' notebooks.

    PYTHONPATH=src python benchmarks/reproduction.py

The authors' seconds were measured with their published notebooks (torch, float32, one thread) on a machine of the same
kind; ours are the compiled dynamics in float64, one thread, after a warm-up, best of three, in processor seconds (which
are those of the clock where nothing else runs). Figure 12 is a whole fit with the choice by validation.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import time

from covey.paper.datasets import legacy_paper_data
from covey.paper.dynamics import SwitchAt, normalized_descent, plain_descent
from covey.paper.experiments import fig3, fig4, fig12
from covey.paper.experiments.traces import IN_CODE

AUTHORS = {"fig2": 0.028, "fig3": 0.012, "fig4": 0.022, "fig5": 0.050, "fig6": 0.028, "fig7": 0.014, "fig12": 10.0}


def algorithm_1(data, step_size, n_steps):
    normalized_descent(
        data.X, data.y, data.groups, step_size=step_size, n_steps=n_steps, w_star=data.w_star, **IN_CODE
    )  # fmt: skip


def algorithm_2(data, step_size, n_steps):
    normalized_descent(
        data.X, data.y, data.groups, step_size=step_size, direction_step=step_size, switch=SwitchAt(1),
        n_steps=n_steps, w_star=data.w_star, **IN_CODE,
    )  # fmt: skip


def plain(data, step_size, n_steps):
    plain_descent(
        data.X, data.y, data.groups, step_size=step_size, n_steps=n_steps, w_star=data.w_star, gradient_scale=2.0
    )


def comparison():
    """One level's fit of Algorithm 2, chosen on the validation set."""
    data = legacy_paper_data(150, 300, 4, support=(10.0,) * 12, sigma=1.0, seed=0, design="gaussian")
    return lambda: fig12.fit(data, fig12.CODE, fig12.Settings())


def runs():
    """Name, epochs and the run itself."""
    first, third, fourth = legacy_paper_data(), fig3.published(), fig4.draw()
    fifth = legacy_paper_data(80, 200, 1, support=(1, -1, -1, 1, 1), seed=42)
    yield "fig2", 2000, lambda: algorithm_1(first, 1e-3, 2000)
    yield "fig3", 1000, lambda: algorithm_2(third, 1e-3, 1000)
    yield "fig4", 500, lambda: algorithm_2(fourth, 1e-2, 500)
    yield "fig5", 1000, lambda: algorithm_1(fifth, 0.05, 1000)
    yield "fig6", 2000, lambda: algorithm_1(first, 1e-3, 2000)
    yield "fig7", 8000, lambda: plain(fourth, 0.05, 8000)
    yield "fig12", 1, comparison()


def main():
    print(f"{'run':>6} {'epochs':>7} {'authors s/epoch':>16} {'ours s/epoch':>13} {'ratio':>7}")
    for name, epochs, run in runs():
        run()
        seconds = []
        for _ in range(3):
            start = time.process_time()
            run()
            seconds.append((time.process_time() - start) / epochs)
        print(
            f"{name:>6} {epochs:>7} {AUTHORS[name]:>16.3f} {min(seconds):>13.2e} {AUTHORS[name] / min(seconds):>7.0f}"
        )
    print("fig12: seconds a fit")


if __name__ == "__main__":
    main()
