"""Strict reading of the wire: JSON, ids, instants, versions, keys, endpoints.

Belongs here: the forms. They are narrow on purpose: six fields are signed without separators, and each fixed form takes
away a way for two messages to look alike.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any
from urllib.parse import urlsplit

from ...core import instant
from .refusal import Refusal

PROTOCOL = "0.1.0"
BROADCAST = "broadcast"
TYPES = ("message", "system", "notification")
MAX_ENDPOINT = 512
MAX_DEPTH = 24
FRESH = 15 * 60_000
"""Milliseconds a timestamp may be off, either way: as far as unattended clocks are."""
_SMALL = frozenset(
    bytes.fromhex(text)
    for text in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    )
)
"""The encodings of points of small order, less the sign bit."""
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z", re.ASCII)
_VERSION = re.compile(r"(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})(?:[-+][0-9A-Za-z.+-]{1,64})?", re.ASCII)
_AGENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}", re.ASCII)


def _object_from_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _parse_integer(text: str) -> int:
    if len(text) > 20 or not -(1 << 63) <= int(text) < 1 << 63:
        raise ValueError("a number out of range")
    return int(text)


def _parse_decimal(text: str) -> float:
    value = float(text)
    if len(text) > 64 or value - value != 0:
        raise ValueError("a number out of range")
    return value


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


def parse_json(data: bytes | str, what: str = "the body") -> dict[str, Any]:
    """Return the JSON object (RFC 8259) in ``data``; raise ``Refusal`` (400).

    It is UTF-8, at most ``MAX_DEPTH`` levels deep, without repeated keys, NaN, numbers beyond 64 bits or half surrogate
    pairs.
    """
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        value = json.loads(
            text,
            object_pairs_hook=_object_from_pairs,
            parse_int=_parse_integer,
            parse_float=_parse_decimal,
            parse_constant=_refuse_constant,
        )
        if not isinstance(value, dict):
            raise ValueError("not a JSON object")
        if _nesting_depth(value) > MAX_DEPTH:
            raise ValueError("nested too deeply")
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError:
        raise Refusal("INVALID_FORMAT", f"{what} is not UTF-8") from None
    except UnicodeEncodeError:
        raise Refusal("INVALID_FORMAT", f"{what} holds half of a surrogate pair") from None
    except RecursionError:
        raise Refusal("INVALID_FORMAT", f"{what} is nested too deeply") from None
    except json.JSONDecodeError:
        raise Refusal("INVALID_FORMAT", f"{what} is not JSON") from None
    except ValueError as error:
        raise Refusal("INVALID_FORMAT", f"{what}: {error}") from None
    return value


def _nesting_depth(value: Any) -> int:
    level, layer = 0, [value]
    while layer:
        level += 1
        if level > MAX_DEPTH:
            break
        layer = [
            inner
            for one in layer
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return level


def dump_json(value: Any) -> str:
    """Return compact JSON: keys in their order, text as it is."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def is_uuid(text: str) -> bool:
    """Return whether a text is a UUID in its one canonical spelling: lower case, with hyphens."""
    return _UUID.fullmatch(text) is not None


def is_instant(text: str) -> bool:
    """Return whether a text is a real instant in the one canonical spelling, ``YYYY-MM-DDTHH:MM:SS.mmmZ``."""
    if _INSTANT.fullmatch(text) is None:
        return False
    try:
        return instant.text(instant.parse(text)) == text
    except ValueError:
        return False


def later_instant(now: int, past: str) -> str:
    """Return the instant of an event at ``now`` (ms) that follows another at ``past`` (empty: none).

    It is at least a millisecond after ``past``, whatever clock dated that: the decider knows what its event follows.
    """
    return instant.text(max(now, instant.parse(past) + 1) if past else now)


def is_agent_id(text: str) -> bool:
    """Return whether a text is an agent's id: ASCII letters, digits and ``. _ @ + -``, safe in paths, shells and
    logs."""
    return _AGENT.fullmatch(text) is not None


def is_admissible(agent_id: str) -> bool:
    """Return whether an agent of this id may be in a swarm: reserved words and endings in a message type are out.

    Recipient, type and content are signed without separators: mail to ``bob`` would verify as mail to ``bobmessage``.
    """
    reserved = (BROADCAST, "user", "all")
    return is_agent_id(agent_id) and agent_id not in reserved and not agent_id.endswith(TYPES)


def check_version(text: str) -> None:
    """Raise ``Refusal`` unless the version is semver of our major (founding text: same major is compatible)."""
    match = _VERSION.fullmatch(text)
    if match is None:
        raise Refusal("INVALID_FORMAT", "protocol_version is not a version")
    if match.group(1) != PROTOCOL.partition(".")[0]:
        raise Refusal("UNSUPPORTED_VERSION", f"protocol_version {text}: this agent speaks {PROTOCOL}")


def raw_key(text: str) -> bytes:
    """Return the 32 bytes of an Ed25519 public key in standard base64 (43 or 44 characters); raise ``ValueError``.

    Points of small order are refused: anybody's signature verifies under one (RFC 8032 leaves that open).
    """
    key = decode_base64(text if len(text) != 43 else text + "=")
    if len(key) != 32:
        raise ValueError("an Ed25519 key has 32 bytes")
    if key[:31] + bytes([key[31] & 0x7F]) in _SMALL:
        raise ValueError("a key of small order is nobody's")
    return key


def decode_base64(text: str) -> bytes:
    """Return the bytes of canonical standard base64; raise ``ValueError`` for any other spelling."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        raise ValueError("not base64") from None
    if base64.b64encode(data).decode() != text:
        raise ValueError("not canonical base64")
    return data


def base64_of(data: bytes) -> str:
    """Return standard base64."""
    return base64.b64encode(data).decode()


def _check_host(url: str) -> None:
    """Raise ``ValueError`` if a URL's host is no name of the DNS: with letters beyond ASCII, or an empty part."""
    host = url.partition("://")[2].partition("/")[0].rpartition("@")[2]
    host = "" if host.startswith("[") else host.partition(":")[0]
    if not host.isascii():
        try:
            said = f", here {host.encode('idna').decode()}"
        except UnicodeError:
            said = ""
        raise ValueError(f"an endpoint's host is in ASCII, with xn--{said}")
    if host and not all(0 < len(part) < 64 for part in host.removesuffix(".").split(".")):
        raise ValueError("an endpoint's host has a part that is empty or longer than 63 characters")


def check_endpoint(text: str) -> str:
    """Return the endpoint less its trailing slashes; raise ``ValueError`` unless it is an https URL with a host and a
    single reading.

    ``peer_client`` checks the *address* it names when it connects.
    """
    _check_host(text)
    if len(text) > MAX_ENDPOINT or not text.isascii() or not text.isprintable() or set(text) & set(" \\<>\"'`{}|^"):
        raise ValueError("an endpoint is an https URL")
    parts = urlsplit(text)
    if parts.scheme != "https" or not parts.hostname or parts.query or parts.fragment or "?" in text or "#" in text:
        raise ValueError("an endpoint is an https URL without query or fragment")
    if "@" in parts.netloc or "%" in text or any(part in (".", "..") for part in parts.path.split("/")):
        raise ValueError("an endpoint has neither user, escape nor dot segment")
    if parts.port == 0:
        raise ValueError("an endpoint has a port")
    return text.rstrip("/")
