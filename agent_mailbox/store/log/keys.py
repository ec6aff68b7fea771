"""The user's key, which seals records.

Belongs here: the key's file, and the MAC (keyed BLAKE2b, RFC 7693). The key is among the user's own records, mode 0600.
A process that reads it can forge every seal: only the file's mode protects it (docs/trust.md).
"""

from __future__ import annotations

from ...errors import StorageFailed
from ..files import system
from ..files.small_files import Storing, make_whole_file, read_file

try:  # ``hashlib`` takes it from there, and its import costs three times as much
    from _blake2 import blake2b as blake2b
except ImportError:
    from hashlib import blake2b as blake2b


FILE = "key"
_FORM = b"agent-mailbox-key 1"
_PERSON = b"agent-mailbox"


class Key:
    """A key and its id, by which a seal names it."""

    def __init__(self, key_id: bytes, secret: bytes) -> None:
        self.id = key_id
        self._secret = secret

    def mac(self, *parts: bytes) -> bytes:
        """Return the MAC of the parts, 32 hex digits."""
        whole = b"".join([b"%d:%s" % (len(part), part) for part in parts])
        return blake2b(whole, digest_size=16, key=self._secret, person=_PERSON).hexdigest().encode()


def digest(*parts: bytes) -> bytes:
    """Return a digest of the parts, 32 hex digits; it needs no secret."""
    return blake2b(b"".join(parts), digest_size=16, person=_PERSON).hexdigest().encode()


def load(state: str) -> Key | None:
    """Return the user's key; None if there is none. Raise ``StorageFailed`` for a file without a key."""
    path = f"{state}/{FILE}"
    if (text := read_file(path)) is None:
        return None
    form, _, rest = text.rpartition(b" ")
    form, _, key_id = form.rpartition(b" ")
    try:
        secret = bytes.fromhex(rest.decode("ascii").strip())
    except ValueError:
        secret = b""
    if form != _FORM or len(secret) != 32:
        raise StorageFailed(
            f"{path} holds no key",
            "move it away and run `agent-mailbox init`, which makes another; old seals then prove nothing",
        )
    return Key(key_id, secret)


def make(state: str) -> None:
    """Make the user's key if there is none; of two concurrent calls, one makes it."""
    path = system.join(state, FILE)
    if system.exists(path):
        return
    text = b"%s %s %s\n" % (_FORM, system.urandom(4).hex().encode(), system.urandom(32).hex().encode())
    with Storing("make", state):
        system.make_directory(state)
    make_whole_file(path, text)  # without the key everything sealed by it would look forged
