"""The grouping layer against plain linear layers, against itself folded, in other precisions and compiled."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'covey[torch]'")
from torch import nn  # noqa: E402

from covey.paper.nn import GAE, GroupedLinearStack  # noqa: E402


def stack(dim=24, groups=4, layers=3, dtype=torch.float64, seed=0):
    torch.manual_seed(seed)
    return GroupedLinearStack(dim, groups, layers, dtype=dtype)


@pytest.mark.parametrize(("dim", "groups", "layers"), [(24, 1, 3), (24, 4, 3), (24, 24, 2), (24, 8, 1)])
def test_it_is_linear_layers_on_each_group(dim, groups, layers):
    one = stack(dim, groups, layers)
    size = dim // groups
    x = torch.randn(5, dim, dtype=torch.float64)
    parts = []
    for l in range(groups):
        h = x[:, l * size : (l + 1) * size]
        for k in range(layers):
            linear = nn.Linear(size, size, bias=False, dtype=torch.float64)
            linear.weight = nn.Parameter(one.weight[k, l].detach().clone())
            h = linear(h)
        parts.append(h)
    torch.testing.assert_close(one(x), torch.cat(parts, 1), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(one(x[None])[0, 2], one(x[2]))
    folded = one.fold()
    assert folded.layers == 1
    torch.testing.assert_close(folded(x), one(x), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(x @ one.matrix().T, one(x), rtol=1e-12, atol=1e-12)
    assert torch.count_nonzero(one.matrix()) == dim * size, "nothing outside the blocks"
    with pytest.raises(ValueError, match=r"24 channels, but the input has shape \(5, 23\)"):
        one(x[:, 1:])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_and_tracing_for_compilation(dtype):
    one = stack(dtype=torch.float32)
    x = torch.randn(6, 24)
    exact = one(x)
    half = one.to(dtype)(x.to(dtype))
    assert half.dtype == dtype
    torch.testing.assert_close(half.float(), exact, rtol=0.05, atol=0.02)
    torch.testing.assert_close(torch.compile(one, backend="eager", fullgraph=True)(x.to(dtype)), half)
    half.sum().backward()
    assert torch.isfinite(one.weight.grad).all()


def test_groups_see_their_own_channels_only():
    model = GAE(16, 4, width=4).double()
    x = torch.rand(1, 1, 32, 32, dtype=torch.float64)
    h = model.encoder.body(x).detach().requires_grad_()
    z = model.stack(model.encoder.last(h).flatten(1))
    (gradient,) = torch.autograd.grad(z[0, :4].sum(), h)  # the first of four groups of codes
    used = np.flatnonzero(gradient.abs().sum((0, 2, 3)).numpy())
    assert used.tolist() == list(range(8)), "32 channels in four groups of 8"


@pytest.mark.parametrize(("dim", "groups"), [(64, 1), (64, 4), (96, 3)])
def test_it_starts_as_linear_layers_of_its_groups_do(dim, groups):
    """Uniform within one over the root of the channels of a group, up to the ends and with its variance."""
    weight = GroupedLinearStack(dim, groups, 3).weight.detach()
    bound = (dim // groups) ** -0.5
    assert 0.99 * bound < float(weight.abs().max()) <= bound
    assert float(weight.mean()) == pytest.approx(0.0, abs=0.03 * bound)
    assert float(weight.var()) == pytest.approx(bound**2 / 3, rel=0.06)
