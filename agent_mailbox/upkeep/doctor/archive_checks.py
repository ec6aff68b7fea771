"""Check the archive's files and the attachments: does every byte still match the checksums?

Belongs here: the manifest's sums and its own lines, the digests in messages. ``log_checks`` reads the records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import attachments, codec
from ...core.findings import REMOVE_TORN, Problem
from ...core.frame import short
from ...core.records import BadLine
from ...space import replicator
from ...store.archive.manifest import Manifest
from ...store.attachments import attachment_files
from ...store.files import paths, system
from .log_checks import is_torn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...core.attachments import AttachmentFile
    from ...mailbox.mailbox import Mailbox
    from ...store.archive.manifest import Damage

RESTORE = "restore it from a backup, or accept it as it is: remove its lines from MANIFEST.jsonl"
RESTORE_ALL = "restore the archive from a backup, or accept it as it is: `agent-mailbox doctor --trust`"


def check_archive(mailbox: Mailbox, at_work: Callable[[], bool]) -> Iterator[Problem]:
    """Yield the problems of the archive's files and their manifest."""
    archive = mailbox.archive
    # In this order: bytes seen while no steward works were sealed, unless their steward was interrupted.
    sizes = {name: system.size(system.join(archive.directory, name)) for name in archive.files()}
    moving = at_work()
    manifest = Manifest(archive)
    if not moving and manifest.is_lost():
        yield Problem(manifest.log.path, None, f"the archive is gone, and with it all archived mail: {RESTORE_ALL}")
    for stray in manifest.strays:
        torn = is_torn(stray.text)
        what = (
            f"torn: {stray.what}" if torn else f"{stray.what}; the bytes it sealed count as unsealed: remove the line"
        )
        yield Problem(manifest.log.path, stray.line, what, REMOVE_TORN if torn else None)
    damaged = set()
    for damage in manifest.damage():
        damaged.add(damage.file)
        line = damage.first_line if damage.there else None
        yield Problem(system.join(archive.directory, damage.file), line, _describe_damage(damage))
    for name, size in sizes.items():
        path = system.join(archive.directory, name)
        unsealed = size - manifest.sealed(name)
        if unsealed <= 0:
            continue
        if not manifest.sealed(name):
            what = "not sealed yet (an older version wrote it, or a run was interrupted); the next steward run seals it"
            yield Problem(path, None, what, note=True)
        elif name not in damaged and not moving:
            what = f"the last {unsealed} bytes are not sealed: an archive run was interrupted, or another program wrote"
            yield Problem(path, None, f"{what}; `agent-mailbox steward run` completes it")
    yield from _reads_alone(mailbox, manifest)
    yield from _find_leftovers(mailbox, at_work)


def _describe_damage(damage: Damage) -> str:
    stretch = damage.stretch
    if not damage.there:
        return f"the file is missing, or ends before byte {stretch.offset} (manifest line {stretch.line}); {RESTORE}"
    lines = f"lines {damage.first_line} to {damage.last_line}"
    where = f"bytes {stretch.offset} to {stretch.end}, {lines}, differ from what was archived"
    short = f": {stretch.length - damage.there} bytes are missing" if damage.there < stretch.length else ""
    return f"{where} (manifest line {stretch.line}){short}; {RESTORE}"


def _reads_alone(mailbox: Mailbox, manifest: Manifest) -> Iterator[Problem]:
    """Yield reads files whose month has no messages file, unless the manifest check reports that file."""
    archive = mailbox.archive
    for name in archive.files():
        month = name.removesuffix("-reads.jsonl")
        if month != name and month not in archive.months() and not manifest.sealed(f"{month}.jsonl"):
            what = f"{month} has reads but no messages: restore {month}.jsonl from a backup"
            yield Problem(system.join(archive.directory, name), None, what)


def _find_leftovers(mailbox: Mailbox, at_work: Callable[[], bool]) -> Iterator[Problem]:
    for name in (paths.MESSAGES, paths.READS, paths.ROSTER):
        path = mailbox.logs.path(f"{name}.new")
        if system.exists(path) and not at_work() and system.exists(path):  # the steward may have ended by now
            what = "left by an interrupted archive run; `agent-mailbox steward run` completes it"
            yield Problem(path, None, what)


def check_attachments(mailbox: Mailbox) -> Iterator[Problem]:
    """Yield the files that are missing or damaged, each once; the mailbox has no other copy."""
    seen = replicator.awaited_files(mailbox.logs)
    for message_id, file in _named_files(mailbox):
        if file.stored not in seen and attachment_files.read(mailbox.directory, file) is None:
            path = attachment_files.place(mailbox.directory, file.stored)
            what = "is damaged" if system.exists(path) else "is missing"
            yield Problem(path, None, f"{what}: an attachment of {short(message_id)}; ask its sender for it again")
        seen.add(file.stored)


def _named_files(mailbox: Mailbox) -> Iterator[tuple[str, AttachmentFile]]:
    for _, line in mailbox.logs.messages.lines():
        message = codec.message(line) if b"sha256" in line else None
        if message is not None and not isinstance(message, BadLine):
            yield from ((message.id, file) for file in attachments.files(message))
