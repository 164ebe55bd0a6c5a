"""Torch layers with groups, structured pruning, and the paper's autoencoders; this room needs only torch and numpy."""

from covey.optional import optional

with optional("covey.paper.nn"):
    from covey.paper.nn.descent import NormalizedDescent
    from covey.paper.nn.diagonal import GroupedDiagonalLinear, GroupPower
    from covey.paper.nn.factored import (
        DGatedConv2d,
        DGatedLinear,
        FactoredWeight,
        GroupedPowerConv2d,
        GroupedPowerLinear,
        factor_penalty,
    )
    from covey.paper.nn.latent import interpolate
    from covey.paper.nn.models import AE, GAE, IRMAE, VAE, build
    from covey.paper.nn.stack import GroupedLinearStack
    from covey.paper.nn.study import measure
    from covey.paper.nn.training import TrainingResult, load_model, train

__all__ = [
    "AE", "GAE", "IRMAE", "VAE", "DGatedConv2d", "DGatedLinear", "FactoredWeight", "GroupPower",
    "GroupedDiagonalLinear", "GroupedLinearStack", "GroupedPowerConv2d", "GroupedPowerLinear", "NormalizedDescent",
    "TrainingResult", "build", "factor_penalty", "interpolate", "load_model", "measure", "train",
]  # fmt: skip
