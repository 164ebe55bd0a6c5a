"""Polynomial vector fields as dictionaries, with exact derivatives and Lie brackets of any order.

The gradients of the network's coordinates are polynomials with few terms. In this form a bracket of any order is exact
up to round-off error in its evaluation, without finite differences or nested automatic differentiation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from covey.validation import FloatArray

__all__ = ["Field", "Monomial", "Polynomial", "bracket", "gradient"]

# A monomial is its variables with their powers, sorted: x0^2 x3 is ((0, 2), (3, 1)); the constant 1 is ().
Monomial = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Polynomial:
    """A polynomial with sparse terms; variables are positions in the parameter vector.

    >>> f = Polynomial({((0, 2), (3, 1)): 1})      # x0^2 x3
    >>> f.derivative(0)
    Polynomial(terms={((0, 1), (3, 1)): 2})
    """

    terms: Mapping[Monomial, float]

    def __add__(self, other: Polynomial) -> Polynomial:
        total = dict(self.terms)
        for monomial, c in other.terms.items():
            total[monomial] = total.get(monomial, 0) + c
        return Polynomial({monomial: c for monomial, c in total.items() if c != 0})

    def __neg__(self) -> Polynomial:
        return Polynomial({monomial: -c for monomial, c in self.terms.items()})

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + (-other)

    def __mul__(self, other: Polynomial) -> Polynomial:
        total: dict[Monomial, float] = {}
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                powers = dict(left)
                for variable, power in right:
                    powers[variable] = powers.get(variable, 0) + power
                monomial = tuple(sorted(powers.items()))
                total[monomial] = total.get(monomial, 0) + a * b
        return Polynomial({monomial: c for monomial, c in total.items() if c != 0})

    def derivative(self, variable: int) -> Polynomial:
        """The partial derivative in one variable."""
        terms: dict[Monomial, float] = {}
        for monomial, c in self.terms.items():
            powers = dict(monomial)
            power = powers.pop(variable, 0)
            if power:
                if power > 1:
                    powers[variable] = power - 1
                terms[tuple(sorted(powers.items()))] = c * power
        return Polynomial(terms)

    def variables(self) -> set[int]:
        """The variables that occur."""
        return {variable for monomial in self.terms for variable, _ in monomial}

    def __call__(self, x: FloatArray) -> float:
        total = 0.0
        for monomial, c in self.terms.items():
            value = float(c)
            for variable, power in monomial:
                value *= float(x[variable]) ** power
            total += value
        return total


# A vector field: the components that are not identically zero.
Field = Mapping[int, Polynomial]


def gradient(f: Polynomial) -> Field:
    """The vector field ``grad f``.

    >>> sorted(gradient(Polynomial({((0, 2), (3, 1)): 1})))
    [0, 3]
    """
    return {variable: f.derivative(variable) for variable in f.variables()}


def bracket(X: Field, Y: Field) -> Field:
    """The Lie bracket as the paper defines it: ``[X, Y] = (dY) X - (dX) Y``."""
    out: dict[int, Polynomial] = {}
    for k in X.keys() | Y.keys():
        out[k] = _derivative_along(Y.get(k), X) - _derivative_along(X.get(k), Y)
    return {k: component for k, component in out.items() if component.terms}


def _derivative_along(f: Polynomial | None, field: Field) -> Polynomial:
    """``sum_m field_m df/dx_m``; the zero polynomial if f is missing."""
    total = Polynomial({})
    if f is not None:
        for variable in f.variables() & field.keys():
            total = total + f.derivative(variable) * field[variable]
    return total
