"""Simulated designs and data sets."""

from covey.datasets.legacy import legacy_paper_data
from covey.datasets.simulate import GroupSparseData, make_group_sparse

__all__ = ["GroupSparseData", "legacy_paper_data", "make_group_sparse"]
