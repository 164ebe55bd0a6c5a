"""
Grouping layers in torch
========================

Two layers of `covey.paper.nn` that work in any network: `GroupedDiagonalLinear`, the network of the paper with its
weight-normalised training, and `GroupedLinearStack`, the linear layers within groups of channels from the latent space
of the grouped autoencoder. The response of the first is predictable almost to the last digit, so that only the order
of the groups is at stake.
"""

# %%
# A diagonally grouped linear network
# -----------------------------------
# There are 60 inputs in twenty groups of three; three of the groups matter. The layer parametrises the weights of each
# group as ``u^2 v``; `NormalizedDescent` wraps an optimiser and keeps every direction ``v`` at unit norm. Groups wake
# up one after another, strongest first.

import matplotlib.pyplot as plt
import torch
from torch import nn

from covey.datasets import make_group_sparse
from covey.paper.nn import GroupedDiagonalLinear, GroupedLinearStack, NormalizedDescent

data = make_group_sparse(150, 60, 3, active=3, values=[3.0] * 3 + [2.0] * 3 + [1.0] * 3, random_state=0)
print(f"predictable: the true groups explain {(data.X @ data.w_star).var() / data.y.var():.1%} of the variance")
X, y = torch.from_numpy(data.X), torch.from_numpy(data.y)[:, None]
net = nn.Sequential(GroupedDiagonalLinear(data.groups, dtype=torch.float64))
descent = NormalizedDescent(net, torch.optim.SGD, lr=0.01)


def closure():
    descent.zero_grad()
    loss = 0.5 * nn.functional.mse_loss(net(X), y)
    loss.backward()
    return loss


norms = []
for _ in range(600):
    descent.step(closure)
    norms.append(net[0].group_norms()[0])

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.plot(torch.stack(norms))
axes.set(xlabel="step", ylabel="norm of each group", title="Three groups wake up, seventeen stay asleep")

# %%
# Linear layers within groups
# ---------------------------
# As a map, a stack of linear layers is a single matrix, but it trains differently: gradient descent on several factors
# prefers matrices of low rank. Here the true map has rank 2 in each of four groups, and there are few training
# examples. The spectra of the learnt matrices show the difference between one layer, three layers, and three layers
# within groups.

torch.manual_seed(0)
dim, groups = 32, 4
truth = torch.block_diag(*[torch.randn(8, 2) @ torch.randn(2, 8) / 4 for _ in range(groups)])
inputs = torch.randn(120, dim)
outputs = inputs @ truth.T + 0.3 * torch.randn(120, dim)


def fit(stack, steps=400):
    optimiser = torch.optim.Adam(stack.parameters(), lr=3e-3)
    for _ in range(steps):
        optimiser.zero_grad()
        loss = nn.functional.mse_loss(stack(inputs), outputs)
        loss.backward()
        optimiser.step()
    return stack.matrix().detach()


figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
for label, stack in {
    "one layer": GroupedLinearStack(dim, 1, layers=1),
    "three layers": GroupedLinearStack(dim, 1, layers=3),
    "three layers, four groups": GroupedLinearStack(dim, groups, layers=3),
}.items():
    learnt = fit(stack)
    error = float((learnt - truth).square().sum() / truth.square().sum())
    count = sum(p.numel() for p in stack.parameters())
    axes.semilogy(torch.linalg.svdvals(learnt), label=f"{label}: {count} parameters, error {error:.3f}")
axes.semilogy(torch.linalg.svdvals(truth)[:8], "k.", label="the truth: rank 8")
axes.set(xlabel="component", ylabel="singular value", ylim=(1e-3, 30))
axes.legend(loc="upper right", fontsize="small")

# %%
# The trained stack folds into one layer for inference, with the same output.

folded = stack.fold()
print(folded)
difference = (folded(inputs) - stack(inputs)).abs().max().item()
print(f"largest difference: {difference:.1e}")
