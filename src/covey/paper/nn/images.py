"""Check and convert the autoencoders' images."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

IMAGE_SIZE, MODEL_SIZE = 28, 32
MARGIN = (MODEL_SIZE - IMAGE_SIZE) // 2


def as_images(images: Any, device: torch.device | str | None = None) -> torch.Tensor:
    """Images, cropped to 28 x 28, as a tensor (n, 1, 28, 28): bytes stay bytes, numbers from 0 to 1 become float32."""
    tensor = images if isinstance(images, torch.Tensor) else torch.from_numpy(np.array(images))
    if tensor.ndim == 3:
        tensor = tensor.unsqueeze(1)
    if tensor.ndim != 4 or tensor.shape[1] != 1 or tuple(tensor.shape[2:]) not in ((28, 28), (32, 32)):
        raise ValueError(
            f"Images must have shape (n, 28, 28), (n, 1, 28, 28) or the same with 32, not {tuple(np.shape(images))}."
        )
    if tensor.shape[0] == 0:
        raise ValueError("There are no images.")
    tensor = tensor.to(device)
    if tensor.dtype != torch.uint8:
        tensor = tensor.to(torch.float32)
        if not bool(torch.isfinite(tensor).all()) or float(tensor.min()) < 0 or float(tensor.max()) > 1:
            raise ValueError("Images must be bytes from 0 to 255, or finite numbers from 0 to 1.")
    return crop(tensor)


def prepare(batch: torch.Tensor) -> torch.Tensor:
    """The networks' input: float32 in 0 to 1, padded to 32 x 32."""
    x = as_shares(batch)
    return F.pad(x, (MARGIN,) * 4) if x.shape[-1] == IMAGE_SIZE else x


def as_shares(images: torch.Tensor) -> torch.Tensor:
    """Bytes from 0 to 255 as float32 from 0 to 1."""
    return images.to(torch.float32) / 255 if images.dtype == torch.uint8 else images


def crop(images: torch.Tensor) -> torch.Tensor:
    """The inner 28 x 28 of images of 32 x 32."""
    return images[..., MARGIN:-MARGIN, MARGIN:-MARGIN] if images.shape[-1] == MODEL_SIZE else images
