"""Backups: a mailbox in one file, and a mailbox from one.

Belongs here: the file's format, its checks, and the order in which a name comes to mean something. A backup is a tar
file (any tool reads it) of the logs, the archive and the configuration as they were at one moment, of ``backup.json``
(when, and the heartbeats), and last of ``SHA256SUMS`` over all of these, as ``sha256sum -c`` takes it. Nothing derived
is in it.

Both ways the work is done beside, synced, verified, and then renamed: killed at any step, there is a whole backup or
none under its name, a whole mailbox or none, and a repetition takes over what was left.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import stat
import tarfile

from ..core import codec, instant
from ..core.address import check_id
from ..core.records import BadLine, Record
from ..errors import BadData, MailboxError, NotFound, Refused
from ..store import creation, custody, custody_setup, paths
from ..store.lines import CHUNK
from ..store.lock import FileLock
from ..store.snapshot import Snapshot
from ..store.system import sync_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import IO, Any

    from ..mailbox.facade import Mailbox

VERSION = 1
ABOUT, SUMS = "backup.json", "SHA256SUMS"
LIVE = (paths.MESSAGES, paths.READS, paths.ROSTER, paths.CONFIG)
MAX_ABOUT = 64 << 20
"""Bytes of ``backup.json`` or ``SHA256SUMS`` that are read: some hundred thousand sessions or files."""


class Backup(Record):
    """A verified backup: where, when it was made (ms), its files with their bytes, and the heartbeats (ns)."""

    file: str
    made: int
    sizes: Mapping[str, int]
    heartbeats: Mapping[str, int]


# -- making one -------------------------------------------------------------------------------------------------------


def write(mailbox: Mailbox, file: str, *, force: bool = False) -> Backup:
    """Write the mailbox as it is now into ``file`` (0600), verified and durable.

    Raises ``Refused`` if the file is there, unless ``force``; ``Busy`` beside a steward; ``StorageFailed``; ``BadData``
    if what was written does not read back.
    """
    file = os.path.abspath(file)
    _refuse_existing(file, force)
    directory, name = os.path.split(file)
    try:
        with FileLock(os.path.join(directory, f".{name}.unfinished"), mailbox.logs.wait) as aside:
            try:
                made = _written(mailbox, aside)
                _refuse_existing(file, force)
                os.rename(aside.path, file)
            except BaseException:
                os.unlink(aside.path)
                raise
            sync_directory(directory)
    except OSError as error:
        raise paths.storage_failed("write", file, error) from None
    return made.replace(file=file)


def _written(mailbox: Mailbox, aside: FileLock) -> Backup:
    os.ftruncate(aside.fd, 0)  # what a killed one left
    _fill(_Unbuffered(aside.fd), mailbox)
    os.fsync(aside.fd)
    return verify(aside.path)


def _refuse_existing(file: str, force: bool) -> None:
    if os.path.isdir(file):
        raise Refused(f"{file} is a directory", "name the file to write")
    if os.path.lexists(file) and not force:
        raise Refused(f"{file} is there already", "name another file, or overwrite it with --force", code="exists")


def _fill(out: IO[bytes], mailbox: Mailbox) -> None:
    sums: list[str] = []
    with Snapshot(mailbox.logs, mailbox.archive) as snapshot, tarfile.open(fileobj=out, mode="w") as tar:
        now = mailbox.now()
        about = {"format": "agent-mailbox backup", "version": VERSION, "made": instant.text(now)}
        text = codec.dumps({**about, "heartbeats": snapshot.heartbeats}).encode() + b"\n"
        _add(tar, ABOUT, len(text), [text], now, sums)
        for part in snapshot.parts:
            _add(tar, part.name, part.size, part.chunks(), now, sums)
        text = "".join(sums).encode()
        _add(tar, SUMS, len(text), [text], now, sums)


def _add(tar: tarfile.TarFile, name: str, size: int, chunks: Iterable[bytes], now: int, sums: list[str]) -> None:
    digest = hashlib.sha256()
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = size, 0o600, now // 1000

    def hashed() -> Iterator[bytes]:
        for chunk in chunks:
            digest.update(chunk)
            yield chunk

    tar.addfile(entry, _Chunks(hashed()))
    sums.append(f"{digest.hexdigest()}  {name}\n")


class _Unbuffered(io.BytesIO):
    """An open file that tarfile can write to, which asks where it is and writes on."""

    def __init__(self, fd: int) -> None:
        super().__init__()
        self._fd = fd
        self._at = 0

    def tell(self) -> int:
        return self._at

    def write(self, data: Any) -> int:
        _write(self._fd, bytes(data))
        self._at += len(data)
        return len(data)


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


class _Chunks(io.RawIOBase):
    """Chunks as a file to read from, once."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._rest) < size:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._rest += chunk
        size = len(self._rest) if size < 0 else size
        found, self._rest = self._rest[:size], self._rest[size:]
        return found


