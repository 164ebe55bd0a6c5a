"""Simulated designs and data sets."""

from covey.datasets.bardet import Bardet, load_bardet
from covey.datasets.digits import DigitImages, make_digits
from covey.datasets.legacy import legacy_paper_data
from covey.datasets.mnist import load_mnist
from covey.datasets.simulate import GroupSparseData, make_group_sparse
from covey.datasets.storage import DataNotFoundError

__all__ = [
    "Bardet",
    "DataNotFoundError",
    "DigitImages",
    "GroupSparseData",
    "legacy_paper_data",
    "load_bardet",
    "load_mnist",
    "make_digits",
    "make_group_sparse",
]
