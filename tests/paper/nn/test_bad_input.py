"""Bad sizes and settings of networks, layers and training are refused by name."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'covey[torch]'")
from torch import nn  # noqa: E402

from covey.paper.datasets import make_digits  # noqa: E402
from covey.paper.nn import (  # noqa: E402
    AE,
    GAE,
    DGatedLinear,
    FactoredWeight,
    GroupedDiagonalLinear,
    GroupedLinearStack,
    GroupedPowerConv2d,
    GroupedPowerLinear,
    NormalizedDescent,
    build,
    factor_penalty,
)
from covey.paper.nn.channel_study import ChannelRun, Digits  # noqa: E402
from covey.paper.nn.images import as_images  # noqa: E402
from covey.paper.nn.models import rebuild  # noqa: E402
from covey.paper.nn.pruning import ChannelNet, largest_channels, take_out  # noqa: E402


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GAE(512, 3), "do not both split into 3 equal groups"),
        (lambda: GAE(20, 8, width=4), "20 out do not both split into 8"),
        (lambda: build("GAE5"), "the models are AE, VAE, GAE8, GAE4, IRMAE"),
        (lambda: rebuild({"model": "CNN"}), "no model class 'CNN'"),
        (lambda: AE(16, width=4)(torch.zeros(2, 1, 28, 28)), r"shape \(n, 1, 32, 32\), not \(2, 1, 28, 28\)"),
        (lambda: as_images(torch.zeros(2, 20, 20)), "must have shape"),
        (lambda: as_images(torch.zeros(2, 3, 28, 28)), "must have shape"),
        (lambda: as_images(torch.zeros(0, 28, 28)), "no images"),
        (lambda: as_images(torch.full((1, 28, 28), 2.0)), "from 0 to 1"),
        (lambda: as_images(torch.full((1, 28, 28), torch.nan)), "from 0 to 1"),
        (lambda: NormalizedDescent(nn.Linear(3, 1), lr=0.1), "no GroupedDiagonalLinear"),
        (lambda: NormalizedDescent(GroupedDiagonalLinear([0, 0]), lr=0.1, switch=10), "a direction step to switch to"),
        (lambda: NormalizedDescent(GroupedDiagonalLinear([0, 0]), lr=0.1, direction_step=-1.0), "direction_step"),
        (lambda: GroupedLinearStack(10, 3), "10 channels do not split into 3 equal groups"),
        (lambda: GroupedLinearStack(0, 1), "dim"),
        (lambda: GroupedLinearStack(8, 0), "groups"),
        (lambda: GroupedLinearStack(8, 2, 0), "layers"),
        (lambda: GroupedLinearStack(8, 2.5), "groups"),
        (lambda: GroupedDiagonalLinear(3), "give in_features"),
        (lambda: GroupedDiagonalLinear([0, 0], depth=1), "depth"),
        (lambda: GroupedDiagonalLinear([0, 0], init_scale=0.0), "init_scale"),
        (lambda: GroupedDiagonalLinear([0, 0])(torch.zeros(4, 3)), "must have 2 inputs"),
        (lambda: GroupedPowerLinear(4, 4, 1), "depth"),
        (lambda: DGatedLinear(4, 4, 1), "factors"),
        (lambda: GroupedPowerConv2d(1, 4, 3, init_scale=0.0), "init_scale"),
        (lambda: GroupedPowerConv2d(1, 4, 3, channel_groups=3), "would be left over"),
        (lambda: factor_penalty(nn.Linear(2, 2)), "no factored layers"),
        (lambda: FactoredWeight(torch.ones(2, 2), start="zero"), "start must be"),
        (lambda: ChannelNet((4, 5)), "three numbers"),
        (lambda: ChannelNet((4, 5, 0)), "a width"),
        (lambda: ChannelNet((4, 5, 6), "dense"), "kind must be one of 'plain', 'power', 'gates'"),
        (lambda: ChannelRun("lasso", 0.1, 0.1, 0), "method must be one of"),
        (lambda: ChannelRun("power 2", 0.0, 0.1, 0), "strength"),
        (lambda: take_out(ChannelNet((1, 1, 1)), [torch.ones(2, dtype=torch.bool)] * 3), "three masks"),
        (
            lambda: take_out(ChannelNet((1, 1, 1)), [torch.zeros(1, dtype=torch.bool)] * 3),
            "must keep at least one channel",
        ),
        (lambda: largest_channels([torch.ones(2)], 3), "between 1 and the 2 channels"),
        (lambda: Digits.of(make_digits(20, 5), 20, "cpu"), "images to train on"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()
