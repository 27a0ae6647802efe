"""The colours of groups: told apart by people who see colours differently, and seen on their background."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

CSS = (Path(__file__).resolve().parents[2] / "src" / "coterie" / "web" / "static" / "coterie.css").read_text()

# Machado, Oliveira and Fernandes 2009: what somebody sees without red, green or blue cones, in linear RGB.
SEEN = {
    "all cones": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def linear(colour: str) -> np.ndarray:
    values = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(light: np.ndarray) -> np.ndarray:
    ratio = TO_XYZ @ np.clip(light, 0, 1) / TO_XYZ.sum(axis=1)
    x, y, z = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(a: str, b: str) -> float:
    dark, bright = sorted(float(linear(one) @ TO_XYZ[1]) + 0.05 for one in (a, b))
    return bright / dark


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_groups_are_told_apart(scheme: int) -> None:
    groups = {name: re.findall(rf"--{name}: (#[0-9a-f]{{6}})", CSS)[scheme] for name in [f"g{i}" for i in range(1, 11)]}
    card = re.findall(r"--card: (#[0-9a-f]{6})", CSS)[scheme]
    assert len(set(groups.values())) == 10
    for name, colour in groups.items():
        assert contrast(colour, card) >= 3.0, f"{name}: WCAG 1.4.11"
    for who, matrix in SEEN.items():
        for (a, first), (b, second) in itertools.combinations(groups.items(), 2):
            gap = float(
                np.linalg.norm(lab(np.asarray(matrix) @ linear(first)) - lab(np.asarray(matrix) @ linear(second)))
            )
            assert gap >= 20.0, (who, a, b, gap)  # 2.3 can just be seen side by side
