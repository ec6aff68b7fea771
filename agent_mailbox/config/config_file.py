"""``config.toml``, a mailbox's and the person's own: their keys, and what is wrong with a file. They are data; reading
them executes nothing.

Belongs here: the keys of each file. A mailbox's file comes with a checkout, so it names no program, URL, network or
permission. Nothing in a file stops mail: what is wrong does not count, and is a ``Fault``. Then the default counts, or
for a decision the closed value (``CLOSED``).
"""

from __future__ import annotations

import tomllib
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

from ..core.address import DEFAULT_TTL, MODES, NAMESPACES
from ..core.attention import quiet_hours
from ..core.codec import BOM
from ..core.records import MAX_TTL_HOURS, Record
from ..core.text import near
from ..known_clients.every_client import STARTED
from ..store.files import system

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from ..errors import MailboxError

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
    ("tasks", "silent"): "task_silent",
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
_OWN_FIELDS = {("control", "cleanup"): "cleanup", ("control", "default"): "control_default", **_OWN_SWITCHES}
_FIELDS = {
    ("control", "timeout"): "control_timeout",
    ("session", "role"): "session_role",
    ("session", "tags"): "session_tags",
    ("tags", "namespaces"): "namespaces",
    **_INTEGERS,
    **_NUMBERS,
    **_SWITCHES,
}
_MAILBOX_KEYS = {
    *(("ttl", mode) for mode in MODES),
    *_FIELDS,
    *(("swarm", key) for key in SWARM),
}
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
    ("wake", "gap_seconds"): "how often mail wakes a session",
    ("wake", "per_thread"): "how often mail wakes a session",
    ("wake", "per_day"): "how often mail wakes a session",
    **{("up", word): "a program" for word in STARTED},
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
CLOSED: Mapping[tuple[str, str], Any] = {
    ("control", "default"): "deny",
    ("leases", "enforce"): True,
    ("swarm", "require_join_proof"): True,
}
"""The values of the person's deciding keys that count while nobody can tell what the file says."""
_MAILBOX = "mailbox"
"""The person's table of tables for single mailboxes, by their paths."""
CONTROL_WAIT_MAX = 540
"""Claude Code waits 600 s for a hook and then goes on without it."""
HOOK_TOKENS_MAX = 2375
"""Claude Code shows at most 10,000 characters of a hook's text (four to a token); above it the model gets a path and a
preview."""


class Fault(Record):
    """A thing that is wrong in a file, and does not count. ``section`` is its table's name, empty for the whole file;
    ``text`` says what and what to do. ``note``: a key that nobody knows, which a newer version may."""

    section: str
    text: str
    note: bool = False


class _WrongValueError(ValueError):
    """A value is not what its key needs; the text says what it must be."""


def read_config(fd: int) -> dict[str, Any]:
    """Return the fields of ``config.Config`` that an open file sets, and close it."""
    there = system.fstat(fd)
    table, faults = _read_table(fd)
    return {**parse_config(table, faults), "stamp": (there.st_ino, there.st_size, there.st_mtime_ns)}


def read_own(fd: int, mailbox: str) -> dict[str, Any]:
    """Return the fields of ``own_config.OwnConfig`` that the person's open file sets for a mailbox, and close it."""
    table, faults = _read_table(fd)
    return parse_own(table, mailbox, faults)


def fault_of_opening(error: MailboxError) -> tuple[Fault, ...]:
    """Return the fault of a file that cannot be opened."""
    return (Fault("", f"{error.what}, so none of its settings counts; {error.hint}"),)


def _read_table(fd: int) -> tuple[dict[str, Any], tuple[Fault, ...]]:
    """Return an open file's table of tables, and close it; an empty one with the fault if it cannot be read."""
    try:
        with system.stream(fd, "rb") as file:
            return tomllib.loads(file.read().removeprefix(BOM).decode()), ()
    except OSError as error:
        return {}, (Fault("", f"cannot be read ({error.strerror}), so none of its settings counts"),)
    except (ValueError, RecursionError) as error:
        hint = "correct it"
        if str(error).startswith(("Cannot declare", "Cannot overwrite")):
            hint = "a table or a key may stand in it once: join the two tables into one"
        return {}, (Fault("", f"is not valid TOML ({error}), so none of its settings counts; {hint}"),)


def _given_values(
    table: Mapping[str, Any], known: set[tuple[str, str]], faults: list[Fault]
) -> dict[tuple[str, str], Any]:
    """Return the values of a table of tables by section and key, as far as both are known."""
    given: dict[tuple[str, str], Any] = {}
    sections = {section for section, _ in known}
    for section, content in table.items():
        if not isinstance(content, dict) and section in sections:
            faults.append(Fault(section, f"{section} must be a table; write [{section}] above its keys"))
        elif not isinstance(content, dict):
            faults.append(_unknown_key(("", section), known))
        for key in content if isinstance(content, dict) else ():
            if (section, key) in known:
                given[section, key] = content[key]
            else:
                faults.append(_unknown_key((section, key), known))
    return given


