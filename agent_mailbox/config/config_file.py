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

    Spot = tuple[str, str]
    """A key, and its table's name before it."""

CONTROL_WAIT_MAX = 540
"""Claude Code waits 600 s for a hook and then goes on without it."""
HOOK_TOKENS_MAX = 2375
"""Claude Code shows at most 10,000 characters of a hook's text (four to a token); above it the model gets a path and a
preview."""


class Kind(Record):
    """The values that a key takes: their type for the manual, the need for an error, and the check."""

    type: str
    need: str
    is_met: Callable[[Any], bool]


def _is_positive(value: object, most: float = 1 << 53) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= most


def _is_up_to(value: object, most: float) -> bool:
    return (value == 0 and value is not False) or _is_positive(value, most)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_url(value: object) -> bool:
    return isinstance(value, str) and value.startswith(("https://", "http://")) and value.isprintable()


def _is_span(value: object) -> bool:
    try:
        return bool(quiet_hours(value if isinstance(value, str) else ""))
    except ValueError:
        return False


def _is_network(text: str) -> bool:
    try:
        return bool(ip_network(text))
    except ValueError:
        return False


_INTEGER = Kind("integer", "a positive integer", lambda value: type(value) is int and _is_positive(value))
_COUNT = Kind("integer", "a number from 1 to 1000", lambda value: type(value) is int and 0 < value <= 1000)
_NUMBER = Kind("number", "a positive number", _is_positive)
_SWITCH = Kind("true or false", "true or false", lambda value: isinstance(value, bool))
_TEXT = Kind("text", "text", lambda value: isinstance(value, str))
_SOME_TEXT = _TEXT.replace(is_met=lambda value: isinstance(value, str) and value != "")
_URL = Kind("text", "a URL that begins with https://", _is_url)
_TEXTS = Kind("list of texts", "a list of texts", _are_texts)
_PROGRAM = _TEXTS.replace(
    need="a list of texts: the program and its arguments", is_met=lambda value: value != [] and _are_texts(value)
)
_ADDRESSES = _TEXTS.replace(need="a list of addresses")
_NETWORKS = _TEXTS.replace(
    need='a list of networks such as "100.64.0.0/10"',
    is_met=lambda value: _are_texts(value) and all(map(_is_network, value)),
)
_HOURS = Kind(
    'hours, or "none"',
    'a positive number of hours (a century at most) or "none"',
    lambda value: value == "none" or _is_positive(value, MAX_TTL_HOURS),
)
_WAIT = Kind(
    "number",
    f"a number of seconds, {CONTROL_WAIT_MAX} at most: the client gives up then",
    lambda value: _is_positive(value, CONTROL_WAIT_MAX),
)
_GAP = Kind("number", "a number of seconds, 3600 at most, 0 for none", lambda value: _is_up_to(value, 3600))
_AGAIN = Kind("number", "a number of minutes, 0 for never", lambda value: _is_up_to(value, 10_000_000))
_SPAN = Kind("text", 'two times such as "22:00-07:00"', _is_span)
_DEFAULT = Kind('"deny" or "ask"', '"deny" or "ask"', lambda value: value in ("deny", "ask"))
_SWARM_LIMITS = (
    *("messages_per_minute", "swarm_messages_per_minute", "joins_per_hour", "requests_per_minute"),
    *("body_bytes", "connections", "connections_per_address", "retry_seconds"),
)
MAILBOX: Mapping[Spot, tuple[str, Kind]] = {
    **{("ttl", mode): ("ttls", _HOURS) for mode in MODES},
    ("tags", "namespaces"): ("namespaces", _TEXTS),
    ("session", "role"): ("session_role", _TEXT),
    ("session", "tags"): ("session_tags", _TEXTS),
    ("limits", "content_bytes"): ("max_content", _INTEGER),
    ("limits", "long_words"): ("long_words", _INTEGER),
    ("limits", "messages_per_minute"): ("max_per_minute", _INTEGER),
    ("hook", "tokens"): ("hook_tokens", _INTEGER),
    ("hook", "doorbell"): ("doorbell", _SWITCH),
    ("control", "timeout"): ("control_timeout", _WAIT),
    ("tasks", "silent"): ("task_silent", _NUMBER),
    ("steward", "max_live"): ("max_live", _INTEGER),
    ("steward", "freeze_after_hours"): ("freeze_after_hours", _NUMBER),
    ("steward", "retire_after_days"): ("retire_after_days", _NUMBER),
    **{("swarm", key): ("swarm", _INTEGER) for key in _SWARM_LIMITS},
}
"""The keys of a mailbox's file, each with its field of ``config.Config``. Those of ``swarm`` count in the person's own
as well."""
PERSONAL: Mapping[Spot, tuple[str, Kind]] = {
    # a permission
    ("control", "default"): ("control_default", _DEFAULT),
    ("leases", "enforce"): ("lease_enforce", _SWITCH),
    ("swarm", "require_join_proof"): ("swarm", _SWITCH),
    # a program that starts, and how often
    ("control", "cleanup"): ("cleanup", _TEXTS),
    ("teams", "bridge"): ("bridge", _SWITCH),
    **{("up", word): ("up", _PROGRAM) for word in STARTED},
    ("wake", "command"): ("wake", _PROGRAM),
    **{("wake", key): ("wake", _COUNT) for key in ("per_hour", "per_thread", "per_day")},
    ("wake", "gap_seconds"): ("wake", _GAP),
    # who reaches the person when and how, and what leaves this machine
    ("notify", "command"): ("notify", _PROGRAM),
    ("notify", "desktop"): ("notify", _SWITCH),
    ("notify", "ntfy"): ("notify", _URL),
    ("notify", "webhook"): ("notify", _URL),
    ("notify", "quiet"): ("notify", _SPAN),
    ("notify", "again_minutes"): ("notify", _AGAIN),
    ("notify", "content"): ("notify", _SWITCH),
    # a URL, a file whose content is sent, a network, and whose word is believed
    ("swarm", "wake_url"): ("swarm", _SOME_TEXT),
    ("swarm", "wake_secret_file"): ("swarm", _SOME_TEXT),
    ("swarm", "ca_file"): ("swarm", _SOME_TEXT),
    ("swarm", "trusted_proxies"): ("swarm", _ADDRESSES),
    ("swarm", "private_addresses"): ("swarm", _SWITCH),
    ("swarm", "networks"): ("swarm", _NETWORKS),
}
"""The keys that count in the person's own configuration alone, by their dangers, each with its field of
``own_config.OwnConfig``."""
OWN = {**PERSONAL, **{spot: setting for spot, setting in MAILBOX.items() if spot[0] == "swarm"}}
"""The keys of the person's own configuration."""
_TABLES = ("ttls", "swarm", "notify", "wake", "up")
"""The fields that hold a table's keys."""
CLOSED: Mapping[Spot, Any] = {
    ("control", "default"): "deny",
    ("leases", "enforce"): True,
    ("swarm", "require_join_proof"): True,
}
"""The values of the person's deciding keys that count while nobody can tell what the file says."""
_MAILBOX = "mailbox"
"""The person's table of tables for single mailboxes, by their paths."""


