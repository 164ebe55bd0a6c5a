"""Deleting channels changes nothing that they do not contribute to; the methods of the study do what they say."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'covey[torch]'")

from covey.paper.datasets import make_digits  # noqa: E402
from covey.paper.nn.channel_study import (  # noqa: E402
    COLUMNS,
    METHODS,
    ChannelRun,
    Digits,
    measure_channels,
    train_channels,
)
from covey.paper.nn.pruning import (  # noqa: E402
    ChannelNet,
    accuracy,
    channel_scores,
    largest_channels,
    shrink_groups,
    take_out,
)

KINDS = [("plain", 2), ("power", 2), ("power", 3), ("gates", 2), ("gates", 3)]


@pytest.fixture(scope="module")
def data():
    return Digits.of(make_digits(240, 60, seed=1), 60, "cpu")


@pytest.mark.parametrize(("kind", "depth"), KINDS)
def test_zero_channels_can_be_taken_out_of_every_kind(kind, depth):
    torch.manual_seed(0)
    net = ChannelNet((4, 5, 6), kind, depth).double()
    masks = [torch.tensor([True] * w) for w in net.widths]
    for layer, mask, dead in zip(net.grouped(), masks, ([1], [0, 3], [5]), strict=True):
        mask[dead] = False
        with torch.no_grad():
            weight = layer.weight if kind == "plain" else layer.factored.direction
            weight[dead] = 0.0
    x = torch.rand(3, 1, 28, 28, dtype=torch.float64)
    small = take_out(net, masks)
    assert small.widths == (3, 3, 5)
    torch.testing.assert_close(small(x), net(x))
    # and one that is not zero cannot
    masks[0][0] = False
    assert not torch.allclose(take_out(net, masks)(x), net(x))


def test_scores_do_not_notice_a_rescaling_that_changes_nothing():
    torch.manual_seed(0)
    net = ChannelNet((3, 4, 5)).double()
    before, x = channel_scores(net), torch.rand(2, 1, 28, 28, dtype=torch.float64)
    logits = net(x)
    with torch.no_grad():
        net.first.weight[1] *= 7.0
        net.second.weight[:, 1] /= 7.0
        net.second.weight[2] *= 0.1
        net.hidden.weight[:, 2 * 16 : 3 * 16] *= 10.0
    torch.testing.assert_close(net(x), logits)
    for a, b in zip(before, channel_scores(net), strict=True):
        torch.testing.assert_close(a, b)
        assert float(a.max()) == 1.0


def test_largest_channels_by_hand():
    scores = [torch.tensor([1.0, 0.2]), torch.tensor([0.1, 1.0, 0.3]), torch.tensor([1.0])]
    assert [m.tolist() for m in largest_channels(scores, 4)] == [[True, False], [False, True, True], [True]]
    assert sum(int(m.sum()) for m in largest_channels(scores, 1)) == 3, "every layer keeps its best"
    zeros = [torch.tensor([1.0, 0.0, 0.0]), torch.tensor([1.0]), torch.tensor([1.0])]
    assert sum(int(m.sum()) for m in largest_channels(zeros, 4)) == 4, "ties are not taken all at once"


def test_proximal_step_is_the_minimiser():
    torch.manual_seed(0)
    start = torch.randn(4, 3, 2, dtype=torch.float64)
    start[3] *= 0.01
    weight, amount = start.clone(), 0.8
    shrink_groups(weight, amount)
    for w, w0 in zip(weight, start, strict=True):
        if bool((w == 0).all()):
            assert float(w0.norm()) <= amount  # zero is the minimiser exactly where the gradient fits into the ball
        else:
            torch.testing.assert_close(w - w0 + amount * w / w.norm(), torch.zeros_like(w), atol=1e-12, rtol=0)
    assert bool((weight[3] == 0).all())
    assert not bool((weight[0] == 0).all())


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_and_is_measured(method, data):
    run = ChannelRun(method, 1.0 if "power" in method else 1e-3, 0.1, 0)
    net = train_channels(run, data, widths=(4, 6, 8), epochs=12, batch_size=30)
    assert accuracy(net, *data.train) > 0.4, "ten classes"
    rows = measure_channels(run, net, data, 5)
    assert all(set(row) == set(COLUMNS) for row in rows)
    assert [row["rule"] for row in rows][:2] == ["awake", "ladder"]
    assert rows[1]["channels"] == 18
    assert rows[1]["test"] == accuracy(net, *data.test)
    counts = [row["channels"] for row in rows[1:]]
    assert counts == sorted(counts, reverse=True)
    again = train_channels(run, data, widths=(4, 6, 8), epochs=12, batch_size=30)
    assert all(torch.equal(a, b) for a, b in zip(net.weights(), again.weights(), strict=True))


@pytest.mark.parametrize("method", ["group lasso", "D-gating 2", "D-gating 3"])
def test_a_strong_penalty_puts_channels_to_sleep(method, data):
    def awake(strength):
        net = train_channels(ChannelRun(method, strength, 0.1, 0), data, widths=(4, 6, 8), epochs=20, batch_size=30)
        return sum(int((layer.weight.detach().flatten(1).norm(dim=1) > 1e-2).sum()) for layer in net.grouped())

    assert awake(1e-4) == 18
    assert awake(0.1) < 9


def test_a_network_that_has_diverged_is_measured_too(data):
    run = ChannelRun("plain", 0.0, 0.1, 0)
    net = ChannelNet((2, 2, 2))
    with torch.no_grad():
        net.first.weight.fill_(torch.nan)
    (row,) = measure_channels(run, net, data, 4)
    assert row["channels"] == 6
    assert 0 <= row["test"] <= 0.3
