"""Files that belong to a measurement: a photo, a table of an instrument, a note.

That a file belongs to a measurement is a note in the campaign's log, with the hash of its content, which stands beside
the log. So a file that was changed on disk is noticed, and whoever does not know attachments reads the log as before.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from coterie.campaign.commands.turn import Turn
from coterie.campaign.errors import BadValue, Conflict, Forbidden, NotFound
from coterie.campaign.service.open_campaigns import OpenCampaigns
from coterie.campaign.settings import check_text, timestamp
from coterie.campaign.state.facts import ATTACHMENT
from coterie.campaign.state.opening import CampaignReading
from coterie.campaign.state.state import State
from coterie.campaign.tokens import Writer
from coterie.problem.checks import short
from coterie.store.rows import Note

MIB = 2**20
LARGEST = 8 * MIB
"""Bytes of a file."""
LARGEST_TOTAL = 256 * MIB
"""Bytes of all files of a campaign."""
MOST_OF_ONE = 20
"""Files of a measurement."""
LONGEST_NAME = 100
TEXT = "text/plain"
_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),  # Excel files too
)
ALLOWED = "photo (PNG, JPEG, GIF, TIFF, WebP, HEIC), PDF, text in UTF-8, Excel file or ZIP"


def type_of(content: bytes) -> str | None:
    """What a file is by its content, whatever it is called; None if it is nothing that is kept."""
    for beginning, media_type in _BEGINNINGS:
        if content.startswith(beginning):
            return media_type
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    if content[4:8] == b"ftyp" and content[8:12] in (b"heic", b"heix", b"mif1"):
        return "image/heic"
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return TEXT if text and all(sign >= " " or sign in "\t\r\n\f" for sign in text) else None


class Attachments:
    """The files of a store's campaigns."""

    def __init__(self, campaigns: OpenCampaigns) -> None:
        self._campaigns = campaigns

    def add(
        self, id: str, measurement: str, name: str, content: bytes, writer: Writer | None = None
    ) -> dict[str, Any]:  # fmt: skip
        """Keep a file; the same one again is kept once.

        Parameters
        ----------
        id, measurement : str
            The campaign, and the id of one of its measurements; a worker's token: of its own.
        name : str
            What the file is called.
        content : bytes
            What it holds: at most 8 MiB, of a type that `type_of` knows.
        writer : Writer, optional
            The token that the request came with.

        Returns
        -------
        dict
            `measurement`, its item's `arm` and `name`; `file` (what it is called), `type`, `size`, `sha256`, and `at`,
            when it was added.

        Raises
        ------
        BadValue, NotFound, Conflict
            What is wrong with it; the measurement is kept as it is.
        """
        title, media_type = _checked_name(name), _checked_type(content)
        hash = sha256(content).hexdigest()
        known = self._campaigns.read(id, lambda seen: _known(seen, measurement, writer))
        for attachment in known:
            if (attachment["measurement"], attachment["sha256"], attachment["file"]) == (measurement, hash, title):
                return attachment
        _check_room(known, measurement, len(content))
        self._keep(id, hash, content)
        about = {"measurement": measurement, "file": title, "type": media_type, "size": len(content), "sha256": hash}

        def decide(turn: Turn) -> dict[str, Any]:
            turn.writer = writer
            arm = _check_measurement(turn.state, writer, measurement)
            noted = about | turn.state.settings.named(arm)
            turn.note(ATTACHMENT, noted)
            return noted | {"at": timestamp(turn.now)}

        return self._campaigns.submit(id, decide)

    def _keep(self, id: str, hash: str, content: bytes) -> None:
        def once() -> None:
            with self._campaigns.journal.writing([id]) as writing:
                if id in writing.locked:  # else it was deleted just now, and the note says so
                    writing.keep_attachment(id, hash, content)

        self._campaigns.journal.retried(once)

    def listed(self, id: str, measurement: str | None = None) -> list[dict[str, Any]]:
        """The files of a campaign, or of one of its measurements, oldest first."""
        every = self._campaigns.look(id, _listed)
        return [attachment for attachment in every if measurement in (None, attachment["measurement"])]

    def content(self, id: str, hash: str) -> tuple[dict[str, Any], bytes]:
        """A file by the hash of its content: what is known of it, and what it holds."""

        def view(seen: CampaignReading) -> tuple[dict[str, Any], bytes | None]:
            about = next((attachment for attachment in _listed(seen) if attachment["sha256"] == hash), None)
            if about is None:
                raise NotFound(f"there is no attachment {short(hash)}", code="unknown_attachment", field="sha256")
            return about, seen.journal.attachment(seen.row["id"], hash)

        about, content = self._campaigns.look(id, view)
        if content is None or sha256(content).hexdigest() != hash:
            raise Conflict(
                f"the file {about['file']!r} of measurement {about['measurement']!r} was changed or lost on disk: take "
                "it from a copy of the store",
                code="damaged_attachment",
            )
        return about, content

    def archive(self, id: str) -> bytes:
        """A ZIP of all files of a campaign, each in a folder called as its measurement."""
        written, names = io.BytesIO(), set()
        with zipfile.ZipFile(written, "w") as file:
            for about in self.listed(id):
                name = _path(about["measurement"], about["file"])
                if name in names:
                    name = _path(about["measurement"], f"{about['sha256'][:8]}-{about['file']}")
                names.add(name)
                file.writestr(name, self.content(id, about["sha256"])[1])
        return written.getvalue()


