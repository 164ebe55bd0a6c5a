"""Torch layers with groups, structured pruning, and the autoencoders of the paper's last experiment.

Torch and numpy are all that this room needs; `pip install 'covey[torch]'` brings torch.
"""

from importlib.util import find_spec

if find_spec("torch") is None:
    raise ModuleNotFoundError("covey.nn needs torch, which is not installed: pip install 'covey[torch]'", name="torch")

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
