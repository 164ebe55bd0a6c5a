"""The data of the paper's experiments: the authors' draws, and images of digits."""

from covey.paper.datasets.digits import DigitImages, make_digits
from covey.paper.datasets.legacy import legacy_paper_data
from covey.paper.datasets.mnist import load_mnist

__all__ = ["DigitImages", "legacy_paper_data", "load_mnist", "make_digits"]
