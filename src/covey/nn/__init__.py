"""Torch layers with groups, structured pruning, and the autoencoders of the paper's last experiment.

This package needs only torch and numpy; `pip install 'covey[torch]'` installs torch.
"""

from covey.optional import optional

with optional("covey.nn"):
    from covey.nn.checkpoint import load_model
    from covey.nn.descent import NormalizedDescent
    from covey.nn.diagonal import GroupedDiagonalLinear, GroupPower
    from covey.nn.factored import (
        DGatedConv2d,
        DGatedLinear,
        FactoredWeight,
        GroupedPowerConv2d,
        GroupedPowerLinear,
        factor_penalty,
    )
    from covey.nn.interpolation import interpolate
    from covey.nn.models import AE, GAE, IRMAE, VAE, build
    from covey.nn.stack import GroupedLinearStack
    from covey.nn.study import measure
    from covey.nn.training import TrainingResult, train

__all__ = [
    "AE",
    "GAE",
    "IRMAE",
    "VAE",
    "DGatedConv2d",
    "DGatedLinear",
    "FactoredWeight",
    "GroupPower",
    "GroupedDiagonalLinear",
    "GroupedLinearStack",
    "GroupedPowerConv2d",
    "GroupedPowerLinear",
    "NormalizedDescent",
    "TrainingResult",
    "build",
    "factor_penalty",
    "interpolate",
    "load_model",
    "measure",
    "train",
]
