"""Properties of the latent space: its spectrum, samples from it, and classification with few labels."""

from __future__ import annotations

import torch
from torch.nn import functional as F

__all__ = ["components", "effective_rank", "frechet_distance", "gaussian_samples", "probe_accuracy", "spectrum"]


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
    drawn = mean + (noise * values.clamp_min(0).sqrt()) @ vectors.T
    return drawn.to(codes)


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
    codes: torch.Tensor,
    labels: torch.Tensor,
    test_codes: torch.Tensor,
    test_labels: torch.Tensor,
    *,
    per_class: int = 10,
    draws: int = 5,
    decay: float = 1e-3,
    seed: int = 0,
) -> float:
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
    x = (
        codes.detach().cpu() if codes.device.type == "mps" else codes.detach()
    ).double()  # Apple's device has no float64
    mean = x.mean(0)
    centred = x - mean
    return mean.cpu(), (centred.T @ centred / max(1, len(x) - 1)).cpu()