def _unknown_key(spot: tuple[str, str], known: Collection[tuple[str, str]]) -> Fault:
    """Return the fault of a key that nobody knows, with the key that may be meant."""
    section, key = spot
    name = f"{section}.{key}" if section else key
    if section and spot in _MAILBOX_KEYS:
        return Fault(section, f"{name} has no effect here: set it in the mailbox's own file", note=True)
    names = {f"{place} {word}".lower(): (place, word) for place, word in known}
    here = sorted(word for place, word in known if place == section)
    meant = [(section, word) for word in near(key.lower(), here)] or [
        *(names[word] for word in near(f"{section} {key}".lower(), [*names])),
        *sorted(spot for spot in known if spot[1] == key.lower()),
    ]
    if meant:
        advice = f"did you mean {'.'.join(meant[0])}?"
    elif here:
        advice = f"[{section}] has {', '.join(here)}"
    else:
        advice = f"there are {', '.join(sorted({f'[{place}]' for place, _ in known}))}"
    return Fault(section, f"unknown key {name} has no effect; {advice}", note=True)


def parse_own(table: Mapping[str, Any], mailbox: str, faults: Iterable[Fault] = ()) -> dict[str, Any]:
    """Return the fields of ``own_config.OwnConfig`` that the person's table of tables sets for a mailbox; the mailbox's
    own table goes first. ``faults``: those of the file."""
    known = {*PERSONAL, *(("swarm", key) for key in SWARM)}
    found = [*faults]
    values: dict[tuple[str, str], Any] = {}
    unclear = {fault.section for fault in found}
    for part in (_general_settings(table), _mailbox_settings(table, mailbox, found)):
        unclear |= {section for section, content in part.items() if not isinstance(content, dict)}
        values |= _check_values(_given_values(part, known, found), _own_value, CLOSED, found)
    if any(fault.section == _MAILBOX for fault in found):
        unclear.add("")
    values |= {spot: value for spot, value in CLOSED.items() if not unclear.isdisjoint(("", spot[0]))}
    said: dict[str, Any] = {"swarm": {}, "notify": {}, "wake": {}, "up": {}, "faults": (*found,)}
    for (section, key), value in values.items():
        if (section, key) in _OWN_FIELDS:
            said[_OWN_FIELDS[section, key]] = value
        else:
            said[section][key] = value
    return said


def _own_value(spot: tuple[str, str], value: Any) -> Any:
    """Return a value of the person's own file, checked; raises ``_WrongValueError``."""
    if spot == ("control", "cleanup"):
        return _check_texts(value)
    if spot == ("control", "default"):
        if value not in ("deny", "ask"):
            raise _WrongValueError('"deny" or "ask"')
        return value
    if spot in _OWN_SWITCHES:
        return _check_switch(value)
    if spot[0] == "up":
        return _check_program(value)
    return {"notify": _check_notify, "wake": _check_wake, "swarm": _check_swarm}[spot[0]](spot[1], value)


def _check_values(
    given: Mapping[tuple[str, str], Any],
    check: Callable[[tuple[str, str], Any], Any],
    closed: Mapping[tuple[str, str], Any],
    faults: list[Fault],
) -> dict[tuple[str, str], Any]:
    """Return the given values as ``check`` takes them. A wrong one is a fault, and its closed value counts, if it has
    one."""
    found: dict[tuple[str, str], Any] = {}
    for spot, value in given.items():
        try:
            found[spot] = check(spot, value)
        except _WrongValueError as need:
            instead = "the default"
            if spot in closed:
                found[spot] = closed[spot]
                instead = "true" if closed[spot] is True else closed[spot]
            faults.append(Fault(spot[0], f"{'.'.join(spot)} must be {need}; until then {instead} counts"))
    return found


def _general_settings(table: Mapping[str, Any]) -> dict[str, Any]:
    return {section: content for section, content in table.items() if section != _MAILBOX}


def _mailbox_settings(table: Mapping[str, Any], mailbox: str, faults: list[Fault]) -> Mapping[str, Any]:
    boxes = table.get(_MAILBOX, {})
    if not isinstance(boxes, dict) or not all(isinstance(box, dict) for box in boxes.values()):
        faults.append(Fault(_MAILBOX, f"{_MAILBOX} must be tables named by the mailboxes' paths"))
        return {}
    real = system.real_path(mailbox)
    return next((box for name, box in boxes.items() if system.real_path(system.at_home(name)) == real), {})


