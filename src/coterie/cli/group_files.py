"""The files that `coterie group --out FOLDER` writes: it replaces only what it wrote and nobody has changed since.

`coterie-group.json` says what that is: the table, the settings, and the SHA-256 of every file written.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from coterie.session import Session

MARKER = "coterie-group.json"
FORMAT = "coterie-group-1"
NAMES = ("groups.csv", "certificate.json", "log.csv")


def check_folder(folder: Path, source: Path) -> None:
    """Refuse a folder in which something would be lost: the table itself, or a file that is not from this command."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file: --out names a folder")
    for name in (*NAMES, MARKER):
        path = folder / name
        if path.exists() and source.exists() and path.samefile(source):
            raise ValueError(f"--out {folder} would overwrite the table {source} itself: name another folder")
    written = _written(folder)
    for name in NAMES:
        path = folder / name
        if not (path.exists() or path.is_symlink()):
            continue
        if path.is_symlink() or not path.is_file() or name not in written:
            what = f"{path} is there already, and coterie group did not write it: name another folder with --out"
            raise FileExistsError(f"{what}, or move it away")
        if _digest(path.read_bytes()) != written[name]:
            what = f"{path} was changed since coterie group wrote it: name another folder with --out"
            raise FileExistsError(f"{what}, or move it away")


def write_files(folder: Path, source: Path, found: dict[str, Any], session: Session, quiet: bool) -> None:
    """groups.csv; with a proof, certificate.json and log.csv, for `coterie verify`."""
    proof = found["certificate"]
    contents = {"groups.csv": _groups(found)}
    if proof is not None:
        contents["certificate.json"] = (json.dumps(proof, indent=1) + "\n").encode()
        contents["log.csv"] = _log(session, found["dim"])
    check_folder(folder, source)  # again: grouping may have taken a while
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:  # a proof of an earlier run would be taken for that of these groups
        (folder / name).unlink(missing_ok=True)
    marker = {
        "format": FORMAT,
        "source": found["read"]["source"],
        "settings": {key: found[key] for key in ("n_clusters", "question", "delta", "method", "threshold", "order")}
        | {"noise": found["noise"]["stated"], "items": found["read"]["item_column"], "values": found["read"]["values"]},
        "files": {name: _digest(content) for name, content in contents.items()},
    }
    text = json.dumps(marker, indent=1, ensure_ascii=False) + "\n"
    (folder / MARKER).write_text(text, encoding="utf-8")  # first: what a crash leaves behind is known
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    typer.echo(f"wrote {', '.join(str(folder / name) for name in contents)}", err=quiet)
    if proof is not None:
        typer.echo(f"check: coterie verify {folder / 'certificate.json'} {folder / 'log.csv'}", err=quiet)
        typer.echo("(there items and groups are numbered from 0: groups.csv has these numbers too)", err=quiet)


def _written(folder: Path) -> dict[str, str]:
    """The digests of what this command wrote here before."""
    path = folder / MARKER
    if not (path.exists() or path.is_symlink()):
        return {}
    try:
        if path.is_symlink():
            raise ValueError
        content = json.loads(path.read_bytes())
        if content["format"] != FORMAT or not all(isinstance(one, str) for one in content["files"].values()):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        what = f"{path} is there already, and coterie group did not write it: name another folder with --out"
        raise FileExistsError(f"{what}, or move it away") from None
    return dict(content["files"])


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _groups(found: dict[str, Any]) -> bytes:
    """A row for each item, made for spreadsheets: names that would be formulas there get an apostrophe in front."""
    from coterie.cli.group_report import item_states
    from coterie.tables.spreadsheets import csv_line

    proof = found["certificate"]
    extra = ["certificate group"] if proof is not None else []
    resolved = found["references"] is not None
    beside = ["reference", "could also be in group"] if resolved else []
    means = [f"mean {column}" for column in found["read"]["values"]]
    pairs = found["pairs"]
    letters = [] if pairs is None else ["letters", "possible groups"]
    headings = ["item", "group", "state", "used", "recorded", *means, "arm", *extra, *beside, *letters]
    lines = [csv_line(headings)]
    for arm, (name, state) in enumerate(zip(found["names"], item_states(found), strict=True)):
        label = "" if found["labels"] is None else found["labels"][arm] + 1
        counts = [found["pulls"][arm], found["counts"][arm]]
        averages = [f"{mean:.10g}" for mean in found["means"][arm]]
        there = [] if proof is None else [proof["labels"][arm]]
        near = [] if not resolved else [_reference_of(found, arm), " ".join(map(str, found["borders"].get(name, [])))]
        if pairs is not None:
            near += [pairs["letters"][arm], " ".join(map(str, pairs["possible"][arm] if pairs["possible"] else []))]
        lines.append(csv_line([name, label, state, *counts, *averages, arm, *there, *near]))
    return "".join(lines).encode()


def _reference_of(found: dict[str, Any], arm: int) -> str:
    """The reference item of the group that an item is in."""
    return "" if found["labels"] is None else str(found["references"][found["labels"][arm]])


def _log(session: Session, dim: int) -> bytes:
    from coterie.certificate import write_log

    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "log.csv")
        write_log(path, session.events, dim)
        return path.read_bytes()
