"""The network as a torch layer runs through the same iterates as `covey.paper.dynamics`."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'covey[torch]'")
from torch import nn  # noqa: E402
from torch.nn.utils import parametrize  # noqa: E402

from covey import Groups  # noqa: E402
from covey.datasets import make_group_sparse  # noqa: E402
from covey.paper.dynamics import normalized_descent  # noqa: E402
from covey.paper.nn import GroupedDiagonalLinear, GroupPower, NormalizedDescent  # noqa: E402


@pytest.fixture(scope="module")
def data():
    return make_group_sparse(150, 60, 3, active=2, values=3.0, sigma=0.5, random_state=3)


def train(descent, loss, n_steps):
    """Steps of a descent on a loss without arguments."""

    def closure():
        descent.zero_grad()
        value = loss()
        value.backward()
        return value

    return [float(descent.step(closure)) for _ in range(n_steps)]


def torch_run(data, groups, n_steps, *, scale=1.0, depth=2, init_scale=1e-6, **options):
    """u, v, w of every step, and the descent."""
    X, y = torch.from_numpy(data.X), torch.from_numpy(data.y)[:, None]
    net = nn.Sequential(GroupedDiagonalLinear(groups, depth, init_scale=init_scale, dtype=torch.float64))
    descent = NormalizedDescent(net, **options)
    layer, record, losses = net[0], [], []
    for t in range(n_steps + 1):
        record.append([a.detach().numpy()[0].copy() for a in (layer.magnitude, layer.direction, layer.weight)])
        if t < n_steps:
            losses += train(descent, lambda: 0.5 * scale * nn.functional.mse_loss(net(X), y), 1)
    return [np.array(part) for part in zip(*record, strict=True)], descent, losses


CASES = {
    "algorithm 1": ({}, {}),
    "algorithm 2, at a step": ({"direction_step": 0.01, "switch": 150},) * 2,
    "algorithm 2, from the start": ({"direction_step": 0.01, "switch": 0},) * 2,
    "algorithm 2, when settled": ({"direction_step": 0.01, "switch": 0.01},) * 2,
    "a small step throughout": ({"direction_step": 0.01},) * 2,
    "depth 3": ({"depth": 3, "init_scale": 0.1},) * 2,
    "the authors' gradients": ({"gradient_scale": 2.0}, {"scale": 2.0}),
}


@pytest.mark.parametrize("name", CASES)
def test_it_trains_along_the_same_trajectory(data, name):
    ours, theirs = CASES[name]
    steps = 180 if "authors" in name else 400  # theirs are unstable: later, rounding errors are all there is
    path = normalized_descent(data.X, data.y, data.groups, step_size=5e-3, n_steps=steps, **ours)
    (u, v, w), descent, losses = torch_run(data, data.groups, steps, lr=5e-3, **theirs)
    np.testing.assert_allclose(u, path.u, rtol=0, atol=1e-8)
    np.testing.assert_allclose(v, path.v, rtol=0, atol=1e-8)
    np.testing.assert_allclose(w, path.w, rtol=0, atol=1e-8)
    np.testing.assert_allclose(losses, ours.get("gradient_scale", 1.0) * path.loss[:-1], rtol=1e-8)
    assert descent.switched == path.switch
    if isinstance(ours.get("switch"), int):
        assert path.switch == max(1, ours["switch"])
    assert path.u.max() > 0.9, "the run went far enough to mean something"


def test_outputs_train_side_by_side(data):
    X = torch.from_numpy(data.X)
    Y = torch.from_numpy(np.column_stack([data.y, -2 * data.y]))
    groups = Groups.from_labels([5, 1, 1, 0, 0, 0, 5, 5, 5, 2] * 6)  # of any size, columns in any order
    net = GroupedDiagonalLinear(groups, out_features=2, dtype=torch.float64)
    train(NormalizedDescent(net, lr=2e-3), lambda: 0.5 * (net(X) - Y).square().sum() / len(X), 150)
    for k, y in enumerate((data.y, -2 * data.y)):
        path = normalized_descent(data.X, y, groups, step_size=2e-3, n_steps=150, record_every=150)
        np.testing.assert_allclose(net.weight[k].detach().numpy(), path.w[-1], rtol=0, atol=1e-8)


def test_a_saved_descent_goes_on_as_if_nothing_had_happened(data):
    X, y = torch.from_numpy(data.X), torch.from_numpy(data.y)[:, None]

    def make():
        net = GroupedDiagonalLinear(data.groups, dtype=torch.float64)
        return net, NormalizedDescent(net, lr=5e-3, momentum=0.5, direction_step=0.01, switch=0.01)

    def go(net, descent, steps):
        train(descent, lambda: 0.5 * nn.functional.mse_loss(net(X), y), steps)

    one, first = make()
    go(one, first, 300)
    other, second = make()
    go(other, second, 100)
    resumed, third = make()
    resumed.load_state_dict(other.state_dict())
    third.load_state_dict(second.state_dict())
    go(resumed, third, 200)
    assert torch.equal(one.weight, resumed.weight)
    assert first.switched == third.switched
    assert first.t == third.t


def test_as_a_parametrisation_of_any_linear_layer():
    torch.manual_seed(0)
    groups = Groups.from_sizes([2, 3])
    linear = nn.Linear(5, 4, bias=False, dtype=torch.float64)
    before = linear.weight.detach().clone()
    parametrize.register_parametrization(linear, "weight", GroupPower(groups, depth=3))
    torch.testing.assert_close(linear.weight, before)
    u, v = linear.parametrizations.weight.original0, linear.parametrizations.weight.original1
    assert (u.shape, v.shape) == ((4, 2), (4, 5))
    np.testing.assert_allclose(groups.norms(v.detach().numpy()), 1.0)


@pytest.mark.parametrize("size", [1e-150, 1.0, 1e150])
def test_group_norms_neither_under_nor_overflow(size):
    power = GroupPower(Groups.from_sizes([2, 1]))
    values = size * torch.tensor([3.0, 4.0, -2.0], dtype=torch.float64)
    torch.testing.assert_close(power.norms(values), size * torch.tensor([5.0, 2.0], dtype=torch.float64))
