"""The gateway's own directory, ``~/.swarm``: who it is, and its logs.

Belongs here: names, modes, the key file. The directory is 0700; every file in it is 0600 from the moment it exists.
What reads keys is imported where one is read: the mailbox's doctor looks at modes where the extra is not installed.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..errors import BadData, NotFound, Refused
from ..store.paths import open_file, storage_failed
from ..store.system import sync_directory

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY, LEDGER, OUTBOX, STATUSES, STATE = "key.pem", "ledger.jsonl", "outbox.jsonl", "statuses.jsonl", "state.json"
SERVING, CARRYING, STATE_LOCK = "serving.lock", "carrying.lock", "state.lock"
SOCKET = "local.sock"


def default(environ: Mapping[str, str]) -> str:
    """``AGENT_SWARM_HOME``, else the founding text's place: ``~/.swarm``, ``%APPDATA%\\swarm`` on Windows."""
    named = environ.get("AGENT_SWARM_HOME")
    if named:
        return os.path.abspath(named)
    if sys.platform == "win32":
        return os.path.join(environ.get("APPDATA") or os.path.expanduser("~"), "swarm")
    return os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".swarm")


class Home:
    """A gateway's directory."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def path(self, name: str) -> str:
        """A file in it."""
        return os.path.join(self.directory, name)

    def make(self) -> Ed25519PrivateKey:
        """Make the directory and the key, or take those that are there; raises ``Refused`` if others can read them."""
        try:
            os.makedirs(self.directory, mode=0o700, exist_ok=True)
        except OSError as error:
            raise storage_failed("make", self.directory, error) from None
        self.check_modes()
        if not os.path.lexists(self.path(KEY)):
            self._make_key()
        return self.key()

    def _make_key(self) -> None:
        """Aside, synced, then linked into place: two who make one at once agree on the first."""
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        key = Ed25519PrivateKey.generate()
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        aside = self.path(f"{KEY}.{os.getpid()}")
        try:
            write_private(aside, pem)
            try:
                os.link(aside, self.path(KEY))
            except FileExistsError:
                pass
            os.unlink(aside)
            sync_directory(self.directory)
        except OSError as error:
            raise storage_failed("write the key", self.path(KEY), error) from None

    def key(self) -> Ed25519PrivateKey:
        """The private key; raises ``NotFound`` before ``init``, ``Refused`` where others may read it, ``BadData``."""
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        path = self.path(KEY)
        if not os.path.lexists(path):
            raise NotFound(f"no swarm identity in {self.directory}", "`agent-mailbox swarm init` makes one")
        self.check_modes()
        with open(open_file(path, os.O_RDONLY), "rb") as file:
            data = file.read(8192)
        key: object = None
        try:
            key = serialization.load_pem_private_key(data, None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            pass
        if not isinstance(key, Ed25519PrivateKey):
            raise BadData(f"{path} holds no Ed25519 key", "take it from a backup; a new one is a new identity")
        return key

    def check_modes(self) -> None:
        """Raise ``Refused`` if the directory or the key is another's, or open to others."""
        for path in (self.directory, self.path(KEY)):
            problem = loose(path)
            if problem:
                raise Refused(f"{path} {problem}", "chmod go= it, and make it yours; a key others read is no secret")


def loose(path: str) -> str:
    """What is wrong with whose and how open a private file is; empty: nothing, or it is not there."""
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return ""
    if stat.S_ISLNK(there.st_mode):
        return "is a symbolic link"
    if there.st_uid != os.geteuid():
        return f"belongs to uid {there.st_uid}"
    return "can be read by others" if there.st_mode & 0o077 else ""


def write_private(path: str, data: bytes) -> None:
    """A new file, 0600 from the start, on the disk when this returns."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
