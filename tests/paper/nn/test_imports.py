"""What the torch room needs, and what it says when that is not there."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

BLOCK = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
BLOCKED = %r
sys.meta_path.insert(0, Blocked())
if "torch" in BLOCKED:  # as if it were not installed
    import importlib.util
    found = importlib.util.find_spec
    importlib.util.find_spec = lambda name, *a: None if name == "torch" else found(name, *a)
"""


def python(code, blocked=()):
    return subprocess.run([sys.executable, "-c", BLOCK % list(blocked) + code], capture_output=True, text=True)


@pytest.mark.parametrize(
    ("code", "exit_status", "last"),
    [
        ("import covey\nfrom covey.paper.datasets import make_digits\nimport covey.paper.nn", 1, "MissingExtraError"),
        (
            "from covey.paper.cli.autoencoder import autoencoder\n"
            "sys.argv = ['covey', 'train', 'AE', '--synthetic']\nautoencoder()",
            2,
            "error",
        ),
    ],
    ids=["the room", "the command"],
)
def test_without_torch_it_is_said_what_to_install(code, exit_status, last):
    out = python(code, ["torch"])
    message = "covey.paper.nn needs torch, which is not installed: pip install 'covey[torch]'"
    assert out.returncode == exit_status
    assert out.stderr.strip().splitlines()[-1].endswith(f"{last}: {message}")
    assert last == "MissingExtraError" or out.stderr.strip() == f"{last}: {message}"


def test_the_experiments_and_the_command_are_listed_without_importing_torch():
    modules = ", ".join(
        f"covey.paper.{name}" for name in ("cli.autoencoder", "experiments.fig10", "experiments.table2")
    )
    code = f"import {modules}\nprint('torch' in sys.modules)"
    out = python(code)
    assert out.stdout.strip() == "False", out.stderr


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: pip install 'covey[torch]'")
def test_the_room_needs_torch_and_numpy_only():
    blocked = ["numba", "sklearn", "matplotlib", "pandas", "joblib", "typer", "rich", "pooch"]
    out = python("import covey.paper.nn\nprint(covey.paper.nn.GAE(groups=8).latent_parameter_count())", blocked)
    assert out.stdout.strip() == "98304", out.stderr
