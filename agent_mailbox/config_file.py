"""``config.toml``, a mailbox's and the person's own: their keys, and clear errors for wrong values. They are data;
reading them executes nothing.

Belongs here: the keys of each file. A mailbox's file comes with a checkout, so it names no program, URL, network or
permission. Such a key in it is ignored with a warning: an error would stop the mail after an upgrade.
"""

from __future__ import annotations

import tomllib
from functools import partial

from .core.address import MODES, NAMESPACES
from .core.attention import quiet_hours
from .core.expiry import DEFAULT_TTL
from .core.records import MAX_TTL_HOURS
from .errors import BadData
from .store import system
from .store.paths import storage_failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

_INTEGERS = {
    ("steward", "max_live"): "max_live",
    ("limits", "content_bytes"): "max_content",
    ("limits", "long_words"): "long_words",
    ("limits", "messages_per_minute"): "max_per_minute",
    ("hook", "tokens"): "hook_tokens",
}
_NUMBERS = {
    ("steward", "freeze_after_hours"): "freeze_after_hours",
    ("steward", "retire_after_days"): "retire_after_days",
}
_SWARM_INTEGERS = (
    *("messages_per_minute", "swarm_messages_per_minute", "joins_per_hour", "requests_per_minute"),
    *("body_bytes", "connections", "connections_per_address", "retry_seconds"),
)
_SWARM_TEXTS = ("ca_file", "wake_url", "wake_secret_file")
_SWARM_SWITCHES = ("private_addresses", "require_join_proof")
SWARM = (*_SWARM_INTEGERS, *_SWARM_TEXTS, *_SWARM_SWITCHES, "trusted_proxies", "networks")
_SWITCHES = {("hook", "doorbell"): "doorbell"}
_OWN_SWITCHES = {("teams", "bridge"): "bridge", ("leases", "enforce"): "lease_enforce"}
PERSONAL = {
    ("control", "cleanup"): "a program",
    ("control", "default"): "a permission",
    ("leases", "enforce"): "a permission",
    ("notify", "command"): "a program",
    ("notify", "ntfy"): "a URL",
    ("notify", "webhook"): "a URL",
    ("notify", "desktop"): "a program that starts",
    ("notify", "quiet"): "who reaches the person when",
    ("notify", "again_minutes"): "who reaches the person when",
    ("notify", "content"): "what leaves this machine",
    ("wake", "command"): "a program",
    ("wake", "per_hour"): "how often a program starts",
    ("teams", "bridge"): "a program of ours that would start with every session",
    ("swarm", "wake_url"): "a URL",
    ("swarm", "wake_secret_file"): "a file whose content is sent",
    ("swarm", "ca_file"): "whose certificates are believed",
    ("swarm", "trusted_proxies"): "whose word for an address is believed",
    ("swarm", "private_addresses"): "a network",
    ("swarm", "networks"): "a network",
    ("swarm", "require_join_proof"): "a permission",
}
"""The keys that count in the person's own configuration alone, each with its kind of danger."""
_MAILBOX = "mailbox"
"""The person's table of tables for single mailboxes, by their paths."""
CONTROL_WAIT_MAX = 540
"""Claude Code waits 600 s for a hook and then goes on without it."""
HOOK_TOKENS_MAX = 2375
"""Claude Code shows at most 10,000 characters of a hook's text (four to a token); above it the model gets a path and a
preview."""


def read(fd: int, path: str) -> dict[str, Any]:
    """Return the fields of ``config.Config`` that an open file sets, and close it; raises ``BadData`` naming what is
    wrong."""
    there = system.fstat(fd)
    return {**parsed(_table(fd, path), path), "stamp": (there.st_ino, there.st_size, there.st_mtime_ns)}


def read_own(fd: int, path: str, mailbox: str) -> dict[str, Any]:
    """Return the fields of ``own_config.OwnConfig`` that the person's open file sets for a mailbox, and close it;
    raises as ``read`` does."""
    return own(_table(fd, path), path, mailbox)


