"""Training: the same weights whether interrupted or not, honest logs, clear refusals."""

import csv
import signal
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'covey[torch]'")

from covey.paper.nn import build, load_model, train  # noqa: E402
from covey.paper.nn.training import CheckpointError, read_checkpoint  # noqa: E402


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def run(digits, tiny, name="GAE4", **options):
    options = {"epochs": 4, "batch_size": 32, "device": "cpu", **options}
    return train(build(name, seed=3, **tiny), digits.train_images, **options)


@pytest.mark.parametrize("name", ["GAE4", "VAE"])
def test_an_interrupted_run_ends_with_the_same_weights(digits, tiny, tmp_path, name):
    at_once = run(digits, tiny, name, folder=tmp_path / "at once")
    run(digits, tiny, name, folder=tmp_path / "parts", epochs=2)
    torch.randn(3)  # nothing may depend on torch's random numbers
    resumed = run(digits, tiny, name, folder=tmp_path / "parts")
    assert same(at_once.model, resumed.model)
    losses = [row["loss"] for row in at_once.history]
    assert losses == [row["loss"] for row in resumed.history]
    assert losses[-1] < losses[0]
    assert same(load_model(tmp_path / "parts" / "checkpoint.pt"), at_once.model)


KILLED = """
import sys, torch
torch.set_num_threads(1)
from covey.paper.datasets import make_digits
from covey.paper.nn import build, train
train(build("GAE4", seed=3, latent=16, width=4), make_digits(120, 60, seed=1).train_images, epochs=4000, batch_size=32,
      device="cpu", folder=sys.argv[1])
"""


def test_a_killed_run_goes_on(digits, tiny, tmp_path):
    file = tmp_path / "checkpoint.pt"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)])
    deadline = time.monotonic() + 100
    while not file.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = read_checkpoint(file)["epoch"]
    resumed = run(digits, tiny, epochs=done + 2, folder=tmp_path)
    assert same(resumed.model, run(digits, tiny, epochs=done + 2).model)


def test_the_early_stop_keeps_the_best_weights(digits, tiny, tmp_path):
    # validation images that are noise: learning digits soon makes them worse
    noise = torch.rand(20, 28, 28, generator=torch.Generator().manual_seed(0))
    options = {"validation": noise, "patience": 2, "epochs": 60, "learning_rate": 3e-3, "folder": tmp_path}
    result = run(digits, tiny, "AE", **options)
    values = [row["validation_loss"] for row in result.history]
    assert result.status == "stopped early"
    assert result.best_epoch == values.index(min(values)) + 1 == len(values) - 2
    at_best = run(digits, tiny, "AE", epochs=result.best_epoch, learning_rate=3e-3)
    assert same(result.model, at_best.model)
    assert same(load_model(tmp_path / "checkpoint.pt"), at_best.model)
    assert not same(load_model(tmp_path / "checkpoint.pt", best=False), at_best.model)
    again = run(digits, tiny, "AE", **options)
    assert again.history == result.history, "a stopped run stays stopped"
    with (tmp_path / "log.csv").open() as stream:
        assert [float(row["validation_loss"]) for row in csv.DictReader(stream)] == values
    assert sorted(file.name for file in tmp_path.iterdir()) == ["checkpoint.pt", "log.csv"], "nothing left behind"


def test_mixed_precision_trains_and_a_diverging_run_says_so(digits, tiny):
    assert run(digits, tiny, "VAE", learning_rate=1e20, epochs=5).status == "diverged"
    exact, mixed = (run(digits, tiny, amp=amp, epochs=2).history[-1]["loss"] for amp in (False, True))
    assert mixed == pytest.approx(exact, rel=0.02)
    assert mixed != exact


def test_checkpoints_of_others_are_refused(digits, tiny, tmp_path):
    run(digits, tiny, folder=tmp_path, epochs=1)
    with pytest.raises(CheckpointError, match=r"another model: .*model 'GAE' there, 'IRMAE' here"):
        run(digits, tiny, "IRMAE", folder=tmp_path)
    with pytest.raises(CheckpointError, match="another run: batch_size 32 there, 16 here"):
        run(digits, tiny, folder=tmp_path, batch_size=16)
    with pytest.raises(CheckpointError, match="another run: images"):
        train(build("GAE4", **tiny), digits.test_images, batch_size=32, device="cpu", folder=tmp_path)
    assert len(run(digits, tiny, "IRMAE", folder=tmp_path, resume=False, epochs=1).history) == 1


def test_damaged_checkpoints(digits, tiny, tmp_path):
    file = tmp_path / "checkpoint.pt"
    with pytest.raises(FileNotFoundError, match="no checkpoint"):
        load_model(file)
    for content in (b"", b"not a checkpoint"):
        file.write_bytes(content)
        with pytest.raises(CheckpointError, match="not a checkpoint, or it is damaged"):
            load_model(file)
    torch.save({"weights": torch.zeros(2)}, file)
    with pytest.raises(CheckpointError, match="not a checkpoint of covey"):
        load_model(file)
    torch.save(build("AE", latent=16, width=4), file)  # a pickled object: it is not run
    with pytest.raises(CheckpointError, match="not a checkpoint, or it is damaged"):
        load_model(file)
    run(digits, tiny, folder=tmp_path, epochs=1, resume=False)
    file.write_bytes(file.read_bytes()[:-5000])
    with pytest.raises(CheckpointError, match="damaged"):
        run(digits, tiny, folder=tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patience": 2}, "patience needs validation images"),
        ({"epochs": 0}, "epochs"),
        ({"batch_size": 2.5}, "batch_size"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_input(digits, tiny, options, message):
    with pytest.raises(ValueError, match=message):
        run(digits, tiny, **options)


def test_progress_shows_the_loss_and_how_much_is_done(digits, tiny, capsys, monkeypatch):
    monkeypatch.setattr("covey.progress.PATIENCE", 0.0)
    loss = run(digits, tiny, epochs=2, progress=True).history[0]["loss"]
    shown = capsys.readouterr().out
    assert "[covey] training GAE4: first epoch, batch 4 of 8 (50%)" in shown
    assert f"loss {loss:.5f}, batch 8 of 8 (100%)" in shown
    run(digits, tiny, epochs=2)
    assert capsys.readouterr().out == "", "no terminal, no line"
