"""Losses of a linear predictor given a response, with derivatives, link, deviance and null model."""

from covey.losses.base import Loss, get_loss
from covey.losses.classes import Binomial, Multinomial
from covey.losses.cox import Cox, survival
from covey.losses.huber import Huber
from covey.losses.log_link import Gamma, Poisson
from covey.losses.ordinal import Ordinal
from covey.losses.overdispersed import NegativeBinomial
from covey.losses.quantile import MultiQuantile, Quantile
from covey.losses.squared import MultiSquared, Squared
from covey.losses.tweedie import Tweedie

__all__ = [
    "Binomial",
    "Cox",
    "Gamma",
    "Huber",
    "Loss",
    "MultiQuantile",
    "MultiSquared",
    "Multinomial",
    "NegativeBinomial",
    "Ordinal",
    "Poisson",
    "Quantile",
    "Squared",
    "Tweedie",
    "get_loss",
    "survival",
]
