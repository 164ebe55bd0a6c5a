"""Simulated designs and data sets."""

from covey.datasets.real import GroupedData, load_bardet, load_diabetes_splines, load_nki70, load_splice
from covey.datasets.simulate import GroupSparseData, make_group_sparse
from covey.datasets.storage import DataNotFoundError

__all__ = [
    "DataNotFoundError",
    "GroupSparseData",
    "GroupedData",
    "load_bardet",
    "load_diabetes_splines",
    "load_nki70",
    "load_splice",
    "make_group_sparse",
]
