"""The measures against values that are known."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'covey[torch]'")

from covey.paper.nn import build, interpolate, measure  # noqa: E402
from covey.paper.nn.classifier import train_classifier  # noqa: E402
from covey.paper.nn.images import as_images  # noqa: E402
from covey.paper.nn.latent import (  # noqa: E402
    components,
    decode_all,
    distance_to_nearest,
    effective_rank,
    encode_all,
    frechet_distance,
    gaussian_samples,
    midpoint_ratio,
    probe_accuracy,
    random_pairs,
    spectrum,
)
from covey.paper.nn.study import Judge, grid, measure_folder, run_study  # noqa: E402
from covey.paper.results import grids, read, values, write  # noqa: E402


@pytest.fixture(scope="module")
def judge(digits):
    classifier = train_classifier(digits.train_images, digits.train_labels, epochs=8, batch_size=16, device="cpu")
    return Judge.of(digits, device="cpu", pairs=20, classifier=classifier)


def rotated(rows, scales, seed=0):
    """Rows of exactly this covariance spectrum, turned at random."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, len(scales), generator=generator, dtype=torch.float64)
    x = torch.linalg.qr(x - x.mean(0))[0] * np.sqrt(rows - 1)
    turn = torch.linalg.qr(torch.randn(len(scales), len(scales), generator=generator, dtype=torch.float64))[0]
    return (x * torch.tensor(scales, dtype=torch.float64).sqrt()) @ turn


def test_the_spectrum_is_that_of_the_covariance():
    values = spectrum(rotated(200, [4.0, 1.0, 0.25, 0.0]) + 7)
    torch.testing.assert_close(values, torch.tensor([4.0, 1.0, 0.25, 0.0], dtype=torch.float64), atol=1e-12, rtol=0)


@pytest.mark.parametrize("k", [1, 3, 8])
def test_effective_rank_of_equal_directions_is_their_number(k):
    values = torch.cat([torch.full((k,), 0.3), torch.zeros(5)])
    assert effective_rank(values) == pytest.approx(k)
    assert effective_rank(1e6 * values) == pytest.approx(k)
    assert components(values) == k
    assert [components(torch.tensor([0.9, 0.08, 0.015, 0.005]), s) for s in (0.5, 0.95, 0.99, 0.999)] == [1, 2, 3, 4]
    assert effective_rank(torch.zeros(4)) == 0


def test_frechet_distance_of_gaussians_is_its_formula():
    a, b = rotated(300, [1.0, 4.0], seed=1), rotated(300, [1.0, 4.0], seed=1)
    assert frechet_distance(a, b) == pytest.approx(0, abs=1e-9)
    assert frechet_distance(a, b + torch.tensor([3.0, 4.0])) == pytest.approx(25)
    # the same axes: sum of (difference of standard deviations)^2
    assert frechet_distance(a, 3 * a - 3 * a.mean(0)) == pytest.approx((3 - 1) ** 2 * (1 + 4))


def test_gaussian_samples_have_the_moments_of_the_codes():
    codes = rotated(500, [4.0, 1.0, 0.0]) + torch.tensor([1.0, 2.0, 3.0])
    drawn = gaussian_samples(codes, 40_000)
    torch.testing.assert_close(drawn.mean(0), codes.mean(0), atol=0.05, rtol=0)
    torch.testing.assert_close(torch.cov(drawn.T), torch.cov(codes.T), atol=0.1, rtol=0)
    assert torch.equal(drawn, gaussian_samples(codes, 40_000))


def test_a_probe_finds_separated_classes_and_none_where_there_are_none():
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(400) % 4
    noise = torch.randn(400, 6, generator=generator)
    apart = noise + 20 * torch.nn.functional.one_hot(labels, 6)
    assert probe_accuracy(apart, labels, apart, labels) == 1.0
    assert probe_accuracy(noise, labels, torch.randn(400, 6, generator=generator), labels) < 0.4
    # one number scales all codes, so their unit does not matter
    assert probe_accuracy(1e3 * apart, labels, 1e3 * apart, labels) == 1.0


def test_midpoint_ratio_of_a_path_that_stays_on_the_data_is_one(digits):
    images = as_images(digits.train_images)
    shifted = (images[:10].float() / 255 + 0.01).squeeze(1)
    other = (images[10:20].float() / 255 + 0.01).squeeze(1)
    assert midpoint_ratio(torch.stack([shifted, other, shifted], 1), images) == pytest.approx(1, rel=0.01)
    blend = torch.stack([shifted, (shifted + other) / 2, other], 1)
    assert midpoint_ratio(blend, images) > 2, "a blend of two digits is no digit"


