"""Torch tensors: what the contract of all designs does not cover, on the CPU and, where there is one, on a GPU."""

import gc
import weakref

import numpy as np
import pytest

from covey import Groups, GroupSparseRegressor, limit_path
from covey.designs import as_design
from covey.preprocess.factoring import factors_from_blocks, pivoted_cholesky

torch = pytest.importorskip("torch")

from covey.designs import torch as torch_design  # noqa: E402
from loss_cases import CASES  # noqa: E402

SCATTERED = Groups.from_labels(np.random.default_rng(5).permutation(np.repeat(np.arange(20), 3)).tolist())
UNEQUAL = Groups.from_sizes([1, 4, 2, 7, 3, 4, 1, 8, 66, 4])


def data(p=100, n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 2, p) + rng.uniform(-3, 3, p)
    return X, X[:, :4].sum(axis=1) - X[:, 20:24].sum(axis=1) + 0.3 * rng.standard_normal(n)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_tensor_is_not_touched(dtype):
    X, y = data()
    X = X.astype(dtype)
    tensor = torch.from_numpy(X.copy())
    for options in ({}, {"fit_intercept": False}, {"standardize": "column"}, {"standardize": False}):
        limit_path(tensor, y, 4, max_groups=4, sample_weight=np.arange(60.0), **options)
        assert (tensor.numpy() == X).all()


def test_the_tensor_goes_with_its_last_user():
    X, y = data()
    tensor = torch.from_numpy(X)
    reference = weakref.ref(tensor)
    gc.collect()
    gc.disable()
    try:
        model = GroupSparseRegressor(4, random_state=0).fit(tensor, y)
        del tensor
        assert reference() is None
    finally:
        gc.enable()
    assert model.path_.entered


def test_strides_and_small_tiles(monkeypatch):
    X, y = data()
    expected = limit_path(X, y, UNEQUAL, max_groups=4).coefs
    monkeypatch.setitem(torch_design.TILE_BYTES, "cpu", 8 * 60 * 9)
    wide = torch.zeros((120, 200), dtype=torch.float64)
    wide[::2, ::2] = torch.from_numpy(X)
    for tensor in (torch.from_numpy(np.asfortranarray(X)), wide[::2, ::2]):
        assert abs(limit_path(tensor, y, UNEQUAL, max_groups=4).coefs - expected).max() < 1e-9


def test_responses_and_weights_may_be_tensors_too():
    X, y = data()
    given = X, y, np.random.default_rng(0).uniform(0, 2, 60)
    expected, model = (
        GroupSparseRegressor(4, random_state=0).fit(*map(as_given, given))
        for as_given in (np.asarray, torch.from_numpy)
    )
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-9)


@pytest.mark.parametrize("groups", [Groups.from_size(5, 60), SCATTERED, Groups.from_sizes([3, 40, 2, 15])])
def test_factors_are_those_of_the_host(groups):
    X, y = data(60)
    members = groups.lists()
    X[:, members[1][2]] = X[:, members[1][0]] - 2 * X[:, members[1][1]]
    X[:, members[2][0]] = 3.0
    design = as_design(torch.from_numpy(X))
    moments = design.moments(y, np.full(60, 1 / 60), groups.members, groups.starts, centre=True, scale=np.ones(60))
    root = np.sqrt(moments.variance)
    arguments = moments, groups.starts, np.ones(60), root, root > 1e-12
    for found, expected in zip(
        factors_from_blocks(design, *arguments), factors_from_blocks(as_design(X), *arguments), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize("put", [np.asarray, torch.as_tensor])
def test_factors_of_many_correlation_matrices(put):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((42, 30, 5))
    Z[0, :, 3] = Z[0, :, 1]
    Z[9, :, 4] = Z[9, :, 0] + 1e-5 * Z[9, :, 4]
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    A = np.swapaxes(Z, 1, 2) @ Z
    before = A.copy()
    T, ranks, certain = (np.asarray(part) for part in pivoted_cholesky(put(A), put))
    np.testing.assert_array_equal(A, before)
    assert ranks.tolist() == [4] + 41 * [5]
    assert np.flatnonzero(~certain).tolist() == [9]
    identity = np.tile(np.eye(5), (42, 1, 1))
    identity[0, 4, 4] = 0
    found = np.swapaxes(T, 1, 2) @ A @ T
    np.testing.assert_allclose(found[certain], identity[certain], atol=1e-9)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.loss.takes_tensors])
@pytest.mark.parametrize("function", ["value", "residual", "curvature", "deviance"])
def test_a_loss_that_takes_tensors_agrees_with_itself(name, function):
    case = CASES[name]
    for scale in (1.0, 300.0):
        eta = case.predictor(scale=scale)
        found = getattr(case.loss, function)(torch.from_numpy(case.y), torch.from_numpy(eta))
        np.testing.assert_allclose(found.numpy(), getattr(case.loss, function)(case.y, eta), rtol=1e-12, atol=1e-300)


BAD = {
    "dtype torch.int64.*X.float": lambda X: X.long(),
    "dtype torch.float16.*X.float": lambda X: X.half(),
    "requires grad.*X.detach": lambda X: X.clone().requires_grad_(),
    "sparse torch tensor.*X.to_dense": lambda X: X.to_sparse(),
    "two dimensions": lambda X: X[0],
    "is empty": lambda X: X[:0],
    "device 'meta'.*X.cpu": lambda X: X.to("meta"),
}


@pytest.mark.parametrize("match", BAD)
def test_a_tensor_that_cannot_be_read_is_told_why(match):
    with pytest.raises(ValueError, match=match):
        limit_path(BAD[match](torch.ones((5, 4))), np.ones(5), 2)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_cuda_tensor_without_cuda():
    fake = pytest.importorskip("torch._subclasses.fake_tensor")
    with fake.FakeTensorMode():
        X = torch.empty((5, 4), device="cuda")
    with pytest.raises(ValueError, match=r"device 'cuda:0', but this torch finds no CUDA device: .*map_location='cpu'"):
        limit_path(X, np.ones(5), 2)