def _path(measurement: str, name: str) -> str:
    """A path inside a ZIP, that stays inside wherever it is unpacked."""
    return "/".join("".join("-" if sign in '\\/:*?"<>|' else sign for sign in part) for part in (measurement, name))


def _listed(seen: CampaignReading) -> list[dict[str, Any]]:
    notes = (note for note in seen.journal.notes(seen.row, ATTACHMENT).rows if isinstance(note, Note))
    return [note.data | {"at": timestamp(note.at)} for note in notes]


def _known(seen: CampaignReading, measurement: Any, writer: Writer | None) -> list[dict[str, Any]]:
    _check_measurement(seen.state, writer, measurement)
    if seen.state.archived is not None:
        raise Conflict("the campaign is archived, and only read: unarchive it first", code="archived")
    return _listed(seen)


def _check_measurement(state: State, writer: Writer | None, measurement: Any) -> int:
    """The arm of a measurement, if there is one and the writer may add to it."""
    name = check_text(measurement, "measurement")
    if name not in state.ids and name not in state.surplus:
        raise NotFound(f"there is no measurement {name!r}", code="unknown_measurement", field="measurement")
    if name in state.surplus:
        return int(state.surplus[name][0])
    if writer is not None and writer.only_own and state.registry.tokens.get(state.ids[name]) != writer.token:
        raise Forbidden(
            f"measurement {name!r} was told with another token, and a worker's token adds files to its own only",
            code="not_your_measurement",
            field="measurement",
        )
    return int(state.results[state.ids[name]][0])


def _checked_name(name: Any) -> str:
    title = check_text(name, "name")
    if len(title) > LONGEST_NAME or title.strip(". ") == "":
        raise BadValue(f"a file's name has 1 to {LONGEST_NAME} characters, got {short(title)}", field="name")
    return title


def _checked_type(content: bytes) -> str:
    if len(content) > LARGEST:
        raise BadValue(
            f"a file has at most {LARGEST // MIB} MiB, this one has {len(content) / MIB:.1f}: the measurement is kept, "
            "make the file smaller and attach it again",
            code="too_large",
            field="file",
        )
    media_type = type_of(content)
    if media_type is None:
        fault = f"by its content the file is no {ALLOWED}" if content else "the file is empty"
        raise BadValue(
            f"{fault}: the measurement is kept without it",
            code="wrong_type",
            field="file",
        )
    return media_type


def _check_room(known: Sequence[dict[str, Any]], measurement: str, size: int) -> None:
    if sum(attachment["measurement"] == measurement for attachment in known) >= MOST_OF_ONE:
        raise Conflict(f"a measurement has at most {MOST_OF_ONE} files", code="too_many", field="file")
    sizes = {attachment["sha256"]: attachment["size"] for attachment in known}
    if sum(sizes.values()) + size > LARGEST_TOTAL:
        raise Conflict(
            f"the files of a campaign have at most {LARGEST_TOTAL // MIB} MiB in all", code="too_large", field="file"
        )
