"""Linear layers within groups of channels: the grouping layer of the paper's autoencoder."""

from __future__ import annotations

import math
from typing import TypeAlias

import torch
from torch import nn

from covey.validation import whole

# Arguments of layers, as in `torch.nn.Linear`.
Device: TypeAlias = torch.device | str | None
Dtype: TypeAlias = torch.dtype | None


class GroupedLinearStack(nn.Module):
    r"""Apply `layers` bias-free linear maps, one after another, within each of `groups` groups of channels.

    .. math::

        y_l = W_l^{(K)} \cdots W_l^{(2)} W_l^{(1)} x_l, \qquad l = 1, \dots, g,

    where ``x_l`` is the l-th run of ``dim/groups`` channels: a block-diagonal matrix, stored as a product. The map is a
    single matrix, but gradient descent on the factors prefers matrices of low rank. ``groups=1`` is the stack of the
    implicit rank-minimising autoencoder (Jing, Zbontar and LeCun, 2020); with g groups there are g times fewer
    parameters and g times less work.

    ``weight[k, l]``, of shape (dim/groups, dim/groups), maps by ``x -> weight[k, l] @ x``; it is initialised like
    `torch.nn.Linear`, uniformly within ``sqrt(groups/dim)``. `groups` must divide `dim`.

    >>> stack = GroupedLinearStack(512, groups=8, layers=3)
    >>> sum(p.numel() for p in stack.parameters())
    98304
    >>> stack(torch.zeros(2, 512)).shape
    torch.Size([2, 512])
    """

    def __init__(
        self, dim: int, groups: int = 1, layers: int = 3, *, device: Device = None, dtype: Dtype = None
    ) -> None:
        super().__init__()
        self.dim, self.groups, self.layers = whole(dim, "dim"), whole(groups, "groups"), whole(layers, "layers")
        if self.dim % self.groups:
            raise ValueError(
                f"groups must divide the channels: {self.dim} channels do not split into {self.groups} equal groups."
            )
        size = self.dim // self.groups
        self.weight = nn.Parameter(torch.empty(self.layers, self.groups, size, size, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = math.sqrt(self.groups / self.dim)
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map the last axis of `x`; one batched product per layer."""
        if x.shape[-1] != self.dim:
            raise ValueError(f"The last axis must have {self.dim} channels, but the input has shape {tuple(x.shape)}.")
        h = x.reshape(-1, self.groups, self.dim // self.groups).transpose(0, 1)
        for W in self.weight.unbind(0):
            h = torch.bmm(h, W.transpose(1, 2))
        return h.transpose(0, 1).reshape(x.shape)

    def blocks(self) -> torch.Tensor:
        """The product of the factors in each group, shape (groups, dim/groups, dim/groups)."""
        product = self.weight[0]
        for W in self.weight[1:].unbind(0):
            product = torch.bmm(W, product)
        return product

    def matrix(self) -> torch.Tensor:
        """The map as one block-diagonal matrix ``M``, so that the output is ``x @ M.T``."""
        return torch.block_diag(*self.blocks().unbind(0))

    @torch.no_grad()
    def fold(self) -> GroupedLinearStack:
        """The same map as a single layer, for inference."""
        folded = GroupedLinearStack(self.dim, self.groups, layers=1, device=self.weight.device, dtype=self.weight.dtype)
        folded.weight.copy_(self.blocks().unsqueeze(0))
        return folded.train(self.training)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, groups={self.groups}, layers={self.layers}"
