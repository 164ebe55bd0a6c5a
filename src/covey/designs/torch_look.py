"""The network's look at all groups of a tensor at once, on its device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from covey.designs.torch_groups import SizeClass, padded, product, unpad

if TYPE_CHECKING:
    from covey.designs.torch import TorchDesign

__all__ = ["TorchLook"]

Array = NDArray[Any]


@dataclass(frozen=True)
class TorchLook:
    """Pulls of all groups under the residuals of several models; `covey.network.looks.ColumnLook` on a device.

    Only the pulls are copied to the host: one number per group and model.

    Attributes
    ----------
    design, problem
        X and the problem in working coordinates.
    y, q : tensors, shape (n,)
    factors : list of (SizeClass, tensor of shape (groups, size, size))
        The groups' factors as square matrices, with zeros beyond their ranks.
    Z : tensor, shape (n, k)
        The working columns of the awake groups, in float64.
    """

    design: TorchDesign
    problem: Any
    y: torch.Tensor
    q: torch.Tensor
    factors: list[tuple[SizeClass, torch.Tensor]]
    Z: torch.Tensor

    @classmethod
    def first(cls, design: TorchDesign, problem: Any) -> TorchLook:
        """The look at the start, when no group is awake."""
        y, q = design.put(problem.response), design.put(problem.q)
        return cls(design, problem, y, q, design.padded_factors(problem), y.new_empty((y.shape[0], 0)))

    def join(self, near: Any, groups: list[int]) -> TorchLook:
        """The look after these groups of a restriction `near` have joined."""
        return replace(self, Z=torch.cat([self.Z, *(_working_columns(near, l) for l in groups)], dim=1))

    def pulls(self, W: Array, directions: Array, frozen: bool, row: int = 0) -> tuple[Array, Array]:
        """``v'g`` of every group under every model, shape (k, n_groups); and all correlations under model `row`."""
        self.design.n_passes += 1
        residuals = self.y - self.design.put(W) @ self.Z.T
        G = product(residuals * self.q, self.design.X)
        out, kept = np.zeros((W.shape[0], self.problem.ranks.size)), np.empty(self.problem.n_columns)
        for part, T in self.factors:
            g = torch.bmm(part.of(G).reshape(W.shape[0], -1, part.size).transpose(0, 1), T).double()
            if frozen:
                v = padded(directions, self.problem.starts, self.problem.ranks, part, 1)
                pull = (g * self.design.put(v)[:, None, :]).sum(dim=2)
            else:
                pull = g.norm(dim=2)
            out[:, part.groups] = pull.T.cpu().numpy()
            unpad(kept, self.problem.starts, self.problem.ranks, part, g[:, row].cpu().numpy())
        return out, kept


def _working_columns(near: Any, l: int) -> torch.Tensor:
    """``Z_l`` of a group of a problem, on the device; shape (n, rank_l)."""
    T = near.factor(l)
    mean = near.mean[near.layout.starts[l] : near.layout.starts[l + 1]]
    return near.design.combine(near.members(l), T, mean @ T)
