"""Back up a mailbox to one file, and verify such a file; ``restoring`` makes a mailbox from one.

Belongs here: the file's format, its checks, and the order of steps. A backup is a tar file. It
begins with ``backup.json`` (the time and the heartbeats), then has a snapshot of the logs, the archive and the
configuration. ``SHA256SUMS`` over all of these ends it, for ``sha256sum -c``. It holds no derived file.

It is written under another name, synced, verified and then renamed. So a kill at any step leaves a whole backup or
none; a retry takes over the remains.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
import tomllib
from typing import IO, TYPE_CHECKING, Any

from ..config import config_file
from ..config.config import Config
from ..core import codec, instant
from ..core.address import check_id
from ..core.attachments import DIRECTORY, is_stored
from ..core.proofs import is_machine
from ..core.records import BadLine, Record
from ..core.text import clipped, neutral
from ..errors import BadData, MailboxError, NotFound, Refused
from ..space import space as spaces
from ..store.attachments import attachment_files
from ..store.files import paths, system
from ..store.files.lines import CHUNK
from ..store.files.small_files import OpenFile, Storing, open_file, storage_failed
from ..store.locks.lock import FileLock
from .snapshot import LATEST, Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ..mailbox.mailbox import Mailbox

VERSION = 1
MOST_SHOWN = 64 << 10
"""Bytes of a configuration that are looked at; every setting of ours takes two."""
_LINES, _WIDTH = 30, 100
ABOUT, SUMS = "backup.json", "SHA256SUMS"
LIVE = (paths.MESSAGES, paths.READS, paths.ROSTER, paths.CONFIG)
MAX_ABOUT = 64 << 20
"""Bytes read of ``backup.json`` or ``SHA256SUMS`` at most: some hundred thousand sessions or files."""
MAX_HEADER = 64 << 10
"""Bytes of a header that describes the next file. ``tarfile`` reads a longer one into memory, whatever its size; it
writes one of some hundred bytes for a very large file."""


class Backup(Record):
    """A verified backup: its path, its time (ms), its files with their sizes in bytes, and the heartbeats (ns).

    ``settings`` tell what differs in its configuration from the defaults. ``machine`` and ``space`` are empty, unless
    it was a machine of a space.
    """

    file: str
    made: int
    sizes: Mapping[str, int]
    heartbeats: Mapping[str, int]
    settings: tuple[str, ...] = ()
    machine: str = ""
    space: str = ""


# -- making one -------------------------------------------------------------------------------------------------------


def write_backup(mailbox: Mailbox, file: str, *, force: bool = False) -> Backup:
    """Write a snapshot of the mailbox to ``file`` (0600), verified and durable.

    Raises ``Refused`` if the file exists, unless ``force``; ``Busy`` while a steward runs; ``StorageFailed``;
    ``BadData`` if the result does not verify.
    """
    file = system.absolute(file)
    _refuse_existing(file, force)
    directory, name = system.dirname(file), system.basename(file)
    with Storing("write", file), FileLock(system.join(directory, f".{name}.unfinished"), mailbox.logs.wait) as aside:
        try:
            made = _write_verified(mailbox, aside)
            _refuse_existing(file, force)
            system.rename(aside.path, file)
        except BaseException:
            system.unlink(aside.path)
            raise
        system.sync_directory(directory)
    return made.replace(file=file)


def _write_verified(mailbox: Mailbox, aside: FileLock) -> Backup:
    system.ftruncate(aside.fd, 0)  # the remains of a killed backup
    _fill_archive(_Unbuffered(aside.fd), mailbox)
    system.fsync(aside.fd)
    return verify_backup(aside.path)


def _refuse_existing(file: str, force: bool) -> None:
    if system.is_directory(file):
        raise Refused(f"the backup file is a directory: {file}", "name a file in it")
    if system.exists(file) and not force:
        raise Refused(
            f"the backup file exists already: {file}", "name another file, or overwrite it with --force", code="exists"
        )


def _fill_archive(out: IO[bytes], mailbox: Mailbox) -> None:
    sums: list[str] = []
    with Snapshot(mailbox.logs, mailbox.archive) as snapshot, tarfile.open(fileobj=out, mode="w") as tar:
        now = mailbox.now()
        about = {"format": "agent-mailbox backup", "version": VERSION, "made": instant.text(now)}
        if (shared := spaces.space_of(mailbox.logs)) is not None:
            about |= {"machine": shared.machine, "space": shared.space}
        text = codec.dumps({**about, "heartbeats": snapshot.heartbeats}).encode() + b"\n"
        _add_file(tar, ABOUT, len(text), [text], now, sums)
        for part in snapshot.parts:
            _add_file(tar, part.name, part.size, part.read_chunks(), now, sums)
        for name, size, chunks in _open_attachments(mailbox.directory):
            _add_file(tar, name, size, chunks, now, sums)
        text = "".join(sums).encode()
        _add_file(tar, SUMS, len(text), [text], now, sums)


def _open_attachments(directory: str) -> Iterator[tuple[str, int, Iterator[bytes]]]:
    """Yield the attachments, each open while it is asked for; they never change."""
    for name in attachment_files.names(directory):
        try:
            fd = open_file(attachment_files.place(directory, name), system.O_RDONLY)
        except FileNotFoundError:  # a steward removed it: no message named it
            continue
        with OpenFile(fd):
            yield f"{DIRECTORY}/{name}", system.fstat(fd).st_size, attachment_files.chunks_of(fd)


def _add_file(tar: tarfile.TarFile, name: str, size: int, chunks: Iterable[bytes], now: int, sums: list[str]) -> None:
    digest = hashlib.sha256()
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = size, 0o600, now // 1000

    def hash_chunks() -> Iterator[bytes]:
        for chunk in chunks:
            digest.update(chunk)
            yield chunk

    tar.addfile(entry, _Chunks(hash_chunks()))
    sums.append(f"{digest.hexdigest()}  {name}\n")


class _Unbuffered(io.BytesIO):
    """An open file for tarfile, which begins at 0, and only writes."""

    def __init__(self, fd: int) -> None:
        super().__init__()
        self._fd = fd

    def write(self, data: Any) -> int:
        system.write_whole(self._fd, bytes(data))
        return len(data)


class _Chunks:
    """A file that tarfile reads from chunks, once."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def read(self, size: int = CHUNK) -> bytes:
        while len(self._rest) < size and (chunk := next(self._chunks, b"")):
            self._rest += chunk
        found, self._rest = self._rest[:size], self._rest[size:]
        return found


