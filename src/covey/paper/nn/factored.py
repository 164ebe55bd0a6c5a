"""Layers whose weights are a product of scalars and a direction in each group of output channels.

Trained as they are, from a small start, they prune channels implicitly: `GroupedPowerLinear`, `GroupedPowerConv2d`.
With weight decay on the factors they are the smooth form of an explicit group penalty: `DGatedLinear`, `DGatedConv2d`.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from covey.groups import Groups
from covey.paper.nn.stack import Device, Dtype
from covey.validation import one_of, positive, whole


class FactoredWeight(nn.Module):
    r"""A weight of shape (out, ...) as ``w_l = (prod_k gamma_{l,k})^N v_l`` in each group l of its rows.

    By the inequality of arithmetic and geometric means, with D = KN + 1,

    .. math::

        \frac{1}{D} \Big( N \sum_k \gamma_{l,k}^2 + \|v_l\|^2 \Big) \ge \|w_l\|^{2/D},

    with equality if all factors have the same size: weight decay on the factors is a group penalty on the weight,
    the group lasso for D = 2 and a quasi-norm for D > 2 (Kolb, Frost, Bischl and Rügamer, "Differentiable Sparsity via
    D-Gating", 2025, arXiv 2509.23898). Without decay, gradient descent prefers few groups by itself, because a group
    grows in proportion to its size.

    `weight` is the start of the product. The groups of its rows are read by `covey.Groups.coerce`; by default every row
    is a group. There are K `gates` per group, and their product is raised to the `power` N. From a "balanced" `start`
    all factors have equal size, ``norm(w_l)^(1/D)``; from a "unit" start directions have unit norm, as in the paper,
    and gates ``norm(w_l)^(1/(KN))``: a small group then first grows in its initial direction, at a rate that depends on
    how well that fits, and turns later.

    The parameters are `gate`, of shape (gates, L), and `direction`, of the weight's shape.
    """

    def __init__(
        self, weight: torch.Tensor, channel_groups: object = None, *, gates: int = 1, power: int = 1,
        start: Literal["balanced", "unit"] = "balanced",
    ) -> None:  # fmt: skip
        super().__init__()
        one_of(start, ("balanced", "unit"), "start")
        self.gates, self.power = whole(gates, "gates"), whole(power, "power")
        self.groups = Groups.coerce(1 if channel_groups is None else channel_groups, weight.shape[0])
        labels = torch.from_numpy(np.array(self.groups.labels, dtype=np.int64))
        self.register_buffer("labels", labels.to(weight.device), persistent=False)
        with torch.no_grad():
            norms = self.norms(weight)
            size = norms ** (1 / (self.factors if start == "balanced" else self.factors - 1))
            # a zero group has no direction, and its factors stay at zero
            unit = weight / self._spread(torch.where(norms > 0, norms, torch.ones_like(norms)), weight.ndim)
            length = size if start == "balanced" else torch.ones_like(size)
            self.gate = nn.Parameter(size.repeat(self.gates, 1))
            self.direction = nn.Parameter(unit * self._spread(length, weight.ndim))

    @property
    def factors(self) -> int:
        """D, the number of factors of a weight: ``gates * power`` scalars and a direction."""
        return self.gates * self.power + 1

    def forward(self) -> torch.Tensor:
        scale = self.gate.prod(0) ** self.power
        return self._spread(scale, self.direction.ndim) * self.direction

    def penalty(self) -> torch.Tensor:
        """``sum_l (N sum_k gamma_{l,k}^2 + norm(v_l)^2)/D``, at least ``sum_l norm(w_l)^(2/D)``."""
        return (self.power * self.gate.square().sum() + self.direction.square().sum()) / self.factors

    def norms(self, weight: torch.Tensor) -> torch.Tensor:
        """The Euclidean norm of each group of rows, shape (L,)."""
        squares = weight.detach().flatten(1).square().sum(1)
        return squares.new_zeros(self.groups.n_groups).index_add(0, self.labels, squares).sqrt()

    def _spread(self, values: torch.Tensor, ndim: int) -> torch.Tensor:
        """One number per group as one per row, ready to multiply the weight."""
        return values[self.labels].reshape(-1, *[1] * (ndim - 1))


class _FactoredLayer(nn.Module):
    """A factored weight and an optional bias, started like a plain layer."""

    def __init__(
        self, plain: nn.Module, *, power: int = 1, channel_groups: object = None, init_scale: float = 1.0, **gates: int
    ) -> None:
        super().__init__()
        first = plain.weight.detach() * positive(init_scale, "init_scale")
        # a power starts as in the group-sparsity paper, gates as in the D-gating paper
        start: Literal["balanced", "unit"] = "unit" if power > 1 else "balanced"
        self.factored = FactoredWeight(first, channel_groups, power=power, start=start, **gates)
        self.channel_groups = self.factored.groups
        self.bias = None if plain.bias is None else nn.Parameter(plain.bias.detach().clone())

    @property
    def weight(self) -> torch.Tensor:
        return self.factored()

    @torch.no_grad()
    def group_norms(self) -> torch.Tensor:
        """Euclidean norm of the weights of each group of output channels, shape (L,)."""
        return self.factored.norms(self.weight)

    def penalty(self) -> torch.Tensor:
        """The decay of the factors, as a penalty: see `FactoredWeight`."""
        return self.factored.penalty()

    def extra_repr(self) -> str:
        return f"channel_groups={self.channel_groups.n_groups}, factors={self.factored.factors}"


class _FactoredLinear(_FactoredLayer):
    def __init__(
        self, sizes: tuple[int, int], bias: bool = True, device: Device = None, dtype: Dtype = None, **options: Any
    ) -> None:
        super().__init__(nn.Linear(*sizes, bias, device, dtype), **options)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.weight, self.bias)


class _FactoredConv2d(_FactoredLayer):
    def __init__(
        self, sizes: Any, stride: Any = 1, padding: Any = 0, bias: bool = True, device: Device = None,
        dtype: Dtype = None, **options: Any,
    ) -> None:  # fmt: skip
        plain = nn.Conv2d(*sizes, stride, padding, bias=bias, device=device, dtype=dtype)
        super().__init__(plain, **options)
        self.stride, self.padding = plain.stride, plain.padding

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Convolve images (n, channels, height, width)."""
        return F.conv2d(x, self.weight, self.bias, self.stride, self.padding)


class GroupedPowerLinear(_FactoredLinear):
    r"""A linear layer with ``w_l = u_l^N v_l`` in each group of output units: powerpropagation, by groups.

    Powerpropagation (Schwarz and others, 2021) raises every weight to a power, so that large weights learn faster than
    small ones. Here one magnitude per group is raised to the power N, `depth`, and entire units stay small.
    `channel_groups` are as in `FactoredWeight`. `init_scale` is the start, relative to `torch.nn.Linear`: 1 is
    powerpropagation's; smaller values prune more and take longer. Directions start at unit norm. Other arguments are
    those of `torch.nn.Linear`.

    >>> layer = GroupedPowerLinear(20, 6, channel_groups=2)
    >>> layer(torch.zeros(3, 20)).shape, layer.group_norms().shape
    (torch.Size([3, 6]), torch.Size([3]))
    """

    def __init__(self, in_features: int, out_features: int, depth: int = 2, **options: Any) -> None:
        super().__init__((in_features, out_features), power=whole(depth, "depth", least=2), **options)


class DGatedLinear(_FactoredLinear):
    """A linear layer with ``w_l = prod_k gamma_{l,k} omega_l``, D `factors`, in each group of output units.

    With `penalty` times a strength added to the loss, its minima are those of the loss plus that strength times
    ``sum_l norm(w_l)^(2/D)``, the group lasso for D = 2: the explicit counterpart of `GroupedPowerLinear` with ``depth
    = D - 1``, whose other arguments it has.
    """

    def __init__(self, in_features: int, out_features: int, factors: int = 2, **options: Any) -> None:
        super().__init__((in_features, out_features), gates=whole(factors, "factors", least=2) - 1, **options)


class GroupedPowerConv2d(_FactoredConv2d):
    r"""A convolution with ``W_l = u_l^N V_l`` in each group of output channels: structured pruning by training alone.

    `depth` (N), `channel_groups` and `init_scale` are as in `GroupedPowerLinear`, other arguments as in
    `torch.nn.Conv2d`.

    >>> layer = GroupedPowerConv2d(1, 8, 5, depth=3, init_scale=0.1)
    >>> layer(torch.zeros(2, 1, 28, 28)).shape, layer.group_norms().shape
    (torch.Size([2, 8, 24, 24]), torch.Size([8]))
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, depth: int = 2, **options: Any) -> None:
        super().__init__((in_channels, out_channels, kernel_size), power=whole(depth, "depth", least=2), **options)


class DGatedConv2d(_FactoredConv2d):
    """`DGatedLinear` as a convolution, ``W_l = prod_k gamma_{l,k} Omega_l``, with `GroupedPowerConv2d`'s arguments."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, factors: int = 2, **options: Any) -> None:
        gates = whole(factors, "factors", least=2) - 1
        super().__init__((in_channels, out_channels, kernel_size), gates=gates, **options)


def factor_penalty(model: nn.Module) -> torch.Tensor:
    """The sum of `penalty` over all factored weights of a model, to be added to its loss times a strength."""
    parts = [module.penalty() for module in model.modules() if isinstance(module, FactoredWeight)]
    if not parts:
        raise ValueError("The model has no factored layers such as DGatedConv2d, so there is nothing to decay.")
    return torch.stack(parts).sum()
