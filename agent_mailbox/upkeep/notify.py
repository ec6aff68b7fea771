"""Notices to the person elsewhere: what waits for them, told once by the ways that their own configuration names.

Belongs here: the order of the steps. ``core.attention`` decides, ``notice_ways`` tells. The console looks at each
change, the steward with each run, and ``agent-mailbox notify`` when it is called. The last notice is among the
user's own records, behind a lock, so that only one of them tells. No sender's process comes here, and no hook.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ..control.requests import Requests
from ..core import attention, codec, frame, instant
from ..core.address import DIRECT
from ..core.attention import LastNotice, Notice, WaitingThing
from ..core.control import summary
from ..core.records import USER, BadLine, Record
from ..errors import Busy
from ..mailbox.mailbox import Mailbox
from ..store.files.small_files import read_file, replace_file
from ..store.locks.lock import FileLock
from ..store.log import events
from . import notice_ways

if TYPE_CHECKING:
    from collections.abc import Mapping

_STATE, _LOCK = "notify.json", "notify.lock"
_MINUTE = 60_000
_WAYS = ("command", "ntfy", "webhook", "desktop")
NO_WAY = "no way to tell you is set"
AGAIN = 60
"""Minutes after which it is told again, unless the person says else."""


class Looked(Record):
    """The result of a look: the ways that were tried, each with its error, and when to look again (ms). ``waiting``:
    how many things wait for the person; None if nothing was looked at, and ``why`` not."""

    ways: Mapping[str, str] = {}
    again: int | None = None
    waiting: int | None = None
    why: str = ""


def notify_if_due(mailbox: Mailbox, link: str = "") -> Looked:
    """Tell the person of what waits, if it is time. ``link``: the console's page, where devices reach it.

    Raises ``BadData`` for a wrong configuration, and ``Busy``.
    """
    settings = mailbox.own.notify
    if not any(map(settings.get, _WAYS)) or mailbox.logs.custody is None:
        return Looked(why=NO_WAY)
    path = mailbox.logs.custody.path
    try:
        with FileLock(path(_LOCK), 0):
            found, now = waiting_things(mailbox), mailbox.now()
            told = _parse_state(read_file(path(_STATE)))
            again = round(settings.get("again_minutes", AGAIN) * _MINUTE)
            made = attention.decide(found, told, now, again, _quiet_until(settings, now))
            if made.told != told:  # before: whoever dies in between tells too little
                replace_file(path(_STATE), codec.dumps(made.told.__dict__).encode("utf-8", "surrogatepass"))
            notice = attention.notice(found, content=bool(settings.get("content")), told=told.ids, link=link)
            ways = tell_notice(mailbox, notice) if made.tell else {}
    except Busy as error:
        if error.code != "busy":
            raise
        return Looked(why="another process looks at this moment")
    return Looked(ways, made.again, len(found))


def tell_notice(mailbox: Mailbox, notice: Notice) -> dict[str, str]:
    """Tell a notice by all ways; write the outcome of each to telemetry."""
    results = notice_ways.send_notice(mailbox.own.notify, notice)
    for way, error in results.items():
        step = {"who": USER, "what": "notify", "way": way, "outcome": "failed" if error else "told", "cause": error}
        events.note(mailbox.logs, {"timestamp": instant.text(mailbox.now()), **step, "count": notice.count})
    return results


def waiting_things(mailbox: Mailbox) -> list[WaitingThing]:
    """Return what waits for the person: requests that call them, and unread mail to them."""
    roster = mailbox.logs.read_roster()
    found = [
        WaitingThing(
            request.id,
            f"{request.flow} request",
            frame.name_of(request.asker, roster),
            summary.line(request.payload),
        )
        for request in Requests(mailbox).calling(USER)
    ]
    for item in mailbox.peek(USER):
        message = item.message
        if message.type != "control" and item.mode == DIRECT:
            found.append(
                WaitingThing(message.id, "mail", frame.sender_of(message, roster, brief=True), frame.title(message))
            )
    return found


def _quiet_until(settings: Mapping[str, Any], now: int) -> int | None:
    """Return the end of the quiet hours, by this machine's clock on the wall; None if it is none of them."""
    if not settings.get("quiet"):
        return None
    local = time.localtime(now / 1000)
    minute = local.tm_hour * 60 + local.tm_min
    left = attention.quiet_for(attention.quiet_hours(settings["quiet"]), minute)
    if left is None:
        return None
    # The wall's clock may be put on or back meanwhile: the end is where it shows that minute, not so many minutes away.
    ends = [round(time.mktime((*local[:3], 0, minute + left, 0, 0, 0, dst)) * 1000) for dst in (0, 1)]
    shown = [(at, time.localtime(at / 1000)) for at in ends if at > now]
    is_it = [at for at, wall in shown if wall.tm_hour * 60 + wall.tm_min == (minute + left) % 1440]
    return min(is_it, default=now + left * _MINUTE)


def _parse_state(content: bytes | None) -> LastNotice:
    obj = codec.parse(content or b"")
    if isinstance(obj, BadLine):
        return LastNotice()
    at, ids = obj.get("at"), obj.get("ids")
    if not isinstance(at, int) or not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
        return LastNotice()
    return LastNotice(at, tuple(ids))
