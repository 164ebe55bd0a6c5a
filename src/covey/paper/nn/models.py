"""The paper's autoencoders: AE, VAE, IRMAE, and GAE with 4 and 8 groups; encoder and decoder are IRMAE's on MNIST."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from covey.paper.nn.images import MODEL_SIZE
from covey.paper.nn.stack import GroupedLinearStack
from covey.validation import whole


class Encoder(nn.Module):
    """Four convolutions, from 32 x 32 down to 2 x 2, and a fifth that maps the 2 x 2 to the codes.

    The fifth is often written as a linear layer on the flattened map. As a convolution it can be grouped: each of
    `groups` groups of codes then depends on one group of channels only. The first convolution has `width` channels, and
    each of the next three twice as many.
    """

    def __init__(self, codes: int, width: int = 32, groups: int = 1) -> None:
        super().__init__()
        codes, width, groups = whole(codes, "codes"), whole(width, "width"), whole(groups, "groups")
        channels = [1, width, 2 * width, 4 * width, 8 * width]
        if codes % groups or channels[-1] % groups:
            raise ValueError(
                f"groups must divide the channels of the last convolution: {channels[-1]} in and {codes} out "
                f"do not both split into {groups} equal groups."
            )
        layers: list[nn.Module] = []
        for before, after in itertools.pairwise(channels):
            layers += [nn.Conv2d(before, after, 4, stride=2, padding=1), nn.ReLU()]
        self.body = nn.Sequential(*layers)
        self.last = nn.Conv2d(channels[-1], codes, 2, groups=groups)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images (n, 1, 32, 32) to codes (n, codes)."""
        if x.ndim != 4 or tuple(x.shape[1:]) != (1, MODEL_SIZE, MODEL_SIZE):
            raise ValueError(f"The encoder needs images of shape (n, 1, 32, 32), not {tuple(x.shape)}; see as_images.")
        return self.last(self.body(x)).flatten(1)


class Decoder(nn.Module):
    """A linear layer to an 8 x 8 map and three convolutions to 32 x 32; gives the input of the last activation."""

    def __init__(self, latent: int, width: int = 32) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(latent, 4 * width * 8 * 8), nn.Unflatten(1, (4 * width, 8, 8)), nn.ReLU())
        self.body = nn.Sequential(
            nn.ConvTranspose2d(4 * width, 2 * width, 4, stride=2, padding=1), nn.ReLU(),
            nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1), nn.ReLU(), nn.Conv2d(width, 1, 1),
        )  # fmt: skip

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        """Codes (n, latent) to images (n, 1, 32, 32)."""
        return self.body(self.first(z))


