"""The same geometry in sympy: brackets as formulas, and the paper's identities derived from the definitions.

It shares only the definition of the bracket with the numerical code, so that the two check each other.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from covey.groups import Groups
from covey.optional import optional
from covey.paper.theory.geometry import Word

with optional("covey.paper.theory.symbolic"):
    sympy: Any = importlib.import_module("sympy")


class SymbolicNetwork:
    """The grouped network over symbols: ``G_i = u_{g(i)}^N v_i``, with magnitudes u > 0 and real v, numbered from 0.

    >>> network = SymbolicNetwork(2)
    >>> network.bracket((0, 1)).T
    Matrix([[0, -4*u0**2*v1, 4*u0**2*v0]])
    """

    def __init__(self, groups: Groups | int, depth: int = 2) -> None:
        self.groups = Groups.from_sizes([groups]) if isinstance(groups, int) else groups
        self.depth = depth
        self.u = tuple(sympy.symbols(f"u:{self.groups.n_groups}", positive=True))
        self.v = tuple(sympy.symbols(f"v:{self.groups.n_columns}", real=True))

    @property
    def parameters(self) -> tuple[Any, ...]:
        return self.u + self.v

    def coordinate(self, i: int) -> Any:
        return self.u[int(self.groups.labels[i])] ** self.depth * self.v[i]

    def hessian(self, i: int) -> Any:
        return sympy.hessian(self.coordinate(i), self.parameters)

    def bracket(self, word: Word) -> Any:
        """A bracket expression as a column vector, ``[X, Y] = (dY) X - (dX) Y``; a plain column is its gradient."""
        x = sympy.Matrix(self.parameters)
        if not isinstance(word, tuple | list):
            return sympy.Matrix([self.coordinate(word)]).jacobian(x).T
        X, Y = self.bracket(word[0]), self.bracket(word[1])
        return (Y.jacobian(x) * X - X.jacobian(x) * Y).applyfunc(sympy.expand)

    def pairing(self, k: int, word: Word) -> Any:
        return sympy.factor(self.bracket(k).dot(self.bracket(word)))


@dataclass(frozen=True)
class Identity:
    """One displayed formula of the paper's appendix, and the formula derived from the definitions."""

    name: str
    printed: Any
    derived: Any

    @property
    def holds(self) -> bool:
        """Whether the printed formula equals the derived one, decided symbolically."""
        difference = sympy.Matrix([self.printed]) - sympy.Matrix([self.derived])
        return bool(difference.applyfunc(sympy.expand) == sympy.zeros(*difference.shape))

    def __str__(self) -> str:
        verdict = "as printed" if self.holds else "erratum"
        return f"{self.name}: {verdict}\n  printed  {_row(self.printed)}\n  derived  {_row(self.derived)}"


def identities() -> list[Identity]:
    """The appendix "Geometric properties of the parametrization", formula by formula, for i = 0, j = 1 in one group.

    >>> [identity.name for identity in identities() if not identity.holds]
    ['first bracket', 'span identity', 'bracket derivative', 'second bracket', 'mirror pairing']
    """
    network = SymbolicNetwork(2)
    (u,), (vi, vj) = network.u, network.v
    x = sympy.Matrix(network.parameters)
    e = [sympy.Matrix([int(k == m) for k in range(3)]) for m in range(3)]
    e_g, e_i, e_j = e

    def E(row: int, col: int) -> Any:
        return e[row] * e[col].T

    Gi, Gj, first = network.bracket(0), network.bracket(1), network.bracket((0, 1))
    return [
        Identity("gradient", 2 * u * vi * e_g + u**2 * e_i, Gi),
        Identity("Hessian", 2 * vi * E(0, 0) + 2 * u * E(0, 1) + 2 * u * E(1, 0), network.hessian(0)),
        Identity("Hessian times gradient", 4 * u * vi * vj * e_g + 4 * u**2 * vj * e_i, network.hessian(0) * Gj),
        Identity("first bracket", 4 * u**2 * vj * e_i - 4 * u**2 * vi * e_j, first),
        Identity("span identity", vj * Gi - vi * Gj, first),
        Identity(
            "bracket derivative",
            8 * u * vj * E(1, 0) + 4 * u**2 * E(1, 2) - 8 * u * vi * E(2, 0) - 4 * u**2 * E(2, 1),
            first.jacobian(x),
        ),
        Identity(
            "second bracket",
            16 * u**2 * vi * vj * e_i - (16 * u**2 * vi**2 + 4 * u**4) * e_j - 8 * u**3 * vj * e_g,
            network.bracket((0, (0, 1))),
        ),
        Identity("mirror pairing", -16 * u**4 * vj**2 - 16 * u**4 * vi**2 - 4 * u**6, network.pairing(1, (0, (0, 1)))),
    ]


def _row(value: object) -> str:
    if isinstance(value, sympy.MatrixBase):
        rows = value.T.tolist() if value.shape[1] == 1 else value.tolist()
        return "; ".join("[" + ", ".join(str(sympy.factor(entry)) for entry in row) + "]" for row in rows)
    return str(sympy.factor(value))
