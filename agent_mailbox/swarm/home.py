"""The gateway's own directory, ``~/.swarm``: its identity and its logs.

Belongs here: file names, modes, the key file. The directory is 0700; every file is created 0600. Functions that use a
key import the library themselves: the mailbox's doctor checks modes without the extra.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from ..errors import BadData, Busy, NotFound, Refused
from ..mailbox.mailbox_gateway import SERVING
from ..store.files.small_files import Storing, make_whole_file, read_file
from ..store.files.system import make_directory
from ..store.locks.lock import SOON, FileLock

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY, LEDGER, OUTBOX, STATUSES, STATE = "key.pem", "ledger.jsonl", "outbox.jsonl", "statuses.jsonl", "state.json"
PAST = f"{KEY}.until-"
"""The beginning of the name of a key that another took the place of, ahead of the instant."""
CARRYING, STATE_LOCK, FLUSH = "carrying.lock", "state.lock", "flush"
SOCKET = "local.sock"
INIT = "run `agent-mailbox swarm init --agent ID --endpoint URL`"
"""The hint for a home without an identity."""


class Home:
    """A gateway's directory."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def path_of(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def ensure_directory(self) -> None:
        """Create the directory if missing. Raise ``Refused`` if others can read it."""
        with Storing("make", self.directory):
            make_directory(self.directory, parents=0o755)
        self.check_modes()

    def make_key(self) -> Ed25519PrivateKey:
        """Create the directory and the key if missing; return the key. Raise ``Refused`` if others can read either.

        The first of two concurrent callers wins.
        """
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        from ..identity import tls_certificates  # which only the extra can load

        self.ensure_directory()
        if not os.path.lexists(self.path_of(KEY)):
            make_whole_file(self.path_of(KEY), tls_certificates.key_text(Ed25519PrivateKey.generate()))
        return self.read_key()

    def read_key(self) -> Ed25519PrivateKey:
        """Return the private key. Raise ``NotFound`` before ``init``, ``Refused`` if it is not private, ``BadData`` if
        unusable."""
        path = self.path_of(KEY)
        if not os.path.lexists(path):
            raise NotFound(f"swarm identity missing: {self.directory}", INIT)
        self.check_modes()
        key = key_in(read_file(path) or b"")
        if key is None:
            raise BadData(f"Ed25519 key invalid: {path}", "restore the file from a backup; a new key is a new identity")
        return key

    def past_keys(self) -> list[tuple[str, Ed25519PrivateKey]]:
        """Return the keys that others took the place of, each with the instant until which it was ours, in order."""
        names = sorted(name for name in os.listdir(self.directory) if name.startswith(PAST))
        keys = ((name.removeprefix(PAST), key_in(read_file(self.path_of(name)) or b"")) for name in names)
        return [(until, key) for until, key in keys if key is not None]

    def hold_serving(self) -> FileLock:
        """Return the lock of a gateway that serves, taken; raise ``Busy`` if another one does."""
        try:
            return FileLock(self.path_of(SERVING), SOON).take()
        except Busy as error:
            what = f"gateway is served already: {self.directory} ({error.what})"
            raise Busy(what, "stop the other `agent-mailbox swarm serve` first") from None

    def check_modes(self) -> None:
        """Raise ``Refused`` if the directory or the key is another's, or open to others."""
        for path in (self.directory, self.path_of(KEY)):
            problem = mode_problem(path)
            if problem:
                raise Refused(f"{path} {problem}", f"own it yourself, not as a link, then run `chmod go= {path}`")


def key_in(pem: bytes) -> Ed25519PrivateKey | None:
    """Return the private key that a key file's bytes hold; None if they hold none of ours."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        key = serialization.load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, Ed25519PrivateKey) else None


def mode_problem(path: str) -> str:
    """Return what is wrong with a private file's owner or mode; empty if nothing is, or if it is missing."""
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return ""
    if stat.S_ISLNK(there.st_mode):
        return "is a symbolic link"
    if there.st_uid != os.geteuid():
        return f"belongs to uid {there.st_uid}"
    return "can be read by others" if there.st_mode & 0o077 else ""
