"""The files that `coterie group --out FOLDER` writes: it replaces only what it wrote and nobody has changed since.

`coterie-group.json` says what that is: the table, the settings, and the SHA-256 of every file written.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coterie.tables.analysis import PairAnalysis
    from coterie.tables.growing import ReplayAnalysis

MARKER = "coterie-group.json"
FORMAT = "coterie-group-1"
NAMES = ("groups.csv", "certificate.json", "log.csv")
_SETTINGS = ("n_clusters", "question", "delta", "rows", "method", "threshold", "order")


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
            message = f"{path} is there already, and coterie group did not write it: name another folder with --out"
            raise FileExistsError(f"{message}, or move it away")
        if _digest(path.read_bytes()) != written[name]:
            message = f"{path} was changed since coterie group wrote it: name another folder with --out"
            raise FileExistsError(f"{message}, or move it away")


def write_files(folder: Path, source: Path, answer: PairAnalysis | ReplayAnalysis) -> list[str]:
    """groups.csv; with a proof, certificate.json and log.csv, for `coterie verify`. What to say of them, in lines."""
    proof = answer.certificate
    contents = {"groups.csv": _groups(answer)}
    if proof is not None:
        contents["certificate.json"] = (json.dumps(proof, indent=1) + "\n").encode()
        contents["log.csv"] = _log(answer.events, answer.pool.dim)
    check_folder(folder, source)  # again: grouping may have taken a while
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:  # a proof of an earlier run would be taken for that of these groups
        (folder / name).unlink(missing_ok=True)
    described = answer.to_json()
    read = described["read"]
    marker = {
        "format": FORMAT,
        "source": read["source"],
        "settings": {key: described[key] for key in _SETTINGS if key in described}
        | {"noise": described["noise"]["stated"], "items": read["item_column"], "values": read["values"]}
        | ({} if read["blocks"] is None else {"block": read["blocks"]["column"]}),
        "files": {name: _digest(content) for name, content in contents.items()},
    }
    text = json.dumps(marker, indent=1, ensure_ascii=False) + "\n"
    (folder / MARKER).write_text(text, encoding="utf-8")  # first: what a crash leaves behind is known
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    lines = [f"wrote {', '.join(str(folder / name) for name in contents)}"]
    if proof is not None:
        lines += [
            f"check: coterie verify {folder / 'certificate.json'} {folder / 'log.csv'}",
            "(there items and groups are numbered from 0: groups.csv has these numbers too)",
        ]
    return lines


def _written(folder: Path) -> dict[str, str]:
    """The digests of what this command wrote here before."""
    path = folder / MARKER
    if not (path.exists() or path.is_symlink()):
        return {}
    try:
        if path.is_symlink():
            raise ValueError
        content = json.loads(path.read_bytes())
        if content["format"] != FORMAT or not all(isinstance(digest, str) for digest in content["files"].values()):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        message = f"{path} is there already, and coterie group did not write it: name another folder with --out"
        raise FileExistsError(f"{message}, or move it away") from None
    return dict(content["files"])


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _groups(answer: PairAnalysis | ReplayAnalysis) -> bytes:
    """A row for each item, made for spreadsheets: names that would be formulas there get an apostrophe in front."""
    from coterie.cli.group_report import item_states
    from coterie.tables.reading.spreadsheets import csv_line

    pool, labels, pairs, references = answer.pool, answer.labels, answer.pairs, answer.references
    proven = None if answer.certificate is None else answer.certificate["labels"]
    counts = pool.counts.tolist()
    used = counts if answer.session is None else answer.session.pulls.tolist()
    headings = ["item", "group", "state", "used", "recorded", *(f"mean {column}" for column in pool.columns), "arm"]
    headings += [] if proven is None else ["certificate group"]
    headings += [] if references is None else ["reference", "could also be in group"]
    headings += [] if pairs is None else ["letters", "possible groups"]
    lines = [csv_line(headings)]
    for arm, state in enumerate(item_states(answer)):
        group = "" if labels is None else labels[arm] + 1
        means = ["" if mean != mean else f"{mean:.10g}" for mean in answer.means[arm]]
        cells = [pool.names[arm], group, state, used[arm], counts[arm], *means, arm]
        cells += [] if proven is None else [proven[arm]]
        if references is not None:
            reference = "" if labels is None else pool.names[references[labels[arm]]]
            cells += [reference, " ".join(str(k + 1) for k in answer.borders.get(arm, []))]
        if pairs is not None:
            cells += [pairs.letters[arm], " ".join(map(str, pairs.possible[arm] if pairs.possible else []))]
        lines.append(csv_line(cells))
    return "".join(lines).encode()


def _log(events: Sequence[dict[str, Any]], dim: int) -> bytes:
    from coterie.certificate import write_log

    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "log.csv")
        write_log(path, events, dim)
        return path.read_bytes()
