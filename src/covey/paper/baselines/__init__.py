"""The paper's comparison methods: explicit penalties, iterative regularisation, and networks with weight decay."""

from covey.paper.baselines.group_lasso import GroupLasso
from covey.paper.baselines.primal_dual import PrimalDual
from covey.paper.baselines.proximal import Certificate, certify
from covey.paper.baselines.weight_decay import (
    ConvolutionalNetwork,
    convolve_kernels,
    diagonal_cost,
    group_quasi_norm,
    grouped_cost,
    least_nuclear_norm,
    nuclear_regression,
)

__all__ = [
    "Certificate", "ConvolutionalNetwork", "GroupLasso", "PrimalDual", "certify", "convolve_kernels", "diagonal_cost",
    "group_quasi_norm", "grouped_cost", "least_nuclear_norm", "nuclear_regression",
]  # fmt: skip