def _table(fd: int, path: str) -> dict[str, Any]:
    try:
        with system.stream(fd, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise storage_failed("read", path, error) from None
    except (ValueError, RecursionError) as error:
        hint = "correct it; every key is optional"
        if str(error).startswith(("Cannot declare", "Cannot overwrite")):
            hint = "a table or a key may stand in it once: join the two tables into one"
        raise BadData(f"{path} is not valid TOML: {error}", hint) from None


def _wrong(path: str, key: str, need: str) -> BadData:
    return BadData(f"{path}: {key} must be {need}", "correct it; every key is optional")


def _given(table: Mapping[str, Any], path: str) -> dict[tuple[str, str], Any]:
    """Return the values of a table of tables by section and key."""
    given: dict[tuple[str, str], Any] = {}
    for section, content in table.items():
        if not isinstance(content, dict):
            raise _wrong(path, section, "a table")
        given.update({(section, key): value for key, value in content.items()})
    return given


def own(table: Mapping[str, Any], path: str, mailbox: str) -> dict[str, Any]:
    """Return the fields of ``own_config.OwnConfig`` that the person's table of tables sets for a mailbox; the mailbox's
    own table goes first. Raises ``BadData`` that names the wrong key of ``path``."""
    said: dict[str, Any] = {"swarm": {}, "notify": {}, "wake": {}}
    for found in (_general(table), _special(table, path, mailbox)):
        for spot, value in _given(found, path).items():
            name, wrong = ".".join(spot), partial(_wrong, path, ".".join(spot))
            if spot == ("control", "cleanup"):
                if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                    raise wrong("a list of texts")
                said["cleanup"] = tuple(value)
            elif spot == ("control", "default"):
                if value not in ("deny", "ask"):
                    raise wrong('"deny" or "ask"')
                said["control_default"] = value
            elif spot in _OWN_SWITCHES:
                if not isinstance(value, bool):
                    raise wrong("true or false")
                said[_OWN_SWITCHES[spot]] = value
            elif spot[0] == "notify" and spot in PERSONAL:
                said["notify"][spot[1]] = _notify(spot[1], value, wrong)
            elif spot[0] == "wake" and spot in PERSONAL:
                said["wake"][spot[1]] = _wake(spot[1], value, wrong)
            elif spot[0] == "swarm" and spot[1] in SWARM:
                said["swarm"][spot[1]] = _swarm(spot[1], value, wrong)
            else:
                what = f"{path}: {name} is not a key of the person's own configuration"
                raise BadData(what, _known(spot[0], {*PERSONAL, *(("swarm", key) for key in SWARM)}))
    return said


def _general(table: Mapping[str, Any]) -> dict[str, Any]:
    return {section: content for section, content in table.items() if section != _MAILBOX}


def _special(table: Mapping[str, Any], path: str, mailbox: str) -> Mapping[str, Any]:
    boxes = table.get(_MAILBOX, {})
    if not isinstance(boxes, dict) or not all(isinstance(box, dict) for box in boxes.values()):
        raise _wrong(path, _MAILBOX, "tables named by the mailboxes' paths")
    real = system.real_path(mailbox)
    return next((box for name, box in boxes.items() if system.real_path(system.at_home(name)) == real), {})


def parsed(table: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the fields of ``config.Config`` that a table of tables sets; raises ``BadData`` naming the wrong key of
    ``path``."""
    wrong = partial(_wrong, path)
    known = {("ttl", mode) for mode in MODES} | {("session", "role"), ("session", "tags"), ("tags", "namespaces")}
    known |= _SWITCHES.keys()
    known |= {("control", "timeout")} | {("swarm", key) for key in SWARM}
    known |= _INTEGERS.keys() | _NUMBERS.keys()
    every = _given(table, path)
    given = {spot: value for spot, value in every.items() if spot not in PERSONAL}
    for section, key in given.keys() - known:
        raise BadData(f"{path}: unknown key {key!r} in [{section}]", _known(section, known))

    said: dict[str, Any] = {}
    for spot, value in given.items():
        name = ".".join(spot)
        if spot[0] == "ttl":
            if value != "none" and not _positive(value, MAX_TTL_HOURS):
                raise wrong(name, 'a positive number of hours (a century at most) or "none"')
            said.setdefault("ttls", dict(DEFAULT_TTL))[spot[1]] = None if value == "none" else value
        elif spot in _INTEGERS:
            if not _positive(value) or type(value) is not int:
                raise wrong(name, "a positive integer")
            said[_INTEGERS[spot]] = value
        elif spot in _NUMBERS:
            if not _positive(value):
                raise wrong(name, "a positive number")
            said[_NUMBERS[spot]] = value
        elif spot[0] == "swarm":
            said.setdefault("swarm", {})[spot[1]] = _swarm(spot[1], value, partial(wrong, name))
        elif spot in _SWITCHES:
            if not isinstance(value, bool):
                raise wrong(name, "true or false")
            said[_SWITCHES[spot]] = value
        elif spot == ("control", "timeout"):
            if not _positive(value, CONTROL_WAIT_MAX):
                raise wrong(name, f"a number of seconds, {CONTROL_WAIT_MAX} at most: the client gives up then")
            said["control_timeout"] = value
        elif spot == ("session", "role"):
            if not isinstance(value, str):
                raise wrong(name, "text")
            said["session_role"] = value
        else:
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise wrong(name, "a list of texts")
            said[{"session": "session_tags", "tags": "namespaces"}[spot[0]]] = tuple(value)
    if "namespaces" in said:
        said["namespaces"] = tuple(dict.fromkeys([*NAMESPACES, *said["namespaces"]]))
    if "hook_tokens" in said:
        said["hook_tokens"] = min(said["hook_tokens"], HOOK_TOKENS_MAX)
    return {**said, "misplaced": tuple(".".join(spot) for spot in every if spot in PERSONAL)}


def _known(section: str, keys: Iterable[tuple[str, str]]) -> str:
    """Return a hint that lists the keys of a section, or the sections."""
    here = sorted(key for place, key in keys if place == section)
    if here:
        return f"[{section}] has {', '.join(here)}"
    return f"there are {', '.join(sorted({f'[{place}]' for place, _ in keys}))}"


def _swarm(key: str, value: Any, wrong: Callable[[str], BadData]) -> Any:
    """Return a value of ``[swarm]``, checked; raises ``wrong`` with the expected kind."""
    if key in _SWARM_INTEGERS:
        if not _positive(value) or type(value) is not int:
            raise wrong("a positive integer")
    elif key in _SWARM_TEXTS:
        if not isinstance(value, str) or not value:
            raise wrong("text")
    elif key in _SWARM_SWITCHES:
        if not isinstance(value, bool):
            raise wrong("true or false")
    elif not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise wrong("a list of addresses")
    elif key == "networks" and not all(map(_is_network, value)):
        raise wrong('a list of networks such as "100.64.0.0/10"')
    return tuple(value) if isinstance(value, list) else value


def _program(value: Any, wrong: Callable[[str], BadData]) -> tuple[str, ...]:
    """Return a program and its arguments, checked."""
    if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
        raise wrong("a list of texts: the program and its arguments")
    return tuple(value)


def _wake(key: str, value: Any, wrong: Callable[[str], BadData]) -> Any:
    """Return a value of ``[wake]``, checked; raises ``wrong`` with the expected kind."""
    if key == "command":
        return _program(value, wrong)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 1000:
        raise wrong("a number from 1 to 1000")
    return value


def _notify(key: str, value: Any, wrong: Callable[[str], BadData]) -> Any:
    """Return a value of ``[notify]``, checked; raises ``wrong`` with the expected kind."""
    if key == "command":
        return _program(value, wrong)
    if key in ("ntfy", "webhook"):
        if not isinstance(value, str) or not value.startswith(("https://", "http://")) or not value.isprintable():
            raise wrong("a URL that begins with https://")
    elif key == "quiet":
        try:
            quiet_hours(value if isinstance(value, str) else "")
        except ValueError:
            raise wrong('two times such as "22:00-07:00"') from None
    elif key == "again_minutes":
        if value != 0 and not _positive(value, 10_000_000):
            raise wrong("a number of minutes, 0 for never")
    elif not isinstance(value, bool):
        raise wrong("true or false")
    return value


def _is_network(text: str) -> bool:
    from ipaddress import ip_network  # few configurations have one

    try:
        return bool(ip_network(text))
    except ValueError:
        return False


def _positive(value: object, most: float = 1 << 53) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= most
