"""The five autoencoders of the paper: AE, VAE, IRMAE, and GAE with 4 and with 8 groups."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from covey.paper.nn.networks import Decoder, Encoder
from covey.paper.nn.stack import GroupedLinearStack

__all__ = ["AE", "GAE", "IRMAE", "MODELS", "VAE", "Autoencoder", "build", "rebuild"]


class Autoencoder(nn.Module):
    """Encoder, linear layers in latent space (or none), decoder; trained on the mean squared error.

    Subclasses define the latent layers and the loss. `title` is the name in tables and figures, as in the paper;
    `settings`, the name of the class and its arguments, suffices to rebuild the model.
    """

    encoder: Encoder
    stack: nn.Module
    decoder: Decoder

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
        """Reconstruct images."""
        return self.decode(self.encode(x))

    def loss(self, x: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        """The training loss; it takes a generator if it is random."""
        return F.mse_loss(self(x).float(), x)

    def latent_parameter_count(self) -> int:
        """Parameters of the linear layers in latent space, counted from the modules (the paper's table 2)."""
        return sum(parameter.numel() for parameter in self.stack.parameters())

    def fold(self) -> Autoencoder:
        """A copy for inference, with the linear layers multiplied together."""
        folded = copy.deepcopy(self)
        if isinstance(self.stack, GroupedLinearStack):
            folded.stack = self.stack.fold()
        return folded


class AE(Autoencoder):
    """The plain autoencoder: nothing between encoder and decoder."""


class VAE(Autoencoder):
    """The variational autoencoder: Gaussian codes, cross entropy plus `beta` times the divergence from N(0, 1).

    Parameters
    ----------
    latent, width : int
    beta : float
        0.1, as in the IRMAE paper's comparison.
    """

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

    Parameters
    ----------
    latent : int
        Dimension of the latent space; 512 in the paper.
    groups : int
        Must divide the channels of the last convolution, ``8 width`` and `latent`.
    layers : int
        Linear layers; 3 in the paper.
    width : int
        Channels of the first convolution.

    Examples
    --------
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

    Examples
    --------
    >>> IRMAE().latent_parameter_count()
    786432
    """

    def __init__(self, latent: int = 512, *, layers: int = 3, width: int = 32) -> None:
        super().__init__(latent, 1, layers=layers, width=width)
        self.title = "IRMAE"
        del self.settings["groups"]


# In the order of the paper's figure.
MODELS: dict[str, Callable[..., Autoencoder]] = {
    "AE": AE,
    "VAE": VAE,
    "GAE8": lambda **options: GAE(groups=8, **options),
    "GAE4": lambda **options: GAE(groups=4, **options),
    "IRMAE": IRMAE,
}


def build(title: str, *, seed: int = 0, **options: Any) -> Autoencoder:
    """Build one of the paper's five models with weights drawn from a seed; `options` go to its class.

    >>> build("gae8").title
    'GAE8'
    """
    name = title.upper()
    if name not in MODELS:
        raise ValueError(f"There is no model {title!r}; the models are {', '.join(MODELS)}.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return MODELS[name](**options)


def rebuild(settings: dict[str, Any]) -> Autoencoder:
    """Build a model from its `settings`."""
    options = dict(settings)
    classes: dict[str, Callable[..., Autoencoder]] = {"AE": AE, "VAE": VAE, "GAE": GAE, "IRMAE": IRMAE}
    name = options.pop("model", None)
    if name not in classes:
        raise ValueError(f"There is no model class {name!r}; the classes are {', '.join(classes)}.")
    return classes[name](**options)