class Fault(Record):
    """A thing that is wrong in a file, and does not count. ``section`` is its table's name, empty for the whole file;
    ``text`` says what and what to do. ``note``: a key that nobody knows, which a newer version may."""

    section: str
    text: str
    note: bool = False


def read_config(fd: int) -> dict[str, Any]:
    """Return the fields of ``config.Config`` that an open file sets, and close it."""
    there = system.fstat(fd)
    table, faults = read_table(fd)
    return {**parse_config(table, faults), "stamp": (there.st_ino, there.st_size, there.st_mtime_ns)}


def fault_of_opening(error: MailboxError) -> tuple[Fault, ...]:
    """Return the fault of a file that cannot be opened."""
    return (Fault("", f"{error.what}, so none of its settings counts; {error.hint}"),)


def read_table(fd: int) -> tuple[dict[str, Any], tuple[Fault, ...]]:
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


def _given_values(table: Mapping[str, Any], known: Collection[Spot], faults: list[Fault]) -> dict[Spot, Any]:
    """Return the values of a table of tables by section and key, as far as both are known."""
    given: dict[Spot, Any] = {}
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


def _unknown_key(spot: Spot, known: Collection[Spot]) -> Fault:
    """Return the fault of a key that nobody knows, with the key that may be meant."""
    section, key = spot
    name = f"{section}.{key}" if section else key
    if section and spot in MAILBOX:
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
    found = [*faults]
    values: dict[Spot, Any] = {}
    unclear = {fault.section for fault in found}
    general = {section: content for section, content in table.items() if section != _MAILBOX}
    for part in (general, _mailbox_settings(table, mailbox, found)):
        unclear |= {section for section, content in part.items() if not isinstance(content, dict)}
        values |= _check_values(_given_values(part, OWN.keys(), found), OWN, found)
    if any(fault.section == _MAILBOX for fault in found):
        unclear.add("")
    values |= {spot: value for spot, value in CLOSED.items() if not unclear.isdisjoint(("", spot[0]))}
    return {**_fields_of(values, OWN), "faults": (*found,)}


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
    given = _given_values(table, {*MAILBOX, *PERSONAL}, found)
    misplaced = tuple(".".join(spot) for spot in given if spot in PERSONAL)
    values = _check_values({s: v for s, v in given.items() if s not in PERSONAL}, MAILBOX, found)
    said = {**_fields_of(values, MAILBOX), "misplaced": misplaced, "faults": (*found,)}
    if "ttls" in said:
        said["ttls"] = {**DEFAULT_TTL, **{mode: None if h == "none" else h for mode, h in said["ttls"].items()}}
    if "namespaces" in said:
        said["namespaces"] = tuple(dict.fromkeys([*NAMESPACES, *said["namespaces"]]))
    if "hook_tokens" in said:
        said["hook_tokens"] = min(said["hook_tokens"], HOOK_TOKENS_MAX)
    return said


def _check_values(
    given: Mapping[Spot, Any], known: Mapping[Spot, tuple[str, Kind]], faults: list[Fault]
) -> dict[Spot, Any]:
    """Return the given values that are as their keys need them. A wrong one is a fault, and its closed value counts, if
    it has one."""
    found: dict[Spot, Any] = {}
    for spot, value in given.items():
        kind = known[spot][1]
        if kind.is_met(value):
            found[spot] = tuple(value) if isinstance(value, list) else value
            continue
        instead = "the default"
        if spot in CLOSED:
            found[spot] = CLOSED[spot]
            instead = "true" if CLOSED[spot] is True else CLOSED[spot]
        faults.append(Fault(spot[0], f"{'.'.join(spot)} must be {kind.need}; until then {instead} counts"))
    return found


def _fields_of(values: Mapping[Spot, Any], known: Mapping[Spot, tuple[str, Kind]]) -> dict[str, Any]:
    """Return the values by the fields that hold them."""
    said: dict[str, Any] = {}
    for (section, key), value in values.items():
        field = known[section, key][0]
        if field in _TABLES:
            said.setdefault(field, {})[key] = value
        else:
            said[field] = value
    return said
