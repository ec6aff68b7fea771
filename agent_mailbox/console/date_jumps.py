"""The way to a day in a list of mail, and on to what came after a place: each is an address of that list.

Belongs here: from a day or an instant to the page that shows it. A page lists what comes before a position, so the one
after an instant is found by where its messages end.
"""

from __future__ import annotations

from ..core import instant
from ..errors import Malformed
from . import mail_lists, presenters
from .desk import Looking, Params

FORWARD = 40
"""Messages after an instant on its page: fewer than a page, for answers in a thread are listed besides."""
STEPS = 12
"""Stretches of a channel that are looked through for a topic."""


def find_page(now: Looking, params: Params) -> tuple[str, str]:
    """Return the address of the page of a list (``page``) at a day (``day``), or after an instant (``after``, ms).

    The second value says what the person is to know, empty if all is as they asked."""
    path = params.get("page", "/archive")
    rest = {key: value for key, value in params.items() if key not in ("page", "day", "after", "open", "before")}
    chosen = mail_lists.selection_of_page(path, rest)
    if chosen is None:
        raise Malformed(f"this page lists no mail: {path!r}", "jump from a channel, a talk or all mail")
    end: int | None
    since = end = _since_of(params)
    for _ in range(STEPS):
        end = now.queries.end_after(chosen, end, FORWARD)
        place = {} if end is None else {"before": f"{end + 1}.z"}
        shown = mail_lists.list_mail(now, path, {**rest, **place})["rows"]
        first = next((row for row in shown if row.at > since), None)
        if first is not None:
            return f"{presenters.page_link(path, **rest, **place)}#m-{first.id}", ""
        if end is None:
            break
    return presenters.page_link(
        path, **rest
    ), f"Nothing was written here since {presenters.local_day(since + 1)}. This is the newest."


def _since_of(params: Params) -> int:
    if after := params.get("after"):
        return presenters.parse_instant(after)
    found = mail_lists.parse_date(params.get("day", ""))
    if found is None:
        raise Malformed("no day is given", "choose the day to go to")
    return max(found, instant.MINUTE) - 1