# -- reading one ------------------------------------------------------------------------------------------------------


def open_backup(file: str) -> IO[bytes]:
    """Return a backup, opened; raises ``NotFound`` or ``StorageFailed``."""
    try:
        return system.stream(file)
    except FileNotFoundError:
        raise NotFound(
            f"backup file not found: {file}", "check the path; `agent-mailbox backup FILE` makes a backup"
        ) from None
    except OSError as error:
        raise storage_failed("read", file, error) from None


def verify_backup(file: str, take: Callable[[str, Iterator[bytes]], None] | None = None) -> Backup:
    """Read and check every byte of a backup. ``take`` gets each file's name and chunks, unverified until this returns.

    Raises ``NotFound``, ``BadData`` with the damage, or ``StorageFailed``.
    """
    try:
        with open_backup(file) as source, tarfile.open(fileobj=source, mode="r:", tarinfo=_Entry) as tar:
            return _verify_members(file, tar, take)
    except (tarfile.TarError, EOFError, UnicodeError, ValueError, OverflowError, RecursionError) as error:
        raise _damaged_error(file, f"not a complete tar file ({error})") from None
    except OSError as error:
        raise storage_failed("read", file, error) from None


def _verify_members(file: str, tar: tarfile.TarFile, take: Callable[[str, Iterator[bytes]], None] | None) -> Backup:
    sums: dict[str, str] = {}
    sizes: dict[str, int] = {}
    about, told = b"", None
    config = bytearray()
    for entry in tar:
        if told is not None:
            raise _damaged_error(file, f"{entry.name!r} follows the checksums")
        if not _is_plain(entry) or not _is_backup_name(entry.name) or entry.name in sums:
            raise _damaged_error(file, f"{entry.name!r} does not belong in a backup")
        content = tar.extractfile(entry)
        assert content is not None
        digest = hashlib.sha256()
        if entry.name == SUMS:
            told = content.read(MAX_ABOUT)
            continue
        chunks = _hash_while_reading(content, digest, config if entry.name == paths.CONFIG else None)
        if entry.name == ABOUT:
            about = b"".join(chunks) if entry.size <= MAX_ABOUT else b""
        else:
            sizes[entry.name] = entry.size
            if take is not None:
                take(entry.name, chunks)
        for _ in chunks:
            pass
        sums[entry.name] = digest.hexdigest()
    _compare_sums(file, sums, told or b"")
    return _parse_about(file, about, sizes).replace(settings=describe_settings(bytes(config)))


class _Entry(tarfile.TarInfo):
    """A header of a backup: bounded, whatever size it claims."""

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        # tarfile says that this may be overridden. Newer Pythons do not ask ``frombuf`` any more.
        if self.size < 0 or (self.type not in tarfile.REGULAR_TYPES and self.size > MAX_HEADER):
            raise tarfile.ReadError(f"a header claims {self.size} bytes")
        return super()._proc_member(tar)  # type: ignore[misc,no-any-return]


