"""coherence against a brute-force twin, over shapes, layouts, scales and degenerate designs."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from covey import Groups
from covey.designs import as_design
from covey.paper.theory import coherence, coherence_matrix
from covey.paper.theory.blocks import column_norms
from storage_kinds import KINDS


def brute_force(X, groups):
    """The definition, pair by pair: deviations on the diagonal, cross norms off it."""
    n, parts = X.shape[0], [X[:, members] for members in groups.lists()]
    out = np.empty((len(parts), len(parts)))
    for l, A in enumerate(parts):
        for m, B in enumerate(parts):
            gram = A.T @ B / n - (np.eye(A.shape[1]) if l == m else 0)
            out[l, m] = np.linalg.svd(gram, compute_uv=False)[0]
    return out


def check(X, groups, **options):
    dense = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
    expected, found = brute_force(dense, groups), coherence(X, groups, **options)
    off = expected - np.diag(np.diag(expected))
    tight = {"rtol": 1e-12, "atol": 1e-14 * max(1.0, expected.max())}
    np.testing.assert_allclose(found.inner, np.diag(expected), **tight)
    np.testing.assert_allclose(found.outer, off.max(axis=1), **tight)
    np.testing.assert_allclose(found.delta_in, np.diag(expected).max(), **tight)
    np.testing.assert_allclose(found.delta_out, off.max(), **tight)
    np.testing.assert_allclose(off[np.arange(len(off)), found.partner], found.outer, **tight)
    l, m = (groups.names.index(name) for name in found.worst_pair)
    assert l < m
    np.testing.assert_allclose(off[l, m], off.max(), **tight)
    np.testing.assert_allclose(coherence_matrix(X, groups, **options), expected, **tight)
    return found


def design(kind, rng, n, p):
    if kind == "gaussian":
        return rng.standard_normal((n, p))
    if kind == "rademacher":
        return rng.choice([-1.0, 1.0], size=(n, p))
    if kind == "heavy":  # a few huge entries: pairs nearly of rank one, spectral = Frobenius
        return rng.standard_normal((n, p)) * np.exp(3 * rng.standard_normal((n, 1)))
    if kind == "repeated":  # many ties
        return rng.standard_normal((n, 3))[:, rng.integers(0, 3, size=p)]
    return 0.3 * rng.standard_normal((n, 1)) + rng.standard_normal((n, p)) * np.exp(rng.standard_normal(p))


@pytest.mark.parametrize("kind", ["gaussian", "rademacher", "heavy", "repeated", "factor"])
@pytest.mark.parametrize("sizes", [[5] * 30, [1] * 40, [1, 7, 17, 2, 18, 33, 3, 20, 16], [40, 2]], ids=str)
@pytest.mark.parametrize("block_columns", [1, 12, 1024])
@pytest.mark.parametrize("n", [1, 25])
def test_equals_brute_force(kind, sizes, block_columns, n):
    """Columns of a group are next to each other, or anywhere."""
    rng = np.random.default_rng([len(sizes), block_columns])
    labels = np.repeat(np.arange(len(sizes)), sizes)
    for groups in (Groups.from_sizes(sizes), Groups.from_labels(rng.permutation(labels).tolist())):
        check(design(kind, rng, n, groups.n_columns), groups, block_columns=block_columns)


def test_sparse_float32_integers_and_frames_agree_with_dense():
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, size=(30, 24)) * (rng.random((30, 24)) < 0.3)
    groups = Groups.from_size(4, 24)
    dense = check(X, groups)
    for other in (sp.csr_matrix(X), sp.coo_array(X), X.astype(np.float32), pd.DataFrame(X)):
        again = coherence(other, groups, block_columns=9)
        assert again.delta_in == pytest.approx(dense.delta_in, rel=1e-12)
        assert again.delta_out == pytest.approx(dense.delta_out, rel=1e-12)
    check(sp.csc_array(X), groups, block_columns=7)


@pytest.mark.parametrize("sizes", [[4] * 5, [70, 3, 1, 20]], ids=["small", "one large group"])
@pytest.mark.parametrize("kind", ["Dask", "memmap", "without columns"])
def test_where_columns_stay_where_they_are(kind, sizes, tmp_path):
    rng = np.random.default_rng(2)
    labels = rng.permutation(np.repeat(np.arange(len(sizes)), sizes)).tolist()
    X, groups = rng.standard_normal((40, len(labels))), Groups.from_labels(labels)
    exact, found = coherence(X, groups), coherence(as_design(KINDS[kind](X, tmp_path)), groups)
    np.testing.assert_allclose(found.inner, exact.inner, rtol=1e-10)
    np.testing.assert_allclose(found.outer, exact.outer, rtol=1e-10)


def test_names_are_the_users():
    X = np.eye(4) * 2
    X[0, 3] = 0.5
    found = coherence(pd.DataFrame(X, columns=list("abcd")), {"left": ["a", "c"], "right": ["b", "d"]})
    assert found.worst_pair == ("left", "right")
    assert found.worst_group == "right"
    assert found.worst_pairs() == [("left", "right", pytest.approx(0.25))]
    assert found.to_frame()["partner"].tolist() == ["right", "left"]
    assert "'left' and 'right'" in str(found)


@pytest.mark.parametrize("exponent", [-150, -30, 0, 30, 150])
def test_scales(exponent):
    X = np.random.default_rng(1).standard_normal((20, 12))
    one, scaled = coherence(X, 3), coherence(X * 10.0**exponent, 3)
    assert scaled.delta_out == pytest.approx(one.delta_out * 10.0 ** (2 * exponent), rel=1e-9)
    if exponent < -20:
        assert scaled.delta_in == 1.0
    assert coherence(np.full((4, 4), 1e200), 2).delta_out == np.inf  # without a warning


def test_degenerate_designs():
    rng = np.random.default_rng(2)
    # more columns than rows: the Gram is singular
    assert coherence(rng.standard_normal((3, 10)), 5).delta_in >= 1 - 1e-12
    # a column of zeros
    X = np.sqrt(6) * np.eye(6)
    X[:, 2] = 0
    assert coherence(X, 3).delta_in == 1
    # an orthogonal design: both are zero, and partners are still other groups
    Q = np.sqrt(8) * np.linalg.qr(rng.standard_normal((8, 6)))[0]
    found = coherence(Q, 2)
    assert found.delta_in < 1e-14
    assert found.delta_out < 1e-14
    assert all(found.partner != np.arange(3))
    exact = coherence(np.eye(4) * 2, 2)
    assert (exact.delta_in, exact.delta_out, exact.worst_pair) == (0, 0, (0, 1))
    # a constant column counts as it is: x'x/n = c^2
    assert coherence(np.full((5, 1), 3.0)).delta_in == pytest.approx(8.0)
    # a single row, and a single group
    assert coherence(np.array([[2.0, 3.0]])).delta_out == pytest.approx(6.0)
    single = coherence(rng.standard_normal((5, 3)), 3)
    assert (single.delta_out, single.worst_pair, single.worst_pairs()) == (0.0, None, [])
    assert "single group" in str(single)


@pytest.mark.parametrize(
    ("X", "groups", "message"),
    [
        ([[1.0, np.nan]], None, r"missing or infinite values in column 1; impute or drop"),
        (sp.csr_array([[1.0, np.nan]]), None, "in column 1; impute or drop"),
        (pd.DataFrame({"a": [1.0], "b": [np.nan]}), None, "in column 'b'; impute or drop"),
        (np.ones(3), None, "two dimensions"),
        (np.empty((0, 2)), None, "X is empty"),
        ([["a", "b"]], None, "must hold numbers"),
        (np.ones((2, 2)) * 1j, None, "[Cc]omplex"),
        (np.ones((3, 5)), 2, "do not divide"),
        (np.ones((3, 4)), Groups.from_size(2, 6), "6 columns, but X has 4"),
    ],
)
def test_bad_input(X, groups, message):
    with pytest.raises(ValueError, match=message):
        coherence(X, groups)


@pytest.mark.parametrize("kind", [np.asarray, sp.csc_array], ids=["array", "sparse"])
def test_column_norms_at_any_scale(kind):
    """norm(x_j)/sqrt(n), where squares would overflow or vanish too, and zero for a column of zeros."""
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((30, 6)), 2)
    wanted = np.array([np.linalg.norm(column) for column in X.T]) / np.sqrt(30)
    units = np.array([1e-160, 1e-3, 1.0, 7.0, 1e150, 0.0])
    np.testing.assert_allclose(column_norms(as_design(kind(X * units))), wanted * units, rtol=1e-12)
