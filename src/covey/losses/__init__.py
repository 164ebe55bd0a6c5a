"""Losses of a linear predictor given a response, with derivatives, link, deviance and null model."""

from __future__ import annotations

from covey.losses.base import CoupledLoss, Loss
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
    "CoupledLoss",
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

# The losses that have a name.
LOSSES: dict[str, type[Loss]] = {
    loss.name: loss
    for loss in (
        Squared, Huber, Quantile, Poisson, NegativeBinomial, Gamma, Tweedie, Binomial, Multinomial, Ordinal,
        MultiSquared, MultiQuantile, Cox,
    )
}  # fmt: skip
ALIASES = {"gaussian": "squared", "logistic": "binomial"}


def get_loss(loss: object) -> Loss:
    """The loss with this name; a loss is returned unchanged.

    Parameters
    ----------
    loss : str or Loss
        "squared" (or "gaussian"), "huber", "quantile", "poisson", "negative-binomial", "gamma", "tweedie",
        "binomial" (or "logistic"), "multinomial", "ordinal", "multi-squared", "multi-quantile", "cox", or a loss.

    Returns
    -------
    Loss
        If a name was given, with default settings.

    Examples
    --------
    >>> get_loss("gaussian")
    Squared()
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, type) and issubclass(loss, Loss):
        raise ValueError(f"loss must be an instance, not a class: pass {loss.__name__}().")
    if isinstance(loss, str) and (name := ALIASES.get(loss, loss)) in LOSSES:
        return LOSSES[name]()
    shown = repr(loss) if len(repr(loss)) <= 60 else f"a {type(loss).__name__}"
    raise ValueError(f"loss must be one of {', '.join(map(repr, LOSSES))}, or a covey.losses.Loss, not {shown}.")
