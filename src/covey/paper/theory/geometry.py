"""Geometry of the parameterisation: coordinates, gradients, Hessians, Lie brackets, and their consequences.

The grouped network maps parameters ``x = [u_1..u_L, v_1..v_p]`` to ``G_i(x) = u_{g(i)}^N v_i``. Two gradients of one
group do not commute (Lemma non-commuting), so the flow in w is not a mirror flow (Theorem not-mf). The diagonal
network ``G_i(a, b) = a_i^N - b_i^N`` commutes, and is included for comparison.

The coordinates are polynomials with few terms, kept as dictionaries: a bracket of any order is exact up to round-off
error in its evaluation, without finite differences or nested automatic differentiation.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from covey.groups import Groups
from covey.validation import FloatArray, as_numbers, listed, whole

# A bracket expression over columns: 3 is grad G_3, (0, (0, 1)) is [grad G_0, [grad G_0, grad G_1]].
Word = Any

# The number of words grows exponentially with their length; a power on a magnitude is written out in factors.
LONGEST_WORD, DEEPEST = 20, 1000

# The variables of a monomial with repetitions, sorted: x0^2 x3 is (0, 0, 3); the constant 1 is ().
Monomial = tuple[int, ...]


@dataclass(frozen=True)
class Polynomial:
    """A polynomial with sparse terms; variables are positions in the parameter vector.

    >>> Polynomial({(0, 0, 3): 1}).derivative(0)      # of x0^2 x3
    Polynomial(terms={(0, 3): 2})
    """

    terms: Mapping[Monomial, float]

    def __sub__(self, other: Polynomial) -> Polynomial:
        return _collect([*self.terms.items(), *((monomial, -c) for monomial, c in other.terms.items())])

    def derivative(self, variable: int) -> Polynomial:
        """The partial derivative in one variable."""
        terms = {}
        for monomial, c in self.terms.items():
            if variable in monomial:
                at = monomial.index(variable)
                terms[monomial[:at] + monomial[at + 1 :]] = c * monomial.count(variable)
        return Polynomial(terms)

    def along(self, field: Field) -> Polynomial:
        """The derivative along a vector field, ``sum_m field_m df/dx_m``."""
        return _collect(
            (tuple(sorted(left + right)), a * b)
            for variable in self.variables() & field.keys()
            for left, a in self.derivative(variable).terms.items()
            for right, b in field[variable].terms.items()
        )

    def variables(self) -> set[int]:
        return {variable for monomial in self.terms for variable in monomial}

    def __call__(self, x: FloatArray) -> float:
        return sum(c * math.prod(float(x[variable]) for variable in monomial) for monomial, c in self.terms.items())


# A vector field: the components that are not identically zero.
Field = Mapping[int, Polynomial]


def _collect(terms: Iterable[tuple[Monomial, float]]) -> Polynomial:
    total: dict[Monomial, float] = {}
    for monomial, c in terms:
        total[monomial] = total.get(monomial, 0) + c
    return Polynomial({monomial: c for monomial, c in total.items() if c != 0})


class Parameterization(ABC):
    """A map from parameters x to coefficients w with polynomial coordinates ``w_i = G_i(x)``."""

    depth: int

    def __post_init__(self) -> None:
        if whole(self.depth, "depth") > DEEPEST:
            raise ValueError(f"depth must be at most {DEEPEST}, not {self.depth}.")

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """The number of coordinates, p."""

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """The length of the parameter vector x."""

    @abstractmethod
    def coordinate(self, i: int) -> Polynomial:
        """The polynomial ``G_i``."""

    def value(self, x: ArrayLike) -> FloatArray:
        """The coefficients ``G(x)``."""
        x = self._check(x)
        return np.array([self.coordinate(i)(x) for i in range(self.n_columns)])

    def gradient(self, i: int, x: ArrayLike) -> FloatArray:
        """``grad G_i(x)``; for the grouped network ``2 u v_i e_g(i) + u^2 e_{L+i}``."""
        return self.bracket(i, x)

    def jacobian(self, x: ArrayLike) -> FloatArray:
        """All gradients as rows: shape (n_columns, n_parameters)."""
        return np.array([self.gradient(i, x) for i in range(self.n_columns)])

    def hessian(self, i: int, x: ArrayLike) -> FloatArray:
        """``grad^2 G_i(x)``, shape (n_parameters, n_parameters)."""
        x = self._check(x)
        out = np.zeros((x.size, x.size))
        for k, component in self.field(i).items():
            for m in component.variables():
                out[k, m] = component.derivative(m)(x)
        return out

    def field(self, word: Word) -> Field:
        """The vector field of a bracket expression, as polynomials: ``[X, Y] = (dY) X - (dX) Y``."""
        if not isinstance(word, tuple | list):
            G = self.coordinate(self._column(word))
            return {variable: G.derivative(variable) for variable in G.variables()}
        if len(word) != 2:
            raise ValueError(f"A word has two sides, columns or words, like (0, 1) or (0, (0, 1)); got {word!r}.")
        (X, Y), zero = (self.field(side) for side in word), Polynomial({})
        out = {k: Y.get(k, zero).along(X) - X.get(k, zero).along(Y) for k in X.keys() | Y.keys()}
        return {k: component for k, component in out.items() if component.terms}

    def bracket(self, word: Word, x: ArrayLike) -> FloatArray:
        """A bracket expression of any order at the point x."""
        x = self._check(x)
        out = np.zeros(x.size)
        for k, component in self.field(word).items():
            out[k] = component(x)
        return out

    def _check(self, x: ArrayLike) -> FloatArray:
        values = np.asarray(x, dtype=float)
        if values.shape != (self.n_parameters,):
            raise ValueError(f"Parameters must have shape ({self.n_parameters},), not {values.shape}.")
        return values

    def _column(self, i: object) -> int:
        if isinstance(i, bool | np.bool_) or not isinstance(i, int | np.integer) or not 0 <= i < self.n_columns:
            raise ValueError(f"{i!r} is not a column; there are {self.n_columns}, numbered from 0.")
        return int(i)


@dataclass(frozen=True)
class GroupedNetwork(Parameterization):
    """``G_i = u_{g(i)}^N v_i``, parameters ``[u, v]`` of length L + p (the paper's DGLNN with N = 2).

    >>> network = GroupedNetwork(Groups.from_sizes([2, 1]))
    >>> network.value(network.pack(u=[2, 3], v=[1, -1, 5])).tolist()
    [4.0, -4.0, 45.0]
    """

    groups: Groups
    depth: int = 2

    @property
    def n_columns(self) -> int:
        return self.groups.n_columns

    @property
    def n_parameters(self) -> int:
        return self.groups.n_groups + self.groups.n_columns

    def coordinate(self, i: int) -> Polynomial:
        l, L = int(self.groups.labels[i]), self.groups.n_groups
        return Polynomial({(*[l] * self.depth, L + i): 1})

    def pack(self, u: ArrayLike, v: ArrayLike) -> FloatArray:
        """Magnitudes and directions as one parameter vector."""
        u, v = np.atleast_1d(as_numbers(u, "u", finite=False)), as_numbers(v, "v", finite=False)
        L, p = self.groups.n_groups, self.groups.n_columns
        if u.shape != (L,) or v.shape != (p,):
            raise ValueError(f"u must have shape ({L},) and v ({p},); got {u.shape} and {v.shape}.")
        return np.concatenate([u, v])


@dataclass(frozen=True)
class DiagonalNetwork(Parameterization):
    """``G_i = a_i^N - b_i^N``, parameters ``[a, b]`` of length 2p: every parameter affects only one coordinate."""

    size: int
    depth: int = 2

    @property
    def n_columns(self) -> int:
        return self.size

    @property
    def n_parameters(self) -> int:
        return 2 * self.size

    def coordinate(self, i: int) -> Polynomial:
        return Polynomial({(i,) * self.depth: 1, (self.size + i,) * self.depth: -1})


def lie_bracket(word: Word, u: ArrayLike, v: ArrayLike, groups: object = None, *, depth: int = 2) -> FloatArray:
    """A Lie bracket of the grouped network's gradients, of any order, at ``(u, v)``.

        [X, Y] = (dY) X - (dX) Y,      X, Y among grad G_i and their brackets (the paper's Definition).

    For two columns of one group, ``[grad G_i, grad G_j] = 4 u^2 (v_i e_{L+j} - v_j e_{L+i})`` (Lemma non-commuting,
    with its sign corrected); for columns of different groups it vanishes.

    In a word, ``(0, 1)`` is ``[grad G_0, grad G_1]``; ``(0, (0, 1))`` nests; a plain column is its gradient. Without
    `groups` there is one; `depth` is the power on u.

    >>> lie_bracket((0, 1), u=[1.0], v=[3.0, 5.0]).tolist()
    [0.0, -20.0, 12.0]
    """
    v = as_numbers(v, "v", ndim=1)
    partition = Groups.from_sizes([v.size]) if groups is None else Groups.coerce(groups, v.size)
    network = GroupedNetwork(partition, depth)
    return network.bracket(word, network.pack(u, v))


def words(columns: list[int], order: int) -> list[Word]:
    """The right-nested brackets ``(i, (j, ..., (k, m)))`` of a given order over some columns; they span all brackets.

    >>> words([0, 1], 2)
    [(0, 1)]
    >>> words([0, 1], 3)
    [(0, (0, 1)), (1, (0, 1))]
    """
    columns, order = listed(columns, "columns"), whole(order, "order")
    if order > LONGEST_WORD:
        raise ValueError(f"order must be at most {LONGEST_WORD}, not {order}: there are too many such words.")
    if order < 2:
        return columns
    if order == 2:
        return list(itertools.combinations(columns, 2))
    return [(i, inner) for i in columns for inner in words(columns, order - 1)]


def commutes(network: Parameterization) -> bool:
    """Whether every bracket ``[grad G_i, grad G_j]`` vanishes identically: a commuting parameterisation.

    Decided on the polynomials, not at a point. Sufficient for the gradient flow to be a mirror flow.

    >>> commutes(DiagonalNetwork(3)), commutes(GroupedNetwork(Groups.from_sizes([1, 2])))
    (True, False)
    >>> commutes(GroupedNetwork(Groups.from_sizes([1, 1, 1])))          # groups of one share no parameter
    True
    """
    return not any(network.field(pair) for pair in words(list(range(network.n_columns)), 2))


def mirror_pairing(network: Parameterization, x: ArrayLike, word: Word) -> FloatArray:
    """``dG(x) [..]``: the inner products ``<grad G_k, bracket>`` over all k.

    A gradient flow is a mirror flow for every time-dependent loss only if this is zero for every bracket (the
    necessary condition behind Theorem not-mf). In the grouped network the order-three pairing
    ``<grad G_j, [grad G_i, [grad G_i, grad G_j]]> = 4u^6 + 16u^4 v_i^2 + 16u^4 v_j^2`` is positive everywhere.
    """
    return network.jacobian(x) @ network.bracket(word, x)


def span_residual(network: Parameterization, x: ArrayLike, word: Word) -> float:
    """Relative distance of a bracket from ``span{grad G_i(x)}``: 0 when it lies in the span (the span property).

    The gradients of the grouped network are involutive: every bracket, of any order, stays in their span. Its leaves
    are the level sets of the balance ``u_l^2/N - norm(v_l)^2``.
    """
    J, b = network.jacobian(x), network.bracket(word, x)
    weights = np.linalg.lstsq(J.T, b, rcond=None)[0]
    return float(np.linalg.norm(J.T @ weights - b)) / (float(np.linalg.norm(b)) or 1.0)
