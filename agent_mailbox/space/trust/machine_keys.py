"""A machine's key, which signs its lines for the others of a space (Ed25519, RFC 8032), and the person's word on those.

Belongs here: both files, signing and verifying, and changing the word: whose key is whose, and for whom each may speak.
It decides what counts, so only the person's commands write it. ``cryptography`` is imported by the first signature
alone: no reader needs it. Its public module hands over to what is imported here, and costs each send 14 ms more.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64

from ...core import codec
from ...core.address import ALL, check_id
from ...core.machine_rights import Rights
from ...core.proofs import is_machine
from ...core.records import USER, Record
from ...errors import BadData, Malformed, Refused, StorageFailed
from ...store.files import system
from ...store.files.small_files import read_file, remove_file, replace_file
from ...store.log import keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

FILE, RIGHTS = "key", "trust"
NOBODY = "nobody"
HEX = frozenset("0123456789abcdef")
FINGERPRINT = 32
"""Hex digits of a key's fingerprint."""
_FORM = b"agent-mailbox-machine-key 1 "


class RightsChange(Record):
    """The person's new word on a machine; None leaves that part as it is."""

    machine: str
    fingerprint: str | None = None
    user: bool | None = None
    sessions: tuple[str, ...] | None = None


class MachineKey:
    """A private key. ``public`` is its public one in Base64."""

    def __init__(self, seed: bytes) -> None:
        try:
            from cryptography.hazmat.bindings._rust import openssl

            self._key: Ed25519PrivateKey = openssl.ed25519.from_private_bytes(seed)
        except (ImportError, AttributeError):  # a later release may have it elsewhere
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

            self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = b2a_base64(self._key.public_key().public_bytes_raw(), newline=False)

    def sign_bytes(self, data: bytes) -> bytes:
        return b2a_base64(self._key.sign(data), newline=False)


def is_available() -> bool:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        return False
    return True


def is_kept(directory: str) -> bool:
    """Return whether a key is in the directory, though perhaps nothing here can use it."""
    return system.size(system.join(directory, FILE)) > 0


def load_key(directory: str) -> MachineKey | None:
    """Return the key in a directory; None if there is none, or nothing here can use it.

    Raise ``StorageFailed`` for a file without a key."""
    path = system.join(directory, FILE)
    text = read_file(path)
    if text is None or not is_available():
        return None
    try:
        seed = bytes.fromhex(text.removeprefix(_FORM).decode("ascii").strip())
    except ValueError:
        seed = b""
    if not text.startswith(_FORM) or len(seed) != 32:
        raise StorageFailed(f"{path} holds no key", "move it away and run `agent-mailbox engine join`")
    return MachineKey(seed)


def make_key(directory: str) -> None:
    """Make the key if there is none; the caller holds the machine's lock."""
    if not is_kept(directory):
        replace_file(system.join(directory, FILE), _FORM + system.urandom(32).hex().encode() + b"\n")


def remove_key(directory: str) -> None:
    remove_file(system.join(directory, FILE))


def key_fingerprint(public: bytes) -> str:
    """Return the short form of a public key by which people compare it: 32 hex digits."""
    return keys.digest(b"machine key", public).decode()


def is_signed(public: bytes, signature: bytes, data: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(a2b_base64(public)).verify(a2b_base64(signature), data)
    except (ValueError, InvalidSignature):  # ``binascii.Error`` is a ``ValueError``
        return False
    return True


def forget_rights(directory: str, machine: str, but: str = "") -> None:
    """Take back what the person said of a machine, unless its key is ``but``: its lines count as any program's."""
    rights, applied = _read_rights(directory)
    if machine in rights and rights[machine].fingerprint != but:
        del rights[machine]
        save_rights(directory, rights, applied=applied)


def load_rights(directory: str) -> dict[str, Rights]:
    """Return the rights of each machine; raise ``BadData`` for a file of another form."""
    return _read_rights(directory)[0]


def is_applied(directory: str) -> bool:
    """Return whether the lines that were here before the last change were judged again by it."""
    return _read_rights(directory)[1]


def save_rights(directory: str, rights: Mapping[str, Rights], *, applied: bool) -> None:
    told = {machine: {**vars(one), "sessions": list(one.sessions)} for machine, one in sorted(rights.items())}
    system.make_directory(directory)
    body = codec.dumps({"machines": told, "applied": applied}).encode()
    replace_file(system.join(directory, RIGHTS), body + b"\n")


def _read_rights(directory: str) -> tuple[dict[str, Rights], bool]:
    path = system.join(directory, RIGHTS)
    text = read_file(path)
    if text is None:
        return {}, True
    found = codec.parse(text)
    try:
        if isinstance(found, dict):
            told = {
                machine: Rights(str(one["fingerprint"]), one["user"] is True, tuple(map(str, one["sessions"])))
                for machine, one in found["machines"].items()
            }
            return told, found["applied"] is True
    except (KeyError, TypeError, AttributeError):
        pass
    raise BadData(f"record of the machines' rights has another form: {path}", "move it away, and say them again")


def read_changes(keys: Sequence[str], words: Sequence[str]) -> list[RightsChange]:
    """Return the changes that options say: ``MACHINE=FINGERPRINT`` and ``MACHINE=WHO,WHO``; raise ``Malformed``."""
    found = []
    for text in keys:
        machine, fingerprint = _split_option(text)
        fingerprint = fingerprint.replace(":", "").replace("-", "").lower()
        if len(fingerprint) != FINGERPRINT or not HEX.issuperset(fingerprint):
            raise Malformed(f"fingerprint is not {FINGERPRINT} hex digits: {text}", "`engine status` there shows it")
        found.append(RightsChange(machine, fingerprint))
    for text in words:
        machine, who = _split_option(text)
        said = [word for word in who.split(",") if word]
        if not said or (NOBODY in said and len(said) > 1):
            raise Malformed(f"speakers are missing: {text}", f"write {machine}=user,all, or {machine}={NOBODY}")
        sessions = tuple(dict.fromkeys(w if w == ALL else check_id(w) for w in said if w not in (USER, NOBODY)))
        found.append(RightsChange(machine, None, USER in said, sessions))
    return found


def _split_option(text: str) -> tuple[str, str]:
    machine, parted, rest = text.partition("=")
    if not parted or not is_machine(machine):
        raise Malformed(f"option is not MACHINE=…: {text}", "write it as in south=user,all")
    return machine, rest


def change_rights(directory: str, own: str, changes: Iterable[RightsChange]) -> None:
    """Keep the person's word. Raises ``Refused`` for this machine itself, and for one whose key is not confirmed."""
    rights = load_rights(directory)
    before = dict(rights)
    for one in changes:
        if one.machine == own:
            raise Refused(f"machine is this one: {own}", "name another machine")
        known = rights.get(one.machine)
        if known is None and one.fingerprint is None:
            raise Refused(
                f"machine's key is not confirmed: {one.machine}",
                f"add --key {one.machine}=FINGERPRINT, as `engine status` there shows it",
            )
        said = {name: value for name, value in vars(one).items() if name != "machine" and value is not None}
        rights[one.machine] = (known or Rights("")).replace(**said)
    if rights != before:
        save_rights(directory, rights, applied=False)
