"""The five models: counts, shapes, losses, bad sizes."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'covey[torch]'")

from covey.paper.nn import VAE, build  # noqa: E402
from covey.paper.nn.images import as_images, prepare  # noqa: E402
from covey.paper.nn.models import MODELS, rebuild  # noqa: E402


@pytest.mark.parametrize("name", MODELS)
def test_every_model_maps_images_to_codes_and_back(name, tiny, digits):
    options = {**tiny, "width": 8} if name == "GAE8" else tiny
    model = build(name, seed=1, **options)
    assert model.title == name
    x = prepare(as_images(digits.test_images[:3]))
    z = model.encode(x)
    assert z.shape == (3, 16)
    assert model.decode(z).shape == x.shape == (3, 1, 32, 32)
    loss = model.loss(x, torch.Generator().manual_seed(0))
    loss.backward()
    assert math.isfinite(float(loss.detach()))
    assert all(torch.isfinite(p.grad).all() and p.grad.abs().sum() > 0 for p in model.parameters()), "all are trained"
    again = rebuild(model.settings)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(x), model(x))


def test_a_seed_draws_the_weights_and_leaves_the_world_alone(tiny):
    torch.manual_seed(5)
    state = torch.get_rng_state()
    one, same, other = (build("AE", seed=s, **tiny) for s in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
    assert not torch.equal(one.encoder.last.weight, other.encoder.last.weight)


class Given(torch.nn.Module):
    """A layer that answers with what it was given."""

    def __init__(self, answer=None):
        super().__init__()
        self.answer, self.asked = answer, None

    def forward(self, x):
        self.asked = x
        return x if self.answer is None else self.answer


@pytest.mark.parametrize("beta", [0.1, 2.0])
def test_each_term_of_the_variational_loss_counts(tiny, beta):
    """Codes of known means and variances, logits that do not depend on them: the divergence is left, in numbers."""
    rng = np.random.default_rng(0)
    mean, log_variance = 3 * rng.standard_normal((2, 5, 16))
    model, x = VAE(**tiny, beta=beta), torch.rand(5, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    model.encoder = Given(torch.from_numpy(np.concatenate([mean, log_variance], axis=1)).float())
    model.decoder = Given(torch.zeros(5, 1, 32, 32))
    pixels = 32 * 32 * np.log(2)  # the cross entropy of a half, whatever the pixel
    divergence = 0.5 * np.sum(np.exp(log_variance) + mean**2 - 1 - log_variance) / 5
    assert beta * divergence > 0.01 * pixels
    assert float(model.loss(x)) == pytest.approx(pixels + beta * divergence, rel=1e-6)
    # and what is decoded is the mean plus noise of the standard deviation, not of the variance
    noise = torch.randn((5, 16), generator=torch.Generator().manual_seed(4)).double().numpy()
    model.loss(x, torch.Generator().manual_seed(4))
    np.testing.assert_allclose(
        model.decoder.asked.numpy(), mean + noise * np.exp(log_variance / 2), rtol=1e-4, atol=1e-4
    )
