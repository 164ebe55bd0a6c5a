"""Everything here needs torch, and nothing here needs a network."""

from importlib.util import find_spec

import pytest

TORCH = find_spec("torch") is not None

if TORCH:
    import torch

    torch.set_num_threads(1)  # tiny networks: threads cost more than they bring, and results must not depend on them


@pytest.fixture(scope="session")
def digits():
    from covey.paper.datasets import make_digits

    return make_digits(120, 60, seed=1)


@pytest.fixture
def tiny():
    """Arguments of a model that trains in no time."""
    return {"latent": 16, "width": 4}