# -- reading one ------------------------------------------------------------------------------------------------------


def verify(file: str, take: Callable[[str, Iterator[bytes]], None] | None = None) -> Backup:
    """Read a whole backup and check every byte of it; ``take`` gets each file of the mailbox with its content (which
    counts for nothing until this returns).

    Raises ``NotFound``, ``BadData`` saying what is wrong with it, or ``StorageFailed``.
    """
    try:
        with open(file, "rb") as source, tarfile.open(fileobj=source, mode="r:") as tar:
            return _verified(file, tar, take)
    except FileNotFoundError:
        raise NotFound(f"no backup {file}", "`agent-mailbox backup FILE` makes one") from None
    except (tarfile.TarError, EOFError, UnicodeError, ValueError, OverflowError) as error:
        raise _damaged(file, f"it is no whole tar file ({error})") from None
    except OSError as error:
        raise paths.storage_failed("read", file, error) from None


def _verified(file: str, tar: tarfile.TarFile, take: Callable[[str, Iterator[bytes]], None] | None) -> Backup:
    sums: dict[str, str] = {}
    sizes: dict[str, int] = {}
    about = told = b""
    for entry in tar:
        if told:
            raise _damaged(file, f"{entry.name!r} stands behind the checksums")
        if not _is_plain(entry) or not _belongs(entry.name) or entry.name in sums:
            raise _damaged(file, f"{entry.name!r} has no place in a backup")
        content = tar.extractfile(entry)
        assert content is not None
        digest = hashlib.sha256()
        if entry.name == SUMS:
            told = content.read(MAX_ABOUT)
            continue
        chunks = _hashing(content, digest.update)
        if entry.name == ABOUT:
            about = b"".join(chunks) if entry.size <= MAX_ABOUT else b""
        else:
            sizes[entry.name] = entry.size
            if take is not None:
                take(entry.name, chunks)
        for _ in chunks:
            pass
        sums[entry.name] = digest.hexdigest()
    _compare(file, sums, told)
    return _about(file, about, sizes)


def _hashing(content: IO[bytes], note: Callable[[bytes], None]) -> Iterator[bytes]:
    while chunk := content.read(CHUNK):
        note(chunk)
        yield chunk


def _is_plain(entry: tarfile.TarInfo) -> bool:
    """A file whose bytes stand in the tar: no link, and nothing that a few bytes would blow up to terabytes."""
    return entry.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not entry.issparse()


def _belongs(name: str) -> bool:
    """Is it one of the names we write? So none leads out of the directory it is put into."""
    directory, slash, base = name.rpartition("/")
    if not slash:
        return name in (*LIVE, ABOUT, SUMS)
    return directory == paths.ARCHIVE and base.endswith(".jsonl") and base[:1].isalnum() and base.isprintable()


def _compare(file: str, sums: Mapping[str, str], told: bytes) -> None:
    wanted: dict[str, str] = {}
    for line in told.decode("ascii").splitlines():
        digest, _, name = line.partition("  ")
        wanted[name] = digest
    for name in (*wanted, *sums):
        if name not in sums:
            raise _damaged(file, f"{name!r} is missing")
        if wanted.get(name) != sums[name]:
            raise _damaged(file, f"{name!r} is not what was backed up")
    if paths.MESSAGES not in sums:
        raise _damaged(file, f"it holds no {paths.MESSAGES}")


