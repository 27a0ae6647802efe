"""Ten tables as people have them: items with some rows each, of one number. From installed packages where these have
them; four of a few dozen numbers are typed, as statistics books print them. And six tables in complete blocks, typed
too: no installed package has any.
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


_BLOCKS = {  # a column for each item, a row for each block
    "penicillin, 5 blends": (  # yields of four processes; Box, Hunter and Hunter, Statistics for Experimenters (1978)
        "89 88 97 94  84 77 92 79  81 87 87 85  87 92 89 84  79 81 80 88", 4),
    "first base, 22 runners": (  # seconds by three ways to round it; Hollander and Wolfe (1973)
        "5.40 5.50 5.55  5.85 5.70 5.75  5.20 5.60 5.50  5.55 5.50 5.40  5.90 5.85 5.70  5.45 5.55 5.60 "
        "5.40 5.40 5.35  5.45 5.50 5.35  5.25 5.15 5.00  5.85 5.80 5.70  5.25 5.20 5.10  5.65 5.55 5.45 "
        "5.60 5.35 5.45  5.05 5.00 4.95  5.50 5.50 5.40  5.45 5.55 5.50  5.55 5.55 5.35  5.45 5.50 5.55 "
        "5.50 5.45 5.25  5.65 5.60 5.40  5.70 5.65 5.55  6.30 6.30 6.25", 3),
    "barley, 6 places in 2 years": (  # yields of five varieties; Immer, Hayes and Powers (1934)
        "81.0 105.4 119.7 109.7 98.3  146.6 142.0 150.7 191.5 145.7  82.3 77.3 78.4 131.3 89.6 "
        "119.8 121.4 124.0 140.8 124.8  98.9 89.0 69.1 89.3 104.1  86.9 77.1 78.9 101.8 96.0 "
        "80.7 82.3 80.4 87.2 84.2  100.4 115.5 112.2 147.7 108.1  103.1 105.1 116.5 139.9 129.6 "
        "98.9 61.9 96.2 125.5 75.7  66.4 49.9 96.7 61.9 80.3  67.7 66.7 67.4 91.8 94.1", 5),
    "oats, 18 whole plots": (  # yields by four levels of nitrogen; Yates (1935)
        "111 130 157 174  117 114 161 141  105 140 118 156  61 91 97 100  70 108 126 149  96 124 121 144 "
        "68 64 112 86  60 102 89 96  89 129 132 124  74 89 81 122  64 103 132 133  70 89 104 117 "
        "62 90 100 116  80 82 94 126  63 70 109 99  53 74 118 113  89 82 86 104  97 99 119 121", 4),
    "sleep, 10 patients": (  # hours gained by two drugs; Cushny and Peebles (1905)
        "0.7 1.9  -1.6 0.8  -0.2 1.1  -1.2 0.1  -0.1 -0.1  3.4 4.4  3.7 5.5  0.8 1.6  0.0 4.6  2.0 3.4", 2),
    "classifiers, 14 data sets": (  # areas under curves of four decision trees; Demšar (2006)
        "0.763 0.768 0.771 0.798  0.599 0.591 0.590 0.569  0.954 0.971 0.968 0.967  0.628 0.661 0.654 0.657 "
        "0.882 0.888 0.886 0.898  0.936 0.931 0.916 0.931  0.661 0.668 0.609 0.685  0.583 0.583 0.563 0.625 "
        "0.775 0.838 0.866 0.875  1.000 1.000 1.000 1.000  0.940 0.962 0.965 0.962  0.619 0.666 0.614 0.669 "
        "0.972 0.981 0.975 0.975  0.957 0.978 0.946 0.970", 4),
}  # fmt: skip


def tables_in_blocks() -> dict[str, FloatArray]:
    """(blocks, items) tables by name."""
    return {name: np.array(text.split(), float).reshape(-1, items) for name, (text, items) in _BLOCKS.items()}
