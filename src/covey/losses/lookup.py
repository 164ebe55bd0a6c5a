"""Losses by name."""

from __future__ import annotations

from typing import Any

from covey.losses.base import Loss
from covey.losses.classes import Binomial, Multinomial
from covey.losses.cox import Cox
from covey.losses.huber import Huber
from covey.losses.log_link import Gamma, Poisson
from covey.losses.squared import MultiSquared, Squared

__all__ = ["get_loss"]

LOSSES: dict[str, type[Loss]] = {
    kind.name: kind for kind in (Squared, Huber, Poisson, Gamma, Binomial, Multinomial, MultiSquared, Cox)
}
ALIASES = {"gaussian": "squared", "logistic": "binomial"}


def get_loss(loss: Any) -> Loss:
    """The loss with this name; a loss is returned unchanged.

    Parameters
    ----------
    loss : str or Loss
        "squared" (or "gaussian"), "huber", "poisson", "gamma", "binomial" (or "logistic"), "multinomial",
        "multi-squared", "cox", or a loss.

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
    raise ValueError(f"loss must be one of {', '.join(map(repr, LOSSES))}, or a covey.losses.Loss, not {_shown(loss)}.")


def _shown(loss: Any) -> str:
    text = repr(loss)
    return text if len(text) <= 60 else f"a {type(loss).__name__}"
