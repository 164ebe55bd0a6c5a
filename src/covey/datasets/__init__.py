"""Simulated designs and data sets."""

from covey.datasets.grouped import GroupedData
from covey.datasets.legacy import legacy_paper_data
from covey.datasets.simulate import GroupSparseData, make_group_sparse
from covey.datasets.splines import load_diabetes_splines

__all__ = ["GroupSparseData", "GroupedData", "legacy_paper_data", "load_diabetes_splines", "make_group_sparse"]
