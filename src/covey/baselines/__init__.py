"""The paper's comparison methods: explicit penalties, iterative regularisation, and networks with weight decay."""

from covey.baselines.certificates import Certificate, certify
from covey.baselines.convolutional import (
    ConvolutionalNetwork,
    convolve_kernels,
    least_nuclear_norm,
    nuclear_regression,
)
from covey.baselines.costs import diagonal_cost, group_quasi_norm, grouped_cost
from covey.baselines.group_lasso import GroupLasso
from covey.baselines.group_mcp import GroupMCP, GroupSCAD
from covey.baselines.primal_dual import PrimalDual

__all__ = [
    "Certificate",
    "ConvolutionalNetwork",
    "GroupLasso",
    "GroupMCP",
    "GroupSCAD",
    "PrimalDual",
    "certify",
    "convolve_kernels",
    "diagonal_cost",
    "group_quasi_norm",
    "grouped_cost",
    "least_nuclear_norm",
    "nuclear_regression",
]
