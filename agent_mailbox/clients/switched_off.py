"""Claude Code's settings, as they tell that a session that runs calls no hook of ours any more.

Belongs here: which files these are, and what in them tells it. Somebody wrote ``disableAllHooks``, or took our hooks
out by hand. The client reads its settings while it runs. Hooks that none of these files holds (a plugin's, those of
``--settings``) only the switch takes away.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..known_clients.every_client import USUAL
from ..store.files.small_files import read_if_possible

if TYPE_CHECKING:
    from collections.abc import Sequence

_SWITCH = b'"disableAllHooks"'
_UNDERWAY = 10 * 10**9
"""Nanoseconds within which a change may be older than the last hook: the client had called that before."""
_CALLS = (b"agent-mailbox-hook", b"agent-mailbox hook", b"agent_mailbox", b"check-mailbox.sh", b"session-start.sh")
"""Words of a command that calls us; a rule of permission has none of them."""


def settings_of(home: str, project: str) -> tuple[str, ...]:
    """Return the files that decide of a session's hooks, and the directory in which one may be made."""
    own = os.path.join(project, USUAL.directory)
    files = (
        os.path.join(home, "settings.json"),
        *(os.path.join(own, f"settings{kind}.json") for kind in ("", ".local")),
    )
    return (*files, USUAL.managed[0], own)


def names_us(places: Sequence[str]) -> bool:
    """Return whether one of these files calls us; else a plugin does, or a file that a switch of the client names."""
    return any(word in text for text in _texts_of(places) for word in _CALLS)


def is_switched_off(places: Sequence[str], heart: str, *, named: bool) -> bool:
    """Return whether these settings changed since the session's last hook, and let it call ours no more. ``heart`` is
    the file whose time is that of the last hook. ``named``: one of them called us."""
    try:
        since = os.stat(heart).st_mtime_ns - _UNDERWAY
    except OSError:
        return False
    if not any(_is_newer(path, since) for path in places):
        return False
    return any(map(_switches_off, _texts_of(places))) or (named and not names_us(places))


def _texts_of(places: Sequence[str]) -> list[bytes]:
    return [read_if_possible(path, through_links=True) or b"" for path in places[:-1]]


def _is_newer(path: str, since: int) -> bool:
    try:
        return os.stat(path).st_mtime_ns > since
    except OSError:
        return False


def _switches_off(text: bytes) -> bool:
    name, _, value = text.partition(_SWITCH)[2].partition(b":")
    return bool(value) and not name.strip() and value.lstrip().startswith(b"true")
