"""The paper's weight-normalised training, around any torch optimiser: Algorithms 1 and 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import nn

from covey.paper.nn.diagonal import GroupedDiagonalLinear
from covey.validation import positive, whole

EPSILON = 1e-12  # in the practical switch rule, as in `covey.paper.dynamics.SwitchSettled`


class NormalizedDescent:
    r"""Train the `GroupedDiagonalLinear` layers of a model with directions kept at unit norm.

    A step evaluates the loss twice. First the directions move, each along its gradient and back to unit norm,

    .. math::

        v_l \leftarrow z_l/\|z_l\|, \qquad z_l = v_l - \eta_l \nabla_{v_l}, \qquad \eta_l = 1/u_l^{2N} \text{ or } \eta,

    then, with gradients at the new directions, the wrapped optimiser updates the magnitudes and all other parameters.
    With plain SGD on ``norm(y - X w)^2 / (2 n)`` this is `covey.paper.dynamics.normalized_descent`. `optimizer` is for
    learning-rate schedules; `t` counts the steps done, and `switched` is the step after which the direction step was
    decreased.

    Parameters
    ----------
    model : Module
        With at least one `GroupedDiagonalLinear`.
    optimizer : type of torch.optim.Optimizer
        Created, with the other `options` such as ``lr=1e-3``, for all parameters that are not directions.
    direction_step : "large" or float
        ``"large"`` is Algorithm 1. A number is used from the start, or, with `switch`, after it: Algorithm 2.
    switch : None, int or float
        The step after which to switch from the large step to `direction_step`: this one (an int), or the first at which
        no magnitude has changed by more than this share (a float). The share is meaningless before magnitudes have
        grown, so that rule is armed only once some group has reached half of its first estimate.

    Examples
    --------
    >>> from covey.paper.nn import GroupedDiagonalLinear
    >>> _ = torch.manual_seed(0)
    >>> X = torch.randn(60, 12, dtype=torch.float64)
    >>> y = 2 * X[:, :1] - X[:, 1:2]
    >>> net = nn.Sequential(GroupedDiagonalLinear(3, in_features=12, dtype=torch.float64))
    >>> descent = NormalizedDescent(net, lr=0.05)
    >>> def closure():
    ...     descent.zero_grad()
    ...     loss = 0.5 * torch.nn.functional.mse_loss(net(X), y)
    ...     loss.backward()
    ...     return loss
    >>> for _ in range(300):
    ...     loss = descent.step(closure)
    >>> (net[0].group_norms() > 0.01).tolist()
    [[True, False, False, False]]
    """

    def __init__(
        self, model: nn.Module, optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.SGD, *,
        direction_step: float | Literal["large"] = "large", switch: int | float | None = None, **options: Any,
    ) -> None:  # fmt: skip
        self.layers = [module for module in model.modules() if isinstance(module, GroupedDiagonalLinear)]
        if not self.layers:
            raise ValueError("The model has no GroupedDiagonalLinear layer, so there are no directions to normalise.")
        if direction_step == "large" and switch is not None:
            raise ValueError("switch needs a direction step to switch to: give direction_step a number.")
        self.eta = None if direction_step == "large" else positive(direction_step, "direction_step")
        self.tol = positive(switch, "switch") if isinstance(switch, float) else None
        self.at_step = None if switch is None or self.tol is not None else whole(switch, "switch", least=0)
        directions = {id(layer.direction) for layer in self.layers}
        self.optimizer = optimizer([p for p in model.parameters() if id(p) not in directions], **options)
        self.t = 0
        self.switched: int | None = None
        self.armed = False
        self.targets: list[torch.Tensor] = []

    def step(self, closure: Callable[[], torch.Tensor]) -> torch.Tensor:
        """One iteration; `closure` clears the gradients, computes the loss, calls backward and returns the loss."""
        with torch.enable_grad():
            loss = closure()
        old = [layer.magnitude.detach().clone() for layer in self.layers]
        turned = [self._turn(layer) for layer in self.layers]
        with torch.no_grad():
            for layer, direction in zip(self.layers, turned, strict=True):
                layer.direction.copy_(direction)
        with torch.enable_grad():
            closure()
        self.optimizer.step()
        self.t += 1
        if self.switched is None and self._due(old):
            self.switched = self.t
        return loss.detach()

    @property
    def large(self) -> bool:
        return self.eta is None or ((self.at_step is not None or self.tol is not None) and self.switched is None)

    @torch.no_grad()
    def _turn(self, layer: GroupedDiagonalLinear) -> torch.Tensor:
        """The new directions of a layer; a direction with ``z_l = 0`` is unchanged."""
        v, gradient, power = layer.direction, layer.direction.grad, layer.power
        if gradient is None:
            return v.detach()
        size = (layer.magnitude**layer.depth)[..., power.labels]
        if len(self.targets) < len(self.layers):
            # g = -gradient/u^N; at the tiny start this is the correlation with nothing fitted, X_l'y/n
            self.targets.append(power.norms(-gradient / size) / 2)
        # the large step v + g/u^N, multiplied by u^N: the same direction, w + g, without a division by u^(2N)
        z = size * v - gradient / size if self.large else v - self.eta * gradient
        norms = power.norms(z)[..., power.labels]
        return torch.where((norms > 0) & torch.isfinite(norms), z / norms, v)

    @torch.no_grad()
    def _due(self, old: list[torch.Tensor]) -> bool:
        if self.at_step is not None:
            return self.t >= self.at_step
        if self.tol is None or not self.targets:
            return False
        for layer, target in zip(self.layers, self.targets, strict=True):
            self.armed |= bool(((layer.magnitude**layer.depth >= target) & (target > 0)).any())
        changes = [
            float(((layer.magnitude - u).abs() / (u + EPSILON).abs()).max())
            for layer, u in zip(self.layers, old, strict=True)
        ]
        return self.armed and max(changes) < self.tol

    def zero_grad(self) -> None:
        """Clear all gradients, including those of the directions."""
        self.optimizer.zero_grad(set_to_none=True)
        for layer in self.layers:
            layer.direction.grad = None

    def state_dict(self) -> dict[str, Any]:
        """The mutable state, apart from the weights of the model."""
        state = {name: getattr(self, name) for name in ("t", "switched", "armed", "targets")}
        return {"optimizer": self.optimizer.state_dict(), **state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state["optimizer"])
        self.t, self.switched, self.armed = state["t"], state["switched"], state["armed"]
        self.targets = [
            target.to(layer.magnitude) for target, layer in zip(state["targets"] or (), self.layers, strict=False)
        ]
