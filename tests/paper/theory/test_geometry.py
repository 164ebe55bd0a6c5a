"""Gradients, Hessians and brackets: against finite differences, against sympy, and the properties they must have."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey import Groups
from covey.paper.theory import (
    DiagonalNetwork,
    GroupedNetwork,
    balance,
    commutes,
    lie_bracket,
    mirror_pairing,
    span_residual,
    words,
)
from covey.paper.theory.symbolic import Identity, SymbolicNetwork, identities

GROUPS = Groups.from_labels([0, 1, 0, 1, 1, 2])


def point(network, seed=0):
    rng = np.random.default_rng(seed)
    L, p = network.groups.n_groups, network.groups.n_columns
    return network.pack(rng.uniform(0.5, 2.0, L), rng.standard_normal(p))


def difference(f, x, h=1e-6):
    """Central differences; derivatives of a vector-valued f run along the last axis."""
    steps = h * np.eye(x.size)
    return np.stack([(f(x + e) - f(x - e)) / (2 * h) for e in steps], axis=-1)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_value_gradient_and_hessian(depth):
    network = GroupedNetwork(GROUPS, depth)
    x = point(network)
    u, v = x[:3], x[3:]
    np.testing.assert_allclose(network.value(x), u[GROUPS.labels] ** depth * v)
    np.testing.assert_allclose(network.jacobian(x), difference(network.value, x), atol=1e-7)
    for i in range(6):
        np.testing.assert_allclose(network.gradient(i, x), network.jacobian(x)[i])
        second = difference(lambda z, i=i: network.gradient(i, z), x)
        np.testing.assert_allclose(network.hessian(i, x), second, atol=1e-7)


@pytest.mark.parametrize("word", [(0, 2), (1, 3), (0, (0, 2)), ((1, 3), (3, 4)), (4, (1, (3, (1, 4))))], ids=str)
def test_brackets_equal_their_definition(word):
    """[X, Y] = (dY) X - (dX) Y, the derivatives by central differences of the two sides."""
    network = GroupedNetwork(GROUPS)
    x = point(network, 1)
    left, right = word
    X, Y = network.bracket(left, x), network.bracket(right, x)
    dX, dY = (difference(lambda z, side=side: network.bracket(side, z), x) for side in word)
    scale = np.abs(dY).max() * np.abs(X).max() + np.abs(dX).max() * np.abs(Y).max()
    np.testing.assert_allclose(network.bracket(word, x), dY @ X - dX @ Y, atol=1e-7 * scale)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6))
def test_first_bracket_and_span_identity(seed):
    """Erratum 1: [grad G_i, grad G_j] = 4 u^2 (v_i e_j - v_j e_i) = 4 (v_i grad G_j - v_j grad G_i)."""
    network = GroupedNetwork(GROUPS)
    x = point(network, seed)
    u, v, L = x[:3], x[3:], 3
    for i, j in itertools.permutations(range(6), 2):
        found = network.bracket((i, j), x)
        expected = np.zeros(9)
        if GROUPS.labels[i] == GROUPS.labels[j]:
            square = u[GROUPS.labels[i]] ** 2
            expected[L + j] += 4 * square * v[i]
            expected[L + i] -= 4 * square * v[j]
            span = 4 * (v[i] * network.gradient(j, x) - v[j] * network.gradient(i, x))
            np.testing.assert_allclose(found, span, atol=1e-12)
        np.testing.assert_allclose(found, expected, atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6))
def test_mirror_pairing_is_positive(seed):
    """Theorem not-mf: the pairing is 4u^6 + 16u^4 v_i^2 + 16u^4 v_j^2 > 0; of order two it is 4 u^4 v_i already."""
    network = GroupedNetwork(Groups.from_sizes([3]))
    x = point(network, seed)
    u, v = x[0], x[1:]
    for i, j in itertools.permutations(range(3), 2):
        third = mirror_pairing(network, x, (i, (i, j)))[j]
        np.testing.assert_allclose(third, 4 * u**6 + 16 * u**4 * (v[i] ** 2 + v[j] ** 2))
        assert third > 0
        np.testing.assert_allclose(mirror_pairing(network, x, (i, j))[j], 4 * u**4 * v[i], atol=1e-9)


@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_every_bracket_stays_in_the_span_and_on_the_leaf(order):
    """The gradients are involutive: brackets of any order lie in their span, and none moves the balance."""
    network = GroupedNetwork(Groups.from_sizes([2, 1]))
    x = point(network, 2)
    u, v = x[:2], x[2:]
    conserved = np.array([[u[0], 0, -2 * v[0], -2 * v[1], 0], [0, u[1], 0, 0, -2 * v[2]]])
    np.testing.assert_allclose(difference(lambda z: balance(z[:2], z[2:], network.groups), x), conserved, atol=1e-7)
    for word in words([0, 1, 2], order):
        assert span_residual(network, x, word) < 1e-10
        b = network.bracket(word, x)
        np.testing.assert_allclose(conserved @ b, 0, atol=1e-10 * max(1.0, np.abs(b).max()))


def test_span_residual_sees_what_is_outside():
    """A network whose brackets leave the span: depth does not matter, sharing a direction does."""

    class Skew(DiagonalNetwork):
        def coordinate(self, i):
            from covey.paper.theory.geometry import Polynomial

            return Polynomial({(0,): 1} if i == 0 else {(1,): 1, (0, 2): 1})

    network = Skew(2)
    x = np.array([0.3, 1.0, 2.0, 0.5])
    assert span_residual(network, x, (0, 1)) > 0.1


@pytest.mark.parametrize("order", [2, 3, 4])
@pytest.mark.parametrize("depth", [2, 3])
def test_the_diagonal_network_commutes(order, depth):
    network = DiagonalNetwork(3, depth)
    x = np.random.default_rng(0).uniform(0.5, 2, 6)
    for word in words([0, 1, 2], order):
        np.testing.assert_array_equal(network.bracket(word, x), 0)
    np.testing.assert_allclose(network.value(x), x[:3] ** depth - x[3:] ** depth)
    np.testing.assert_allclose(network.jacobian(x), difference(network.value, x), atol=1e-6)


def test_different_groups_commute_but_one_group_does_not():
    """Lemma non-commuting, decided on the polynomials: sharing a magnitude is what breaks commutation."""
    assert commutes(DiagonalNetwork(4))
    assert commutes(DiagonalNetwork(2, depth=5))
    assert commutes(GroupedNetwork(Groups.from_size(1, 5)))
    assert not commutes(GroupedNetwork(Groups.from_sizes([1, 1, 2])))
    assert not commutes(GroupedNetwork(Groups.from_sizes([2]), depth=3))
    assert not np.any(lie_bracket((0, 1), [1.0, 2.0], [3.0, 4.0], groups=1))
    assert np.any(lie_bracket((0, 1), [1.0], [3.0, 4.0]))
    # equal directions do not help: the bracket vanishes only where v_i = v_j = 0 or u = 0
    assert np.any(lie_bracket((0, 1), [1.0], [3.0, 3.0]))


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("word", [(0, 2), (0, (0, 2)), (2, (0, (0, 2))), ((0, 2), (0, (0, 2)))], ids=str)
def test_numbers_equal_symbols(word, depth):
    symbolic, network = SymbolicNetwork(GROUPS, depth), GroupedNetwork(GROUPS, depth)
    x = point(network, 4)
    at = dict(zip(symbolic.parameters, x, strict=True))
    expected = np.array(symbolic.bracket(word).subs(at).tolist(), dtype=float).ravel()
    np.testing.assert_allclose(network.bracket(word, x), expected, rtol=1e-10, atol=1e-10)


def test_identities_of_the_appendix():
    """Which displayed formulas are as the definitions give them, derived with sympy from nothing but w = u^2 v."""
    found = {identity.name: identity for identity in identities()}
    as_printed = {"gradient", "Hessian", "Hessian times gradient"}
    assert {name for name, identity in found.items() if identity.holds} == as_printed
    # all but one are off by a sign; the span identity also lacks a factor 4
    for name in set(found) - as_printed:
        factor = 4 if name == "span identity" else 1
        assert Identity(name, -factor * found[name].printed, found[name].derived).holds
        assert "erratum" in str(found[name])
    assert "as printed" in str(found["Hessian"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lie_bracket((0, 5), [1.0], [1.0, 2.0]), "5 is not a column"),
        (lambda: lie_bracket((0, 1, 1), [1.0], [1.0, 2.0]), "two sides"),
        (lambda: lie_bracket((0, True), [1.0], [1.0, 2.0]), "not a column"),
        (lambda: lie_bracket((0, 1), [1.0, 2.0], [1.0, 2.0]), "u must have shape"),
        (lambda: lie_bracket((0, 1), [1.0], [[1.0, 2.0]]), "v must have 1 dimension"),
        (lambda: lie_bracket((0, 1), [1.0], [1.0, 2.0], depth=0), "depth"),
        (lambda: lie_bracket((0, 1), [1.0], [1.0, 2.0], depth=10**30), "depth must be at most"),
        (lambda: GroupedNetwork(GROUPS).value([1.0]), "Parameters must have shape"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
