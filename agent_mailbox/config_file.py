"""``config.toml``: its keys, and clear errors for wrong values. It is data; reading it executes nothing."""

from __future__ import annotations

import os
import tomllib
from functools import partial

from .config import Config
from .core.address import MODES, NAMESPACES
from .core.expiry import DEFAULT_TTL
from .core.records import MAX_TTL_HOURS
from .errors import BadData
from .store.paths import storage_failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
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
    *("body_bytes", "retry_seconds"),
)
_SWARM_TEXTS = ("ca_file", "wake_url", "wake_secret_file")
_SWARM_SWITCHES = ("private_addresses", "require_join_proof")
SWARM = (*_SWARM_INTEGERS, *_SWARM_TEXTS, *_SWARM_SWITCHES, "trusted_proxies")
_SWITCHES = {("hook", "doorbell"): "doorbell", ("teams", "bridge"): "bridge"}
CONTROL_WAIT_MAX = 540
"""Claude Code waits 600 s for a hook and then goes on as if there were none."""
HOOK_TOKENS_MAX = 2375
"""Claude Code shows at most 10,000 characters of a hook's text (four to a token); above it the model gets a path and a
preview."""


def read(fd: int, path: str) -> Config:
    """The configuration in an open file, which this closes; raises ``BadData`` naming what is wrong."""
    try:
        with open(fd, "rb") as file:
            there = os.fstat(fd)
            stamp = (there.st_ino, there.st_size, there.st_mtime_ns)
            return parsed(tomllib.load(file), path).replace(stamp=stamp)
    except OSError as error:
        raise storage_failed("read", path, error) from None
    except (ValueError, RecursionError) as error:
        raise BadData(f"{path} is not valid TOML: {error}", "correct it; every key is optional") from None


def parsed(table: Mapping[str, Any], path: str) -> Config:
    """The configuration that a table of tables says; raises ``BadData`` naming the key of ``path`` that is wrong."""

    def wrong(key: str, need: str) -> BadData:
        return BadData(f"{path}: {key} must be {need}", "correct it; every key is optional")

    known = {("ttl", mode) for mode in MODES} | {("session", "role"), ("session", "tags"), ("tags", "namespaces")}
    known |= _SWITCHES.keys()
    known |= {("control", "timeout"), ("control", "default"), ("control", "cleanup")}
    known |= {("swarm", key) for key in SWARM}
    known |= _INTEGERS.keys() | _NUMBERS.keys()
    given: dict[tuple[str, str], Any] = {}
    for section, content in table.items():
        if not isinstance(content, dict):
            raise wrong(section, "a table")
        given.update({(section, key): value for key, value in content.items()})
    for section, key in given.keys() - known:
        raise BadData(f"{path}: unknown key {key!r} in [{section}]", "the README lists the keys")

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
                raise wrong(name, f"a number of seconds, {CONTROL_WAIT_MAX} at most: the client waits no longer")
            said["control_timeout"] = value
        elif spot == ("control", "default"):
            if value not in ("deny", "ask"):
                raise wrong(name, '"deny" or "ask"')
            said["control_default"] = value
        elif spot == ("session", "role"):
            if not isinstance(value, str):
                raise wrong(name, "text")
            said["session_role"] = value
        else:
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise wrong(name, "a list of texts")
            said[{"session": "session_tags", "tags": "namespaces", "control": "cleanup"}[spot[0]]] = tuple(value)
    if "namespaces" in said:
        said["namespaces"] = tuple(dict.fromkeys([*NAMESPACES, *said["namespaces"]]))
    said["hook_tokens"] = min(said.get("hook_tokens", Config.hook_tokens), HOOK_TOKENS_MAX)
    return Config(**said)


def _swarm(key: str, value: Any, wrong: Callable[[str], BadData]) -> Any:
    """A value of ``[swarm]``; raises what ``wrong`` makes of what it should have been."""
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
    return tuple(value) if isinstance(value, list) else value


def _positive(value: object, most: float = 1 << 53) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= most
