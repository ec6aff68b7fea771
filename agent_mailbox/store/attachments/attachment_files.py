"""The files that messages bring, kept in the mailbox by their SHA-256.

Belongs here: keeping a file, finding it again, removing those that no message names. A file is durable before the line
that names it is written. The same content under the same kind of name is one file. ``core.attachments`` has the shape.
"""

from __future__ import annotations

import hashlib
import mimetypes
from contextlib import suppress
from typing import TYPE_CHECKING

from ...core import attachments, codec
from ...core.attachments import DIRECTORY, AttachmentFile
from ...core.instant import DAY
from ...core.line_forms import may_have
from ...core.records import BadLine
from ...errors import BadData, NotFound, Refused
from ..files import system
from ..files.lines import CHUNK, lines_of
from ..files.small_files import OpenFile, Storing, note_time, noted_age, open_file, storage_failed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ...core.records import Message
    from ..archive.archive import Archive
    from ..log.logs import Logs

MOST_BYTES = 16 << 20
"""Bytes of one file."""
MOST_TOTAL = 1 << 30
"""Bytes of all files of a mailbox."""
MOST_FOREIGN = MOST_TOTAL // 2
"""Bytes of all files at which none from another machine is kept any more: peers leave room for those here."""
LEAST_COUNTED = 16 << 10
"""Bytes that each file counts at least, so that small ones do not become too many."""
GRACE = DAY
"""Milliseconds for which a file stays that no message names: its message may be on its way."""
SWEPT = "attachments"
"""The derived file whose time is that of the last sweep."""


def place(directory: str, name: str = "") -> str:
    """Return the path of a mailbox's attachments, or of one by its stored name."""
    return system.join(directory, DIRECTORY, *([name] if name else []))


def room(directory: str, most: int) -> int:
    """Return the bytes that files may still take, if all of a mailbox's may have ``most``; raise ``StorageFailed``."""
    home = place(directory)
    try:
        return most - _total(home)
    except FileNotFoundError:
        return most
    except OSError as error:
        raise storage_failed("look through", home, error) from None


def put(directory: str, name: str, chunks: Iterable[bytes], left: int | None = None) -> AttachmentFile:
    """Keep a file in a mailbox, durably; return its entry's values. ``left``: the room that its caller knows of.

    Raises ``BadData`` if it is too large, ``Refused`` if the mailbox has no room for it, ``StorageFailed``.
    """
    home = place(directory)
    with Storing("keep an attachment in", home):
        with suppress(FileExistsError):
            system.mkdir(home, 0o700)
        system.sync_directory(directory)  # another process may have made it, and died before its sync
        left = MOST_TOTAL - _total(home) if left is None else left
        aside = system.join(home, attachments.aside(system.urandom(8)))
        flags = system.O_WRONLY | system.O_CREAT | system.O_EXCL | system.O_CLOEXEC
        with OpenFile(system.open(aside, flags, 0o600)) as fd:
            try:
                digest, size = _copied(fd, name, chunks, left)
                system.fsync(fd)
                name = attachments.plain_name(name)
                kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
                file = AttachmentFile(name, kind, size, digest)
                system.rename(aside, place(directory, file.stored))  # of the same content: its time is new, too
            except BaseException:
                system.unlink(aside)
                raise
        system.sync_directory(home)
    return file


def _copied(fd: int, name: str, chunks: Iterable[bytes], left: int) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    for chunk in chunks:
        size += len(chunk)
        if size > MOST_BYTES:
            raise BadData(
                f"the attachment is over the limit of {attachments.size_of(MOST_BYTES)}: {name}",
                "put it where its reader can fetch it, and send its path or URL with --ref",
                code="too_large",
            )
        if size > left:
            raise Refused(
                f"the mailbox holds {attachments.size_of(MOST_TOTAL)} of attachments, and has no room for {name}",
                "send its path with --ref file:PATH",
                code="full",
            )
        system.write_whole(fd, chunk)
        digest.update(chunk)
    return digest.hexdigest(), size


def _total(home: str) -> int:
    total = 0
    for name in _kept_names(home):
        with suppress(FileNotFoundError):  # a steward, or another sender
            total += max(system.lstat(system.join(home, name)).st_size, LEAST_COUNTED)
    return total


