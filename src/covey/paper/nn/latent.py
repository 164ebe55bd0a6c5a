"""The latent space: straight lines in it, its spectrum, samples from it, and classification with few labels."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from covey.paper.nn.images import as_images, as_shares, crop, prepare
from covey.paper.nn.models import Autoencoder
from covey.validation import whole

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
    """Decode `steps` points, evenly spaced, ends included, on the lines between the codes of images.

    Of as many images at the `first` end as at the `second`, (n, 28, 28) each, this makes a tensor (n, steps, 28, 28) on
    the CPU, within 0 to 1; the first and last image of a row are reconstructions. The model is left unchanged.
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
        b = as_shares(part.flatten(1))
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


def spectrum(codes: torch.Tensor) -> torch.Tensor:
    """The singular values of the covariance matrix of the codes, largest first; float64 on the CPU."""
    _, covariance = _moments(codes)
    return torch.linalg.eigvalsh(covariance).flip(0).clamp_min(0)


def effective_rank(values: torch.Tensor) -> float:
    """The exponential of the entropy of the normalised singular values (Roy and Vetterli, 2007).

    k equal values and otherwise zeros have effective rank k; unlike the rank, it needs no threshold.

    >>> round(effective_rank(torch.tensor([2.0, 2.0, 0.0])), 6)
    2.0
    """
    total = float(values.sum())
    if total <= 0:
        return 0.0
    share = values[values > 0] / total
    return float(torch.exp(-(share * share.log()).sum()))


def components(values: torch.Tensor, share: float = 0.99) -> int:
    """The number of principal components that explain this share of the variance."""
    held = values.cumsum(0) / values.sum().clamp_min(torch.finfo(values.dtype).tiny)
    return int((held < share).sum()) + 1


def gaussian_samples(codes: torch.Tensor, n: int, seed: int = 0) -> torch.Tensor:
    """Draw codes from the Gaussian with the mean and covariance of the given ones."""
    mean, covariance = _moments(codes)
    values, vectors = torch.linalg.eigh(covariance)
    noise = torch.randn(n, len(values), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (mean + (noise * values.clamp_min(0).sqrt()) @ vectors.T).to(codes)


def frechet_distance(a: torch.Tensor, b: torch.Tensor) -> float:
    """The squared Frechet distance of the Gaussians with the moments of two sets of features.

    ``norm(m_a - m_b)^2 + trace(S_a + S_b - 2 (S_a S_b)^(1/2))``; zero for equal moments.
    """
    (mean_a, cov_a), (mean_b, cov_b) = _moments(a), _moments(b)
    values, vectors = torch.linalg.eigh(cov_a)
    root = (vectors * values.clamp_min(0).sqrt()) @ vectors.T
    # the square root of S_a S_b has the same trace as that of the symmetric matrix root S_b root
    cross = torch.linalg.eigvalsh(root @ cov_b @ root).clamp_min(0).sqrt().sum()
    return float((mean_a - mean_b).square().sum() + cov_a.trace() + cov_b.trace() - 2 * cross)


def probe_accuracy(
    codes: torch.Tensor, labels: torch.Tensor, test_codes: torch.Tensor, test_labels: torch.Tensor, *,
    per_class: int = 10, draws: int = 5, decay: float = 1e-3, seed: int = 0,
) -> float:  # fmt: skip
    """Mean test accuracy of logistic regression on the codes of a few labelled images, over several draws.

    Codes are centred and divided by their root mean square norm, so that directions of little variance stay small;
    `decay` is the weight of half the squared norm of the coefficients.
    """
    centre = codes.mean(0)
    scale = (codes - centre).square().sum(1).mean().sqrt().clamp_min(1e-30)
    generator = torch.Generator().manual_seed(seed)
    classes = int(max(labels.max(), test_labels.max())) + 1
    total = 0.0
    for _ in range(draws):
        order = torch.randperm(len(labels), generator=generator).to(labels.device)
        chosen = torch.cat([order[labels[order] == c][:per_class] for c in range(classes)])
        x = ((codes[chosen] - centre) / scale).double()
        W, bias = _logistic(x, labels[chosen], classes, decay)
        guess = (((test_codes - centre) / scale).double() @ W + bias).argmax(1)
        total += float((guess == test_labels).double().mean())
    return total / draws


def _logistic(x: torch.Tensor, labels: torch.Tensor, classes: int, decay: float) -> tuple[torch.Tensor, torch.Tensor]:
    W = torch.zeros(x.shape[1], classes, dtype=x.dtype, device=x.device, requires_grad=True)
    bias = torch.zeros(classes, dtype=x.dtype, device=x.device, requires_grad=True)
    optimizer = torch.optim.LBFGS([W, bias], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(x @ W + bias, labels) + 0.5 * decay * W.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return W.detach(), bias.detach()


def _moments(codes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and covariance in float64, computed on the codes' device and returned on the CPU."""
    # Apple's device has no float64
    x = (codes.detach().cpu() if codes.device.type == "mps" else codes.detach()).double()
    mean = x.mean(0)
    centred = x - mean
    return mean.cpu(), (centred.T @ centred / max(1, len(x) - 1)).cpu()
