"""Turn events into updates of an open page: new rows for a list, notices that other parts are stale.

Belongs here: from an event to the names and texts to send. One thread runs it, beside the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import jinja2

from ..core import codec
from ..core.address import ALL
from ..core.control import message_text
from ..core.control.messages import Answer, Ask
from ..core.message_reads import Reads
from ..core.records import USER, Message
from ..mailbox.selection import Selection
from . import inbox_page, mail_lists, presenters, topics
from .desk import Looking, Params
from .live import Event

STALE = {
    "/": ("owed", "elsewhere"),
    "/decided": ("control",),
    "/tasks": ("control", "roster"),
    "/notes": ("message", "roster"),
    "/conversations": ("message", "seen", "roster"),
    "/dead": ("survey",),
    "/fleet": ("roster", "control", "survey"),
    "/agents": ("roster", "control", "survey"),
    "/agent": ("roster", "control", "survey"),
    "/channels": ("roster",),
}
"""The event kinds that make each page, or its part without mail, stale."""


class PageUpdater:
    """Turns events into updates. ``templates``: those of the pages."""

    def __init__(self, directory: str, templates: jinja2.Environment) -> None:
        self._looking = Looking(directory)
        self.templates = templates

    def updates_for(self, path: str, params: Params) -> Callable[[Event], Iterator[tuple[str, str]]]:
        """Return the function that turns an event into updates of this page. Search results and older pages get no new
        rows."""
        chosen = None if path == "/search" or params.get("before") else mail_lists.selection_of_page(path, params)
        here = {key: value for key, value in params.items() if key not in ("page", "last", "open")}

        def opens(message_id: str) -> str:
            return presenters.page_link(path, **here, open=message_id)

        def write_updates(event: Event) -> Iterator[tuple[str, str]]:
            message = event.message
            if event.kind in ("resync", "roster", "survey", "control", "seen", "elsewhere"):
                yield "stale", "all" if event.kind == "resync" else "rail"
            if message is not None:
                if message.sender != USER:
                    yield "mail", codec.dumps(sorted(presenters.rail_keys(message, self._looking.roster)))
                if chosen is not None and self._belongs_to_page(message, chosen, path, params):
                    yield "row", self._render_row(message, chosen.address, params.get("topic", ""), opens)
                if path == "/" and message.type == "control":
                    yield from self._update_entries(message)
            if event.kind in ("reads", "roster") and chosen is not None:
                yield "reads", ",".join(event.ids)  # who came or went may be an exception: then of every message
            mail = message if message is not None and message.type != "control" else None
            is_letter = mail is not None and not {USER, ALL}.isdisjoint(mail.recipients)
            if event.kind in STALE.get(path, ()) or (path == "/" and is_letter):
                yield "stale", "main"

        return write_updates

    def _update_entries(self, message: Message) -> Iterator[tuple[str, str]]:
        """Yield what a control message changes in the inbox: the one line, and the order of all.

        A request that nothing proves is elsewhere there: then the page is stale."""
        payload = message_text.parse(message.content)
        if not isinstance(payload, Ask | Answer):
            return
        now = self._looking
        stops = inbox_page.group_requests(now, now.unread.list_put_off())[0]
        asked = next((entry for entry in stops.entries if entry.request == payload.request_id), None)
        if USER in message.recipients and asked is None:
            yield "stale", "main"  # forged, or over already
            return
        line = ""
        if asked is not None:
            line = self.templates.get_template("entry.html").render(
                entry=asked, opens=lambda i: presenters.page_link("/", open=i)
            )
        order = [entry.key for entry in stops.entries]
        yield "entries", codec.dumps({"order": order, "entry": line})

    def _belongs_to_page(self, message: Message, chosen: Selection, path: str, params: Params) -> bool:
        topic = topics.topic_of_param(params.get("topic"))
        is_late = message.timestamp >= mail_lists.dated_later(self._looking)
        return not is_late and mail_lists.belongs_to_page(self._looking, message, path, chosen, topic)

    def _render_row(self, message: Message, home: str, topic: str, opens: Callable[[str], str]) -> str:
        now = self._looking
        found, reads = now.queries.known([message.id])
        unsent = now.mailbox.unsent().get(message.id, "")
        row = presenters.message_row(message, reads if found else Reads(), now.roster, home=home, unsent=unsent)
        return self.templates.get_template("row.html").render(row=row, opens=opens, in_topic=topic)
