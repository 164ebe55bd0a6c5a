"""The encoder and decoder shared by all autoencoders: those of IRMAE on MNIST."""

from __future__ import annotations

import itertools

import torch
from torch import nn

from covey.paper.nn.images import MODEL_SIZE
from covey.validation import whole

__all__ = ["Decoder", "Encoder"]


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
    """A linear layer to an 8 x 8 map, two transposed convolutions to 32 x 32, and one of kernel 1 to an image.

    Returns the input of the last activation.
    """

    def __init__(self, latent: int, width: int = 32) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(latent, 4 * width * 8 * 8), nn.Unflatten(1, (4 * width, 8, 8)), nn.ReLU())
        self.body = nn.Sequential(
            nn.ConvTranspose2d(4 * width, 2 * width, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 1, 1),
        )

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        """Codes (n, latent) to images (n, 1, 32, 32)."""
        return self.body(self.first(z))