def _hash_while_reading(content: IO[bytes], digest: Any, config: bytearray | None) -> Iterator[bytes]:
    while chunk := content.read(CHUNK):
        digest.update(chunk)
        if config is not None and len(config) <= MOST_SHOWN:
            config.extend(chunk)
        yield chunk


def _is_plain(entry: tarfile.TarInfo) -> bool:
    """Return whether the entry is a regular file: no link, and no sparse file that expands to terabytes."""
    return entry.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not entry.issparse()


def _is_backup_name(name: str) -> bool:
    """Return whether a backup writes this name. So no name can lead out of the target directory."""
    directory, slash, base = name.rpartition("/")
    if not slash:
        return name in (*LIVE, ABOUT, SUMS)
    if directory == DIRECTORY:
        return is_stored(base)
    return directory == paths.ARCHIVE and base.endswith(".jsonl") and base[:1].isalnum() and base.isprintable()


def _compare_sums(file: str, sums: Mapping[str, str], told: bytes) -> None:
    wanted: dict[str, str] = {}
    for line in told.decode().splitlines():
        digest, _, name = line.partition("  ")
        wanted[name] = digest
    for name in (*wanted, *sums):
        if name not in sums:
            raise _damaged_error(file, f"{name!r} is missing")
        if wanted.get(name) != sums[name]:
            raise _damaged_error(file, f"{name!r} does not match its checksum")
    if paths.MESSAGES not in sums:
        raise _damaged_error(file, f"{paths.MESSAGES} is missing")


def _parse_about(file: str, text: bytes, sizes: Mapping[str, int]) -> Backup:
    about = codec.parse(text, MAX_ABOUT, ours=False)
    if isinstance(about, BadLine) or about.get("format") != "agent-mailbox backup":
        raise BadData(f"not a backup of a mailbox: {file}", "name a file that `agent-mailbox backup FILE` made")
    if about.get("version") != VERSION:
        raise BadData(
            f"unknown version of the backup {file}: {about.get('version')!r}",
            "restore it with the version that made it",
        )
    heartbeats, made = about.get("heartbeats"), about.get("made")
    if not isinstance(heartbeats, dict) or not isinstance(made, str):
        raise _damaged_error(file, f"{ABOUT} lacks the time or the heartbeats")
    for session_id, at in heartbeats.items():
        try:
            check_id(session_id)
        except MailboxError as error:
            raise _damaged_error(file, error.what) from None
        if not isinstance(at, int) or not 0 <= at <= LATEST:
            raise _damaged_error(file, f"the heartbeat of {session_id!r} is not a time: {at!r}")
    machine, space = (one if is_machine(one := str(about.get(key, ""))) else "" for key in ("machine", "space"))
    return Backup(file, instant.parse(made), dict(sizes), heartbeats, machine=machine, space=space)


def _damaged_error(file: str, what: str) -> BadData:
    return BadData(f"the backup {file} is damaged: {what}", "use another backup; nothing was restored", code="damaged")


# -- the settings that it brings -------------------------------------------------------------------------------------


def describe_settings(text: bytes) -> tuple[str, ...]:
    """Return the settings that differ from the defaults, one a line: ``[ttl] broadcast = 5``. The text comes from
    elsewhere: it is shown short and neutral."""
    if len(text) > MOST_SHOWN:
        return (f"{paths.CONFIG} is too long to show",)
    try:
        table = tomllib.loads(text.removeprefix(codec.BOM).decode())
        found = [line for section, content in table.items() for line in _describe_section(section, content)]
    except (ValueError, RecursionError):
        return (f"{paths.CONFIG} is not valid TOML",)
    more = len(found) - _LINES
    return (*found[:_LINES], *([f"and {more} more"] if more > 0 else []))


def _describe_section(section: str, content: Any) -> Iterator[str]:
    for key, value in content.items() if isinstance(content, dict) else [("", content)]:
        why = _remark_on(section, key, value)
        if why is not None:
            yield clipped(neutral(f"[{section}] {key}"), _WIDTH) + clipped(neutral(f" = {value}"), _WIDTH) + why


def _remark_on(section: str, key: str, value: Any) -> str | None:
    """Return a remark on a setting (empty for most); None if the setting is the default."""
    fields = config_file.parse_config({section: {key: value} if key else value})
    if fields.pop("faults"):
        return " (wrong: it does not count)"
    if fields.pop("misplaced"):
        return " (ignored: it counts in your own configuration alone)"
    default = Config()
    return None if all(getattr(default, name) == said for name, said in fields.items()) else ""