class Autoencoder(nn.Module):
    """Encoder, linear layers in latent space (or none), decoder; trained on the mean squared error.

    Subclasses define the latent layers and the loss. `title` is the name in tables and figures, as in the paper;
    `settings`, the name of the class and its arguments, suffices to rebuild the model.
    """

    def __init__(self, latent: int = 512, *, width: int = 32, groups: int = 1, codes: int | None = None) -> None:
        super().__init__()
        self.latent, self.width, self.groups = latent, width, groups
        self.title = type(self).__name__
        self.settings: dict[str, Any] = {"model": self.title, "latent": latent, "width": width}
        self.encoder = Encoder(latent if codes is None else codes, width, groups)
        self.stack = nn.Identity()
        self.decoder = Decoder(latent, width)

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        """Images (n, 1, 32, 32) in 0 to 1 to codes (n, latent), after the linear layers."""
        return self.stack(self.encoder(x))

    def decode(self, z: torch.Tensor) -> torch.Tensor:
        """Codes to images (n, 1, 32, 32) in -1 to 1; below 0 is background."""
        return torch.tanh(self.decoder(z))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decode(self.encode(x))

    def loss(self, x: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        """The training loss; it takes a generator if it is random."""
        return F.mse_loss(self(x).float(), x)

    def latent_parameter_count(self) -> int:
        """Parameters of the linear layers in latent space, counted from the modules (the paper's table 2)."""
        return sum(parameter.numel() for parameter in self.stack.parameters())


class AE(Autoencoder):
    """The plain autoencoder: nothing between encoder and decoder."""


class VAE(Autoencoder):
    """The variational autoencoder: cross entropy plus `beta` (0.1 in IRMAE's paper) times divergence from N(0, 1)."""

    def __init__(self, latent: int = 512, *, width: int = 32, beta: float = 0.1) -> None:
        super().__init__(latent, width=width, codes=2 * latent)
        self.beta = beta
        self.settings["beta"] = beta

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        """The means of the codes."""
        return self.encoder(x).chunk(2, dim=1)[0]

    def decode(self, z: torch.Tensor) -> torch.Tensor:
        """Codes to images in 0 to 1."""
        return torch.sigmoid(self.decoder(z))

    def loss(self, x: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        """Cross entropy of the pixels plus beta KL, summed per image and averaged over images."""
        mean, log_variance = self.encoder(x).float().chunk(2, dim=1)
        noise = torch.randn(mean.shape, generator=generator, device=mean.device)
        logits = self.decoder(mean + noise * torch.exp(0.5 * log_variance)).float()
        pixels = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
        divergence = -0.5 * torch.sum(1 + log_variance - mean.square() - log_variance.exp())
        return (pixels + self.beta * divergence) / len(x)


class GAE(Autoencoder):
    """The grouped autoencoder: the last convolution and the linear layers after it act within groups of channels.

    The paper has a `latent` space of 512 dimensions and 3 linear `layers`. `groups` must divide `latent` and the
    channels of the last convolution, ``8 width``.

    >>> GAE(groups=4).latent_parameter_count(), GAE(groups=8).latent_parameter_count()
    (196608, 98304)
    """

    def __init__(self, latent: int = 512, groups: int = 4, *, layers: int = 3, width: int = 32) -> None:
        super().__init__(latent, width=width, groups=groups)
        self.title = f"GAE{groups}"
        self.stack = GroupedLinearStack(latent, groups, layers)
        self.settings |= {"groups": groups, "layers": layers}


class IRMAE(GAE):
    """The implicit rank-minimising autoencoder: linear layers on the entire latent space.

    >>> IRMAE().latent_parameter_count()
    786432
    """

    def __init__(self, latent: int = 512, *, layers: int = 3, width: int = 32) -> None:
        super().__init__(latent, 1, layers=layers, width=width)
        self.title = "IRMAE"
        del self.settings["groups"]


CLASSES: dict[str, Callable[..., Autoencoder]] = {"AE": AE, "VAE": VAE, "GAE": GAE, "IRMAE": IRMAE}
# Class and groups, in the order of the paper's figure.
MODELS: dict[str, dict[str, Any]] = {
    "AE": {"model": "AE"}, "VAE": {"model": "VAE"}, "GAE8": {"model": "GAE", "groups": 8},
    "GAE4": {"model": "GAE", "groups": 4}, "IRMAE": {"model": "IRMAE"},
}  # fmt: skip


def build(title: str, *, seed: int = 0, **options: Any) -> Autoencoder:
    """Build one of the paper's five models with weights drawn from a seed; `options` go to its class.

    >>> build("gae8").title
    'GAE8'
    """
    if title.upper() not in MODELS:
        raise ValueError(f"There is no model {title!r}; the models are {', '.join(MODELS)}.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return rebuild(MODELS[title.upper()] | options)


def rebuild(settings: dict[str, Any]) -> Autoencoder:
    name = settings.get("model")
    if name not in CLASSES:
        raise ValueError(f"There is no model class {name!r}; the classes are {', '.join(CLASSES)}.")
    return CLASSES[name](**{key: value for key, value in settings.items() if key != "model"})
