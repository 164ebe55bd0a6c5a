"""The diagonally grouped linear network as a layer: ``w_l = u_l^N v_l``."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from covey.groups import Groups
from covey.paper.nn.stack import Device, Dtype
from covey.validation import positive, whole


class GroupPower(nn.Module):
    r"""The parametrisation ``w_l = u_l^N v_l`` of the rows of a weight matrix.

    For `torch.nn.utils.parametrize.register_parametrization` on the weight of any linear layer, or inside
    `GroupedDiagonalLinear`; `depth` is the power N, at least 2. Reading a weight (`right_inverse`) gives directions of
    unit norm.
    """

    def __init__(self, groups: Groups, depth: int = 2) -> None:
        super().__init__()
        self.groups, self.depth = groups, whole(depth, "depth", least=2)
        self.register_buffer("labels", torch.from_numpy(np.array(groups.labels, dtype=np.int64)), persistent=False)

    def forward(self, magnitude: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
        """The weight (rows, p) of magnitudes (rows, L) and directions (rows, p)."""
        return (magnitude**self.depth)[..., self.labels] * direction

    def right_inverse(self, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Magnitudes and unit-norm directions with this product; a zero group gets a direction with equal entries."""
        norms = self.norms(weight)
        sizes = torch.from_numpy(np.array(self.groups.sizes)).to(weight)
        spread = norms[..., self.labels]
        equal = sizes.rsqrt()[self.labels].expand_as(weight)
        return norms ** (1 / self.depth), torch.where(spread > 0, weight / spread.clamp_min(1e-300), equal)

    def norms(self, values: torch.Tensor) -> torch.Tensor:
        """The Euclidean norm of each group along the last axis, scaled so that no square under- or overflows."""
        L = self.groups.n_groups
        index = self.labels.expand_as(values)
        base = torch.zeros(*values.shape[:-1], L, dtype=values.dtype, device=values.device)
        largest = base.scatter_reduce(-1, index, values.abs(), "amax")
        scale = torch.where(largest > 0, largest, torch.ones_like(largest))
        scaled = values / scale[..., self.labels]
        return scale * base.scatter_add(-1, index, scaled.square()).sqrt()


class GroupedDiagonalLinear(nn.Module):
    r"""A bias-free linear layer whose weights are ``w_l = u_l^N v_l`` in each group of inputs.

    The network of the paper's figure 1: ``f(x) = sum_l u_l^N v_l' x_l``. Trained from a tiny start with unit-norm
    directions (`NormalizedDescent`) and stopped early, only a few groups of inputs wake up.

    The `groups` of inputs are read by `covey.Groups.coerce`; a size needs `in_features`. `depth` is the power N, at
    least 2. Each output has separate magnitudes, which start at `init_scale` (alpha in the paper), and directions,
    which start equal, ``1/sqrt(p_l)``. The parameters are `magnitude`, of shape (out_features, L), and `direction`;
    `weight` is their product.

    >>> layer = GroupedDiagonalLinear([0, 0, 1, 1, 1], init_scale=1e-3)
    >>> layer(torch.ones(4, 5)).shape, layer.group_norms().shape
    (torch.Size([4, 1]), torch.Size([1, 2]))
    """

    def __init__(
        self, groups: object, depth: int = 2, *, out_features: int = 1, in_features: int | None = None,
        init_scale: float = 1e-6, device: Device = None, dtype: Dtype = None,
    ) -> None:  # fmt: skip
        super().__init__()
        in_features = _count(groups) if in_features is None else in_features
        self.groups = Groups.coerce(groups, in_features)
        self.power, self.depth = GroupPower(self.groups, depth), depth
        if device is not None:
            self.power.to(device)
        self.in_features, self.out_features = in_features, whole(out_features, "out_features")
        self.init_scale = positive(init_scale, "init_scale")
        for name, size in (("magnitude", self.groups.n_groups), ("direction", in_features)):
            setattr(self, name, nn.Parameter(torch.empty(self.out_features, size, device=device, dtype=dtype)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start again, as the paper does."""
        equal = 1 / np.sqrt(self.groups.sizes[self.groups.labels])
        with torch.no_grad():
            self.magnitude.fill_(self.init_scale)
            self.direction.copy_(torch.from_numpy(equal).expand(self.out_features, -1))

    @property
    def weight(self) -> torch.Tensor:
        """``w_l = u_l^N v_l``, shape (out_features, p)."""
        return self.power(self.magnitude, self.direction)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map the last axis of `x` from p to `out_features`."""
        if x.shape[-1] != self.in_features:
            raise ValueError(f"The last axis must have {self.in_features} inputs, not shape {tuple(x.shape)}.")
        return F.linear(x, self.weight)

    @torch.no_grad()
    def group_norms(self) -> torch.Tensor:
        """Euclidean norm of the weights of each group, shape (out_features, L)."""
        return self.power.norms(self.weight)

    def extra_repr(self) -> str:
        sizes = f"in_features={self.in_features}, out_features={self.out_features}"
        return f"{sizes}, groups={self.groups.n_groups}, depth={self.depth}"


def _count(groups: Any) -> int:
    """The number of inputs that groups are for."""
    if isinstance(groups, Groups):
        return groups.n_columns
    if isinstance(groups, int | str) or not hasattr(groups, "__len__") or not len(groups):
        raise ValueError(f"groups={groups!r} does not say how many inputs there are: give in_features too.")
    members = groups.values() if isinstance(groups, dict) else groups
    lengths = [len(m) for m in members if hasattr(m, "__len__") and not isinstance(m, str)]
    return sum(lengths) if lengths else len(groups)
