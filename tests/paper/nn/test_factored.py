"""Layers with factored weights: the same maps as plain layers, penalties with a closed form, and what they prune."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'covey[torch]'")
from torch import nn  # noqa: E402

from covey import Groups  # noqa: E402
from covey.datasets import make_group_sparse  # noqa: E402
from covey.paper.dynamics import plain_descent  # noqa: E402
from covey.paper.nn import (  # noqa: E402
    DGatedConv2d,
    DGatedLinear,
    FactoredWeight,
    GroupedPowerConv2d,
    GroupedPowerLinear,
    factor_penalty,
)

LAYERS = {
    "power 2": lambda **o: GroupedPowerLinear(6, 8, 2, dtype=torch.float64, **o),
    "power 3": lambda **o: GroupedPowerLinear(6, 8, 3, dtype=torch.float64, **o),
    "D-gating 2": lambda **o: DGatedLinear(6, 8, 2, dtype=torch.float64, **o),
    "D-gating 4": lambda **o: DGatedLinear(6, 8, 4, dtype=torch.float64, **o),
}


@pytest.mark.parametrize("name", LAYERS)
def test_starts_where_torch_starts(name):
    torch.manual_seed(3)
    plain = nn.Linear(6, 8, dtype=torch.float64)
    torch.manual_seed(3)
    layer = LAYERS[name]()
    torch.testing.assert_close(layer.weight, plain.weight)
    x = torch.randn(5, 6, dtype=torch.float64)
    torch.testing.assert_close(layer(x), plain(x))
    torch.manual_seed(3)
    small = LAYERS[name](init_scale=0.1)
    torch.testing.assert_close(small.weight, 0.1 * plain.weight)
    if "power" in name:  # directions of unit norm, as in the paper
        torch.testing.assert_close(small.factored.norms(small.factored.direction), torch.ones(8, dtype=torch.float64))


@pytest.mark.parametrize("make", [GroupedPowerConv2d, DGatedConv2d], ids=["power", "gates"])
def test_convolutions_are_convolutions(make):
    torch.manual_seed(0)
    layer = make(3, 8, (3, 5), 3, channel_groups=2, stride=2, padding=1, dtype=torch.float64)
    x = torch.randn(2, 3, 11, 12, dtype=torch.float64)
    torch.testing.assert_close(layer(x), nn.functional.conv2d(x, layer.weight, layer.bias, stride=2, padding=1))
    assert layer.group_norms().shape == (4,)
    expected = layer.weight.detach().reshape(4, -1).norm(dim=1)
    torch.testing.assert_close(layer.group_norms(), expected)
    assert make(1, 4, 3, bias=False).bias is None
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), layer(x))
    torch.testing.assert_close(factor_penalty(nn.Sequential(layer, nn.Flatten(), layer.double())), layer.penalty())


@pytest.mark.parametrize(
    ("gates", "power"),
    [(1, 1), (1, 2), (1, 3), (3, 1), (2, 2)],
    ids=["lasso", "u^2 v", "u^3 v", "D = 4", "two squares"],
)
def test_penalty_is_the_group_quasi_norm_where_factors_are_balanced(gates, power):
    torch.manual_seed(1)
    start = torch.randn(8, 6, dtype=torch.float64)
    weight = FactoredWeight(start, [0, 0, 1, 2, 2, 2, 1, 0], gates=gates, power=power)
    D = gates * power + 1
    assert weight.factors == D
    norms = weight.norms(start)
    np.testing.assert_allclose(norms, Groups.coerce([0, 0, 1, 2, 2, 2, 1, 0], 8).norms(start.norm(dim=1).numpy()))
    expected = float((norms ** (2 / D)).sum())
    assert float(weight.penalty().detach()) == pytest.approx(expected)
    # and more than that wherever they are not: the product stays, the sum of squares grows
    with torch.no_grad():
        weight.gate[0, 1] *= 1.3
        weight.direction[weight.labels == 1] /= 1.3**power
    torch.testing.assert_close(weight().detach(), start)
    assert float(weight.penalty().detach()) > expected * 1.001


def test_power_layer_descends_like_the_paper_without_normalisation():
    """One output unit per group of one row is w = u^N v: plain SGD on the factors is `plain_descent`."""
    data = make_group_sparse(40, 6, 6, active=1, values=[1.0, -0.5, 0.3, 0.2, 0.0, 0.7], sigma=0.1, random_state=0)
    layer = GroupedPowerLinear(6, 1, 2, bias=False, init_scale=0.3, dtype=torch.float64)
    u, v = float(layer.factored.gate.detach()), layer.factored.direction.detach().numpy()[0].copy()
    path = plain_descent(data.X, data.y, 6, init_scale=u, start=v, step_size=0.02, n_steps=200)
    X, y = torch.from_numpy(data.X), torch.from_numpy(data.y)[:, None]
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.02)
    for _ in range(200):
        optimizer.zero_grad()
        (0.5 * nn.functional.mse_loss(layer(X), y)).backward()
        optimizer.step()
    np.testing.assert_allclose(layer.weight.detach().numpy()[0], path.w[-1], rtol=1e-9)


def test_two_factors_with_decay_are_the_group_lasso():
    """Gradient descent on the smooth form ends at the minimiser of the group lasso, its zeros included."""
    data = make_group_sparse(60, 12, 3, active=2, values=1.0, sigma=0.3, random_state=1)
    strength = 0.15
    X, y = torch.from_numpy(data.X), torch.from_numpy(data.y)
    # the groups of the layer are rows: the coefficients stand in a column
    torch.manual_seed(0)
    weight = FactoredWeight(0.1 * torch.randn(12, 1, dtype=torch.float64), 3)
    optimizer = torch.optim.SGD(weight.parameters(), lr=0.2)
    for _ in range(1500):
        optimizer.zero_grad()
        loss = 0.5 * (y - X @ weight()[:, 0]).square().mean() + strength * weight.penalty()
        loss.backward()
        optimizer.step()
    w = weight().detach().numpy()[:, 0]
    g = data.X.T @ (data.y - data.X @ w) / 60
    groups = Groups.coerce(3, 12)
    norms = groups.norms(w)
    assert (norms > 1e-3).tolist() == [True, True, False, False]
    # the certificate: X_l'r/n is strength times the direction where the group is awake, and below strength elsewhere
    for l, G in enumerate(groups.lists()):
        if norms[l] > 1e-3:
            np.testing.assert_allclose(g[G], strength * w[G] / norms[l], atol=1e-6)
        else:
            assert np.linalg.norm(g[G]) < strength
            assert norms[l] < 1e-8


def test_a_small_start_selects_outputs_by_training_alone():
    """Of ten hidden units reading the same signal, a small start wakes few, a large one all."""
    torch.manual_seed(0)
    X = torch.randn(200, 8)
    y = torch.relu(X[:, :1] - 0.5) - torch.relu(X[:, 1:2])

    def awake(init_scale, depth):
        torch.manual_seed(1)
        net = nn.Sequential(
            GroupedPowerLinear(8, 20, depth, init_scale=init_scale, bias=False), nn.ReLU(), nn.Linear(20, 1)
        )
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
        for _ in range(1500):
            optimizer.zero_grad()
            nn.functional.mse_loss(net(X), y).backward()
            optimizer.step()
        norms = net[0].group_norms()
        return int((norms > 0.1 * norms.max()).sum())

    large, small = awake(1.0, 2), awake(0.03, 2)
    assert large >= 15
    assert small <= large / 2


def test_a_group_of_zeros_stays_there():
    start = torch.zeros(4, 3, dtype=torch.float64)
    start[2:] = 1.0
    weight = FactoredWeight(start, 2, power=2)
    torch.testing.assert_close(weight(), start)
    weight().sum().backward()
    assert float(weight.gate.grad[0, 0]) == 0.0
    assert torch.isfinite(weight.direction).all()
