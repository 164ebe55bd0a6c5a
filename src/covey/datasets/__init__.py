"""Simulated designs and data sets."""

from covey.datasets.bardet import Bardet, load_bardet
from covey.datasets.legacy import legacy_paper_data
from covey.datasets.simulate import GroupSparseData, make_group_sparse
from covey.datasets.storage import DataNotFoundError

__all__ = [
    "Bardet",
    "DataNotFoundError",
    "GroupSparseData",
    "legacy_paper_data",
    "load_bardet",
    "make_group_sparse",
]
