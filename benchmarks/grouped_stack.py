"""Time and memory of GroupedLinearStack, forward and backward, by the number of groups; groups=1 is IRMAE's stack.

    python benchmarks/grouped_stack.py

Ratios within one run, the settings interleaved, the best of several repeats each; memory is the peak of what torch
allocates in one forward and backward pass, gradients included. Fails where groups=8 takes more than half the time of
groups=1, or more memory.
"""

import argparse
import sys
import time

import torch

from covey.paper.nn import GroupedLinearStack

GROUPS = (1, 2, 4, 8, 16)


def one_pass(stack, x):
    stack.zero_grad(set_to_none=True)
    stack(x).square().sum().backward()


def seconds(stack, x, passes):
    start = time.perf_counter()
    for _ in range(passes):
        one_pass(stack, x)
    return (time.perf_counter() - start) / passes


def peak_bytes(stack, x):
    """The most that is allocated at a time above what the stack and its input hold, and that on top of them."""
    stack.zero_grad(set_to_none=True)
    with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        one_pass(stack, x)
    held = peak = 0
    for event in sorted(profile.profiler.kineto_results.events(), key=lambda event: event.start_ns()):
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    fixed = (sum(p.numel() for p in stack.parameters()) + x.numel()) * x.element_size()
    return peak + fixed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    x = torch.randn(options.batch, options.dim, requires_grad=True)
    stacks = {g: GroupedLinearStack(options.dim, g, options.layers) for g in GROUPS}
    for stack in stacks.values():
        seconds(stack, x, 3)
    best = dict.fromkeys(GROUPS, float("inf"))
    for _ in range(options.repeats):
        for g, stack in stacks.items():
            best[g] = min(best[g], seconds(stack, x, 5))
    memory = {g: peak_bytes(stack, x) for g, stack in stacks.items()}
    print(f"batch {options.batch}, {options.dim} channels, {options.layers} layers, {options.threads} thread(s)")
    print(f"{'groups':>6} {'parameters':>10} {'ms':>8} {'of groups=1':>11} {'MB':>7} {'of groups=1':>11}")
    for g in GROUPS:
        count = sum(p.numel() for p in stacks[g].parameters())
        print(
            f"{g:>6} {count:>10} {1e3 * best[g]:>8.3f} {best[g] / best[1]:>11.2f} "
            f"{memory[g] / 1e6:>7.2f} {memory[g] / memory[1]:>11.2f}"
        )
    fine = best[8] <= 0.5 * best[1] and all(memory[g] <= memory[1] for g in GROUPS)
    print("groups=8 takes at most half the time, no groups take more memory:", "yes" if fine else "NO")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
