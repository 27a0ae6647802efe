"""The build backend of pyproject.toml: scikit-build-core, with a compiler from PyPI where the machine has none.

An editable install is a path to src, beside whose sources the module is built (build_here.py): with PYTHONPATH=…/src
another checkout comes first, as with pure Python.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import toolchain

Settings = dict[str, Any] | None


def get_requires_for_build_sdist(config_settings: Settings = None) -> list[str]:
    return [line for line in toolchain.listed("build") if line.startswith("scikit-build-core")]


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    return toolchain.to_build()


get_requires_for_build_editable = get_requires_for_build_wheel


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    from scikit_build_core import build

    return build.build_sdist(sdist_directory, config_settings)


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    from scikit_build_core import build

    print(toolchain.BUILDING, file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="coterie-") as folder:
        toolchain.use_compiler(Path(folder))
        return build.build_wheel(wheel_directory, config_settings, metadata_directory)


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    from scikit_build_core import build

    return build.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """The module beside the sources; a wheel that holds the metadata and the path."""
    import build_here

    build_here.build()
    with tempfile.TemporaryDirectory(prefix="coterie-") as folder:
        info = Path(folder) / prepare_metadata_for_build_wheel(folder, config_settings)
        files = {file.relative_to(folder).as_posix(): file.read_bytes() for file in info.rglob("*") if file.is_file()}
    about = f"{info.name}/WHEEL"
    tag = "py3-none-any"  # what is compiled is not in it
    files[about] = re.sub(rb"(?m)^Tag: .*\n", b"", files[about]).rstrip() + f"\nTag: {tag}\n".encode()
    files["coterie.pth"] = f"{toolchain.ROOT / 'src'}\n".encode()
    record = f"{info.name}/RECORD"
    files[record] = "".join([*map(_line, files.items()), f"{record},,\n"]).encode()
    name = f"{info.name.removesuffix('.dist-info')}-{tag}.whl"
    with zipfile.ZipFile(Path(wheel_directory) / name, "w") as wheel:
        for path, content in files.items():
            wheel.writestr(path, content)
    return name


def _line(entry: tuple[str, bytes]) -> str:
    path, content = entry
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(content)}\n"