def _kept_names(home: str) -> list[str]:
    """Return the mailbox's files in a directory, whole or not: it may be a project's, too, with files of its own."""
    return [*filter(attachments.is_kept, system.listdir(home))]


def chunks_of(fd: int) -> Iterator[bytes]:
    """Yield the bytes of an open file."""
    while chunk := system.read(fd, CHUNK):
        yield chunk


def is_there(directory: str, file: AttachmentFile) -> bool:
    """Return whether the mailbox has the file in its size, as far as that can be told."""
    try:
        return _is_kept(directory, file)
    except OSError:
        return False


def missing(directory: str, message: Message) -> AttachmentFile | None:
    """Return a file that the message names and the mailbox does not have in that size; None if it has all.

    Raises ``StorageFailed`` if that cannot be told."""
    with Storing("look through", place(directory)):
        return next((file for file in attachments.files(message) if not _is_kept(directory, file)), None)


def _is_kept(directory: str, file: AttachmentFile) -> bool:
    try:
        found = system.lstat(place(directory, file.stored))
    except FileNotFoundError:
        return False
    return found.st_mode & system.S_IFMT == system.S_IFREG and found.st_size == file.size


def check(directory: str, message: Message) -> None:
    """Raise ``BadData`` or ``NotFound`` for a message whose files could not be read; the log's lock is held."""
    named = [entry for entry in attachments.list_entries(message) if entry.get("type") == "file"]
    if len(named) > attachments.MOST:
        raise BadData(f"the message has more than {attachments.MOST} attachments", "send several messages")
    if len(named) != len(attachments.files(message)):
        raise BadData("an attachment names no file of the mailbox", "send it with `agent-mailbox send --attach PATH`")
    lost = missing(directory, message)
    if lost is not None:
        raise NotFound(f"the mailbox has no such attachment: {lost.name}", "send it again with --attach")


def read(directory: str, file: AttachmentFile) -> bytes | None:
    """Return a file's content; None if it is not there as its message says."""
    data = content(directory, file.stored)
    return data if data is not None and len(data) == file.size else None


def content(directory: str, name: str) -> bytes | None:
    """Return the content of a stored name; None if there is none that has its digest."""
    try:
        with OpenFile(open_file(place(directory, name), system.O_RDONLY)) as fd:
            data = b"".join(chunks_of(fd)) if system.fstat(fd).st_size <= MOST_BYTES else b""
    except FileNotFoundError:
        return None
    return data if digest(data) == name[:64] else None


def digest(data: bytes) -> str:
    """Return the digest by which a file is known."""
    return hashlib.sha256(data).hexdigest()


def names(directory: str) -> list[str]:
    """Return the stored names of all files, sorted."""
    try:
        return sorted(filter(attachments.is_stored, system.listdir(place(directory))))
    except (FileNotFoundError, NotADirectoryError):
        return []


def sweep(logs: Logs, archive: Archive, now: int) -> int:
    """Remove the files that no message names, live or archived; return how many. The caller is the steward.

    Once a day at most, since all mail is looked through. No line is appended meanwhile: ``check`` runs under the same
    lock.
    """
    home = place(logs.directory)
    if not system.is_directory(home) or not _is_due(logs, now):
        return 0
    kept = {file.stored for message in find_messages(archive.lines()) for file in attachments.files(message)}
    removed = 0
    with logs.messages.held() as log:
        live = find_messages(line for _, line in lines_of(log.fd, 0, system.fstat(log.fd).st_size))
        kept.update(file.stored for message in live for file in attachments.files(message))
        for name in _kept_names(home):
            path = system.join(home, name)
            with suppress(OSError):  # the next run tries again
                old = system.lstat(path).st_mtime_ns // 1_000_000 < now - GRACE
                if old and name not in kept:
                    system.unlink(path)
                    removed += 1
    return removed


def _is_due(logs: Logs, now: int) -> bool:
    path = logs.cache(SWEPT)
    age = noted_age(path, now)
    if age is not None and 0 <= age < DAY:
        return False
    note_time(path, now)
    return True


def find_messages(lines: Iterable[bytes]) -> Iterator[Message]:
    """Yield the messages among the lines that may name files."""
    for line in lines:
        if may_have(line, b"sha256"):
            message = codec.message(line)
            if not isinstance(message, BadLine):
                yield message
