"""Simulated designs and data sets."""

from covey.datasets.digits import DigitImages, make_digits
from covey.datasets.legacy import legacy_paper_data
from covey.datasets.mnist import load_mnist
from covey.datasets.real import GroupedData, load_bardet, load_diabetes_splines, load_nki70, load_splice
from covey.datasets.simulate import GroupSparseData, make_group_sparse
from covey.datasets.storage import DataNotFoundError

__all__ = [
    "DataNotFoundError",
    "DigitImages",
    "GroupSparseData",
    "GroupedData",
    "legacy_paper_data",
    "load_bardet",
    "load_diabetes_splines",
    "load_mnist",
    "load_nki70",
    "load_splice",
    "make_digits",
    "make_group_sparse",
]