def _about(file: str, text: bytes, sizes: Mapping[str, int]) -> Backup:
    about = codec.parse(text, MAX_ABOUT, ours=False)
    if isinstance(about, BadLine) or about.get("format") != "agent-mailbox backup":
        raise BadData(f"{file} is no backup of a mailbox", "`agent-mailbox backup FILE` makes one")
    if about.get("version") != VERSION:
        raise BadData(f"{file} is of version {about.get('version')!r}", "use the agent-mailbox that made it")
    heartbeats, made = about.get("heartbeats"), about.get("made")
    if not isinstance(heartbeats, dict) or not isinstance(made, str):
        raise _damaged(file, f"{ABOUT} does not tell what it should")
    for session_id, at in heartbeats.items():
        try:
            check_id(session_id)
        except MailboxError as error:
            raise _damaged(file, error.what) from None
        if not isinstance(at, int) or not 0 <= at < 1 << 63:
            raise _damaged(file, f"the heartbeat of {session_id!r} is no time")
    return Backup(file, instant.parse(made), dict(sizes), heartbeats)


def _damaged(file: str, what: str) -> BadData:
    return BadData(f"{file} is damaged: {what}", "take another backup; nothing was restored", code="damaged")


# -- going back to one ------------------------------------------------------------------------------------------------


def restore(file: str, directory: str, environ: Mapping[str, str]) -> Backup:
    """Make ``directory`` the mailbox of a backup and the user's own, as ``init`` does.

    Raises as ``verify`` does, and ``Refused`` if something stands there already (an empty directory is nothing).
    """
    directory = os.path.realpath(directory)
    _refuse_used(directory)
    parent, name = os.path.split(directory)
    aside = os.path.join(parent, f".{name}.restoring")
    try:
        os.makedirs(parent, mode=0o700, exist_ok=True)
        if not os.path.lexists(aside):
            os.mkdir(aside, 0o700)
        _refuse_strange(aside)
        with FileLock(aside, 0):
            backup = _unpack(file, aside)
            _refuse_used(directory)
            os.rename(aside, directory)
            sync_directory(parent)
    except OSError as error:
        raise paths.storage_failed("restore", directory, error) from None
    known = custody.find(directory, environ)
    if known is not None:  # of a mailbox that was here: what comes from elsewhere is confirmed by ``init --adopt``
        custody_setup.remove(known.directory)
    creation.create(directory, environ)
    return backup


def _refuse_used(directory: str) -> None:
    if paths.is_mailbox(directory):
        hint = "restore into another directory; `agent-mailbox init` on it if it is the one you restored"
        raise Refused(f"{directory} is a mailbox already", hint, code="exists")
    if os.path.lexists(directory) and not (os.path.isdir(directory) and not os.listdir(directory)):
        raise Refused(f"{directory} is there and not empty", "name a directory that is empty, or none", code="exists")


def _refuse_strange(aside: str) -> None:
    """What stands there is about to be emptied: it must be a directory of ours, and no link to another."""
    there = os.lstat(aside)
    if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.geteuid():
        raise Refused(f"{aside} stands in the way of restoring", "move it away", code="exists")


def _unpack(file: str, aside: str) -> Backup:
    """The files of a backup in the directory, all synced; what a killed restore left there goes first."""
    for entry in os.scandir(aside):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
    for name in (paths.ARCHIVE, paths.HEARTBEATS):
        os.mkdir(os.path.join(aside, name), 0o700)

    def take(name: str, chunks: Iterator[bytes]) -> None:
        fd = _made(os.path.join(aside, name))
        try:
            for chunk in chunks:
                _write(fd, chunk)
            os.fsync(fd)
        finally:
            os.close(fd)

    backup = verify(file, take)
    for session_id, at in backup.heartbeats.items():
        path = os.path.join(aside, paths.HEARTBEATS, session_id)
        os.close(_made(path))
        os.utime(path, ns=(at, at))
    for name in (paths.ARCHIVE, paths.HEARTBEATS, ""):
        sync_directory(os.path.join(aside, name))
    return backup


def _made(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
