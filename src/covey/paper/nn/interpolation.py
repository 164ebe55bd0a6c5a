"""Straight lines in latent space, and the quality of the images along them."""

from __future__ import annotations

import torch

from covey.paper.nn.images import as_images, crop, prepare
from covey.paper.nn.models import Autoencoder
from covey.validation import whole

__all__ = ["decode_all", "distance_to_nearest", "encode_all", "interpolate", "midpoint_ratio", "random_pairs"]

BATCH = 1000


@torch.no_grad()
def encode_all(model: Autoencoder, images: torch.Tensor) -> torch.Tensor:
    """The codes of images from `as_images`, in batches; float32 on their device."""
    return torch.cat([model.encode(prepare(part)) for part in images.split(BATCH)])


@torch.no_grad()
def decode_all(model: Autoencoder, codes: torch.Tensor) -> torch.Tensor:
    """The images (n, 1, 28, 28) of codes, within 0 to 1, in batches."""
    return torch.cat([crop(model.decode(part)).clamp(0, 1) for part in codes.split(BATCH)])


def interpolate(model: Autoencoder, first: object, second: object, steps: int = 9) -> torch.Tensor:
    """Decode ``steps`` points, evenly spaced, on the lines between the codes of images.

    Parameters
    ----------
    model : Autoencoder
        Used unchanged, where it is.
    first, second : arrays of shape (n, 28, 28)
        The ends, in equal numbers.
    steps : int
        The number of points including the ends, at least 2.

    Returns
    -------
    tensor of shape (n, steps, 28, 28)
        On the CPU, within 0 to 1. The first and last image of a row are reconstructions.
    """
    whole(steps, "steps", least=2)
    place = next(model.parameters()).device
    a, b = (as_images(end, place) for end in (first, second))
    if len(a) != len(b):
        raise ValueError(f"There must be the same number of images at both ends, not {len(a)} and {len(b)}.")
    was_training = model.training
    model.eval()
    t = torch.linspace(0, 1, steps, device=place)[None, :, None]
    codes = (1 - t) * encode_all(model, a)[:, None] + t * encode_all(model, b)[:, None]
    images = decode_all(model, codes.flatten(0, 1)).reshape(len(a), steps, *a.shape[-2:])
    model.train(was_training)
    return images.cpu()


def random_pairs(n_images: int, n_pairs: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Random pairs of different images, the same for every model."""
    generator = torch.Generator().manual_seed(seed)
    first = torch.randint(n_images, (n_pairs,), generator=generator)
    shift = torch.randint(1, n_images, (n_pairs,), generator=generator)
    return first, (first + shift) % n_images


def distance_to_nearest(images: torch.Tensor, references: torch.Tensor) -> torch.Tensor:
    """The Euclidean distance of each image, pixel by pixel, to the nearest reference image."""
    a = images.flatten(1).to(torch.float32)
    least = torch.full((len(a),), torch.inf, device=a.device)
    for part in references.split(10_000):
        b = part.flatten(1).to(torch.float32) / (255 if part.dtype == torch.uint8 else 1)
        squares = a.square().sum(1)[:, None] + b.square().sum(1)[None] - 2 * a @ b.T
        least = torch.minimum(least, squares.min(dim=1).values)
    return least.clamp_min(0).sqrt()


def midpoint_ratio(path: torch.Tensor, references: torch.Tensor) -> float:
    """How much further the middle of a path is from the data than its ends; 1 means equally far.

    The mean distance of the middle images of a path from `interpolate`, with an odd number of steps, to their nearest
    training images, divided by that of the decoded ends.
    """
    middle = path[:, path.shape[1] // 2]
    ends = torch.cat([path[:, 0], path[:, -1]])
    return float(distance_to_nearest(middle, references).mean() / distance_to_nearest(ends, references).mean())
