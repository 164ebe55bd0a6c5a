"""Images of digits: the container for the autoencoders' data, and a synthetic set for tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.datasets.simulate import check_table_size
from covey.validation import whole

SIZE = 28
# The seven segments of a digital clock, as end points (x, y) in the unit square, with y pointing down: top, upper left,
# upper right, middle, lower left, lower right, bottom ...
STROKES = np.array(
    [[(0, 0), (1, 0)], [(0, 0), (0, 0.5)], [(1, 0), (1, 0.5)], [(0, 0.5), (1, 0.5)], [(0, 0.5), (0, 1)],
     [(1, 0.5), (1, 1)], [(0, 1), (1, 1)]],
    dtype=float,
)  # fmt: skip
# ... and the segments of each digit.
DIGITS = np.array(
    [[int(on) for on in code] for code in
     ("1110111", "0010010", "1011101", "1011011", "0111010", "1101011", "1101111", "1010010", "1111111", "1111011")],
    dtype=bool,
)  # fmt: skip


@dataclass(frozen=True)
class DigitImages:
    """Greyscale images of digits with labels: bytes (n, 28, 28), 0 for background and 255 for ink."""

    train_images: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.int64]

    def head(self, n_train: int | None = None, n_test: int | None = None) -> DigitImages:
        """The first images of each set; None for all."""
        train = self.train_images[:n_train], self.train_labels[:n_train]
        return DigitImages(*train, self.test_images[:n_test], self.test_labels[:n_test])


def make_digits(n_train: int = 512, n_test: int = 128, *, seed: int = 0) -> DigitImages:
    """Draw digits as on a digital clock, randomly slanted, stretched and shifted, with random stroke widths.

    A stand-in for handwritten digits: ten classes on a smooth low-dimensional manifold.

    >>> data = make_digits(20, 10)
    >>> data.train_images.shape, data.test_labels.tolist()
    ((20, 28, 28), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    n_train, n_test = whole(n_train, "n_train", least=0), whole(n_test, "n_test", least=0)
    seed = whole(seed, "seed", least=0)
    for n in (n_train, n_test):
        check_table_size(n, 28 * 28)
    train, test = (np.random.default_rng([seed, part]) for part in range(2))
    labels = [np.arange(n, dtype=np.int64) % 10 for n in (n_train, n_test)]
    return DigitImages(_draw(labels[0], train), labels[0], _draw(labels[1], test), labels[1])


def _draw(labels: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.uint8]:
    n = len(labels)
    width, height = rng.uniform(7, 11, n), rng.uniform(15, 20, n)
    slant, pen = rng.uniform(-0.25, 0.25, n), rng.uniform(1.0, 2.0, n)
    centre = SIZE / 2 + rng.uniform(-2, 2, (n, 2))
    ends = STROKES[None] - 0.5  # (1, stroke, end, xy), relative to the centre
    y = ends[..., 1] * height[:, None, None] + centre[:, 1, None, None]
    x = ends[..., 0] * width[:, None, None] - slant[:, None, None] * (y - centre[:, 1, None, None])
    x = x + centre[:, 0, None, None]
    pixels = np.arange(SIZE) + 0.5
    images = np.zeros((n, SIZE, SIZE))
    for stroke in range(len(STROKES)):
        ax, ay, bx, by = (a[:, stroke, end, None, None] for end in (0, 1) for a in (x, y))
        px, py = pixels[None, None, :], pixels[None, :, None]
        along = np.clip(((px - ax) * (bx - ax) + (py - ay) * (by - ay)) / ((bx - ax) ** 2 + (by - ay) ** 2), 0, 1)
        distance = np.hypot(px - ax - along * (bx - ax), py - ay - along * (by - ay))
        ink = np.clip(pen[:, None, None] + 0.5 - distance, 0, 1)
        images = np.where(DIGITS[labels, stroke][:, None, None], np.maximum(images, ink), images)
    return np.rint(255 * images).astype(np.uint8)