def parse_config(table: Mapping[str, Any], faults: Iterable[Fault] = ()) -> dict[str, Any]:
    """Return the fields of ``config.Config`` that a table of tables sets. ``faults``: those of the file."""
    found = [*faults]
    given = _given_values(table, {*_MAILBOX_KEYS, *PERSONAL}, found)
    misplaced = tuple(".".join(spot) for spot in given if spot in PERSONAL)
    values = _check_values({s: v for s, v in given.items() if s not in PERSONAL}, _mailbox_value, {}, found)
    said: dict[str, Any] = {"misplaced": misplaced, "faults": (*found,)}
    for (section, key), value in values.items():
        if section == "ttl":
            said.setdefault("ttls", dict(DEFAULT_TTL))[key] = None if value == "none" else value
        elif section == "swarm":
            said.setdefault("swarm", {})[key] = value
        else:
            said[_FIELDS[section, key]] = value
    if "namespaces" in said:
        said["namespaces"] = tuple(dict.fromkeys([*NAMESPACES, *said["namespaces"]]))
    if "hook_tokens" in said:
        said["hook_tokens"] = min(said["hook_tokens"], HOOK_TOKENS_MAX)
    return said


def _mailbox_value(spot: tuple[str, str], value: Any) -> Any:
    """Return a value of a mailbox's file, checked; raises ``_WrongValueError``."""
    section, key = spot
    if section == "ttl":
        if value != "none" and not _positive(value, MAX_TTL_HOURS):
            raise _WrongValueError('a positive number of hours (a century at most) or "none"')
    elif spot in _INTEGERS:
        if not _positive(value) or type(value) is not int:
            raise _WrongValueError("a positive integer")
    elif spot in _NUMBERS:
        if not _positive(value):
            raise _WrongValueError("a positive number")
    elif section == "swarm":
        return _check_swarm(key, value)
    elif spot in _SWITCHES:
        return _check_switch(value)
    elif spot == ("control", "timeout"):
        if not _positive(value, CONTROL_WAIT_MAX):
            raise _WrongValueError(f"a number of seconds, {CONTROL_WAIT_MAX} at most: the client gives up then")
    elif spot == ("session", "role"):
        if not isinstance(value, str):
            raise _WrongValueError("text")
    else:
        return _check_texts(value)
    return value


def _check_swarm(key: str, value: Any) -> Any:
    """Return a value of ``[swarm]``, checked; raises ``_WrongValueError``."""
    if key in _SWARM_INTEGERS:
        if not _positive(value) or type(value) is not int:
            raise _WrongValueError("a positive integer")
    elif key in _SWARM_TEXTS:
        if not isinstance(value, str) or not value:
            raise _WrongValueError("text")
    elif key in _SWARM_SWITCHES:
        return _check_switch(value)
    elif not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _WrongValueError("a list of addresses")
    elif key == "networks" and not all(map(_is_network, value)):
        raise _WrongValueError('a list of networks such as "100.64.0.0/10"')
    return tuple(value) if isinstance(value, list) else value


def _check_switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _WrongValueError("true or false")
    return value


def _check_texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _WrongValueError("a list of texts")
    return tuple(value)


def _check_program(value: Any) -> tuple[str, ...]:
    """Return a program and its arguments, checked."""
    if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
        raise _WrongValueError("a list of texts: the program and its arguments")
    return tuple(value)


def _check_wake(key: str, value: Any) -> Any:
    """Return a value of ``[wake]``, checked; raises ``_WrongValueError``."""
    if key == "command":
        return _check_program(value)
    if key == "gap_seconds":
        if value is False or (value != 0 and not _positive(value, 3600)):
            raise _WrongValueError("a number of seconds, 3600 at most, 0 for none")
    elif isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 1000:
        raise _WrongValueError("a number from 1 to 1000")
    return value


def _check_notify(key: str, value: Any) -> Any:
    """Return a value of ``[notify]``, checked; raises ``_WrongValueError``."""
    if key == "command":
        return _check_program(value)
    if key in ("ntfy", "webhook"):
        if not isinstance(value, str) or not value.startswith(("https://", "http://")) or not value.isprintable():
            raise _WrongValueError("a URL that begins with https://")
    elif key == "quiet":
        try:
            quiet_hours(value if isinstance(value, str) else "")
        except ValueError:
            raise _WrongValueError('two times such as "22:00-07:00"') from None
    elif key == "again_minutes":
        if value != 0 and not _positive(value, 10_000_000):
            raise _WrongValueError("a number of minutes, 0 for never")
    else:
        return _check_switch(value)
    return value


def _is_network(text: str) -> bool:
    try:
        return bool(ip_network(text))
    except ValueError:
        return False


def _positive(value: object, most: float = 1 << 53) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= most