def test_interpolation_is_the_decoded_line(digits, tiny):
    model = build("GAE4", **tiny)
    a, b = digits.test_images[:3], digits.test_images[3:6]
    path = interpolate(model, a, b, steps=5)
    assert path.shape == (3, 5, 28, 28)
    assert model.training, "left as it was"
    model.eval()
    za, zb = (encode_all(model, as_images(x)) for x in (a, b))
    torch.testing.assert_close(path[:, 0], decode_all(model, za).squeeze(1))
    torch.testing.assert_close(path[:, 4], decode_all(model, zb).squeeze(1))
    torch.testing.assert_close(path[:, 1], decode_all(model, 0.75 * za + 0.25 * zb).squeeze(1), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(interpolate(model, b, a, steps=5).flip(1), path, atol=1e-5, rtol=1e-4)
    with pytest.raises(ValueError, match="the same number of images at both ends, not 3 and 2"):
        interpolate(model, a, b[:2])
    with pytest.raises(ValueError, match="steps"):
        interpolate(model, a, b, steps=1)


def test_the_classifier_learns_the_drawn_digits(judge, digits):
    assert judge.classifier.accuracy(judge.test, judge.test_labels) > 0.8
    confidence = judge.classifier.confidence(judge.test)
    assert ((confidence > 0.1) & (confidence <= 1)).all()
    again = train_classifier(digits.train_images, digits.train_labels, epochs=8, batch_size=16, device="cpu")
    assert torch.equal(again.head.weight, judge.classifier.head.weight)
    with pytest.raises(ValueError, match="60 images but 120 labels"):
        train_classifier(digits.test_images, digits.train_labels)


def test_a_study_can_be_written_read_and_measured_again_from_its_checkpoints(digits, tiny, judge, tmp_path):
    found = run_study(
        digits, models=["AE", "GAE4"], seeds=(0, 1), epochs=2, device="cpu", judge=judge, options=tiny,
        folder=tmp_path / "runs", progress=False,
    )  # fmt: skip
    keys = ["model", "seed", "quantity", "index"]
    assert set(found.groupby(["model", "seed"]).groups) == {(m, s) for m in ("AE", "GAE4") for s in (0, 1)}
    files = write(found, tmp_path / "results")
    assert sum(file.stat().st_size for file in files) < 200_000
    saved = read(tmp_path / "results").set_index(keys).reindex(found.set_index(keys).index)
    spectra = (found["quantity"] == "singular_value").to_numpy()
    np.testing.assert_allclose(saved["value"][~spectra], found["value"][~spectra], rtol=1e-7)
    np.testing.assert_allclose(saved["value"][spectra], found["value"][spectra], rtol=1e-4)
    assert saved["data"].tolist() == found["data"].tolist()
    assert grids(found, "AE").shape == (6, 9, 28, 28)
    again = measure_folder(tmp_path / "runs", judge)
    np.testing.assert_array_equal(grids(again, "AE"), grids(found, "AE"))
    taken = found[~found["quantity"].isin(["training_seconds", "seconds"])].set_index(keys)["value"].sort_index()
    np.testing.assert_allclose(again.set_index(keys)["value"].sort_index()[taken.index], taken, rtol=1e-6, atol=1e-12)
    assert len(values(found, "AE", "midpoint_ratio")) == 2
    with pytest.raises(FileNotFoundError, match="no results of a study"):
        read(tmp_path)
    with pytest.raises(FileNotFoundError, match="no checkpoints"):
        measure_folder(tmp_path / "results", judge)


def test_measures_do_not_depend_on_when_they_are_taken(digits, tiny, judge):
    model = build("VAE", **tiny)
    one, values = measure(model, judge)
    torch.randn(5)
    two, _ = measure(model.train(), judge)
    assert one == two
    assert len(values) == 16
    assert grid(model, judge.test, judge.test_labels, rows=2).shape == (2, 9, 28, 28)


def test_blending_pixels_against_brute_force(judge):
    first, second = random_pairs(len(judge.test), judge.pairs)
    assert (first != second).all()
    assert torch.equal(first, random_pairs(len(judge.test), judge.pairs)[0])
    x, y = (images.double().flatten(1).numpy() / 255 for images in (judge.test, judge.train))

    def nearest(rows):
        return np.sqrt(((rows[:, None] - y[None]) ** 2).sum(-1)).min(1)

    np.testing.assert_allclose(distance_to_nearest(judge.test.float() / 255, judge.train), nearest(x), atol=1e-3)
    middle, ends = nearest((x[first] + x[second]) / 2), nearest(np.concatenate([x[first], x[second]]))
    assert judge.blend_ratio() == pytest.approx(middle.mean() / ends.mean(), rel=1e-4)
