"""Ten tables as people have them: items with some rows each, of one number. From installed packages where these have
them; four of a few dozen numbers are typed, as statistics books print them.
"""

from __future__ import annotations

import numpy as np

from coterie.problem.checks import FloatArray

Items = dict[str, FloatArray]

_INSECT_SPRAYS = {  # insects on plots after spraying; Beall, Biometrika 32 (1942)
    "A": "10 7 20 14 14 12 10 23 17 20 14 13", "B": "11 17 21 11 16 14 17 17 19 21 7 13",
    "C": "0 1 7 2 3 1 2 1 3 0 1 4", "D": "3 5 12 6 4 3 5 5 5 5 2 4",
    "E": "3 5 3 5 3 6 1 1 3 2 6 4", "F": "11 9 15 22 15 16 13 10 26 26 24 13",
}  # fmt: skip
_PLANT_GROWTH = {  # dried weights; Dobson, An Introduction to Statistical Modelling (1983)
    "control": "4.17 5.58 5.18 6.11 4.50 4.61 5.17 4.53 5.33 5.14",
    "first": "4.81 4.17 4.41 3.59 5.87 3.83 6.03 4.89 4.32 4.69",
    "second": "6.31 5.12 5.54 5.50 5.37 5.29 4.92 6.15 5.80 5.26",
}
_CHICKS = {  # weights by feed; Anonymous, Biometrika 35 (1948)
    "horsebean": "179 160 136 227 217 168 108 124 143 140",
    "linseed": "309 229 181 141 260 203 148 169 213 257 244 271",
    "soybean": "243 230 248 327 329 250 193 271 316 267 199 171 158 248",
    "sunflower": "423 340 392 339 341 226 320 295 334 322 297 318",
    "meatmeal": "325 257 303 315 380 153 263 242 206 344 258",
    "casein": "368 390 379 260 404 318 352 359 216 222 283 332",
}
_WARP_BREAKS = {  # breaks by wool and tension; Tukey, Exploratory Data Analysis (1977)
    "A low": "26 30 54 25 70 52 51 26 67", "A medium": "18 21 29 17 12 18 35 30 36",
    "A high": "36 21 24 18 10 43 28 15 26", "B low": "27 14 29 19 29 31 41 20 44",
    "B medium": "42 26 19 16 39 28 21 39 29", "B high": "20 21 24 17 13 15 15 16 28",
}  # fmt: skip


def tables() -> dict[str, Items]:
    """The ten tables by name."""
    from mlxtend.data import autompg_data
    from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

    typed = {
        "insect sprays": _INSECT_SPRAYS, "plant growth": _PLANT_GROWTH, "chick weights": _CHICKS,
        "warp breaks": _WARP_BREAKS,
    }  # fmt: skip
    found = {name: {item: np.array(text.split(), float) for item, text in one.items()} for name, one in typed.items()}
    iris, wine, cells, digits = load_iris(), load_wine(), load_breast_cancer(), load_digits()
    cars, miles = autompg_data()
    found["iris, sepal width"] = _by(iris.target, iris.data[:, 1], 15)
    found["wine, ash"] = _by(wine.target, wine.data[:, 2])
    found["wine, magnesium"] = _by(wine.target, wine.data[:, 4], 15)
    found["cells, smoothness"] = _by(cells.target, cells.data[:, 4], 20)
    found["cars, miles by year"] = _by(cars[:, 5], miles)
    found["digits, ink"] = _by(digits.target, digits.data.sum(axis=1), 60)
    return found


def _by(items: FloatArray, values: FloatArray, most: int | None = None) -> Items:
    """The values of each item; only the first `most` of each, where all of them leave nothing to tell."""
    return {f"{item:g}": np.asarray(values[items == item][:most], dtype=float) for item in np.unique(items)}
