"""Turn events into updates of an open page: new rows for a list, notices that other parts are stale.

Belongs here: from an event to the names and texts to send. One thread runs it, beside the event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import codec
from ..core.address import ALL
from ..core.claims import Reads
from ..core.control import message_text
from ..core.control.messages import Answer, Ask
from ..core.records import USER
from ..errors import MailboxError
from ..mailbox.selection import chooses
from . import cards, presenters, topics, views
from .desk import Looking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import jinja2

    from ..core.records import Message
    from ..core.roster import Roster
    from ..mailbox.selection import Selection
    from .live import Event

STALE = {
    "/": ("owed",),
    "/pending": ("control", "survey"),
    "/decided": ("control",),
    "/tasks": ("control", "roster"),
    "/notes": ("mail", "roster"),
    "/dead": ("survey",),
    "/agents": ("roster", "control", "survey"),
    "/agent": ("roster", "control", "survey"),
    "/channels": ("roster",),
}
"""The event kinds that make each page, or its part without mail, stale."""


class PageUpdater:
    """Turns events into updates. ``templates``: those of the pages."""

    def __init__(self, directory: str, templates: jinja2.Environment) -> None:
        self._looking = Looking(directory)
        self._mailbox = self._looking.mailbox
        self._library = self._looking.library
        self.templates = templates

    def updates_for(self, path: str, params: Mapping[str, str]) -> Callable[[Event], Iterator[tuple[str, str]]]:
        """Return the function that turns an event into updates of this page. Search results and older pages get no new
        rows."""
        chosen = None if path == "/search" or params.get("before") else views.selection_of_page(path, params)
        here = {key: value for key, value in params.items() if key not in ("page", "last", "open")}

        def write_updates(event: Event) -> Iterator[tuple[str, str]]:
            if event.kind in ("resync", "roster", "survey", "control", "seen"):
                yield ("stale", "all" if event.kind == "resync" else "rail")
            if event.message is not None:
                roster = self._mailbox.logs.read_roster()
                if event.message.sender != USER:
                    yield "mail", codec.dumps(sorted(presenters.rail_keys(event.message, roster)))
                if chosen is not None and self._belongs_to_page(event.message, chosen, roster, path, params):
                    yield (
                        "row",
                        self._render_row(
                            event.message, chosen.address, lambda i: presenters.page_link(path, **here, open=i)
                        ),
                    )
            if path == "/" and event.message is not None and event.message.type == "control":
                yield from self._update_cards(event.message)
            if event.kind == "reads" and chosen is not None:
                yield "reads", ",".join(event.ids)
            mail = event.message if event.message is not None and event.message.type != "control" else None
            to_person = mail is not None and not {USER, ALL}.isdisjoint(mail.recipients)
            if event.kind in STALE.get(path, ()) or (path == "/" and to_person):
                yield "stale", "main"

        return write_updates

    def _update_cards(self, message: Message) -> Iterator[tuple[str, str]]:
        """Yield what a control message changes on the page of requests: the one card, and the order of all.

        A request of the person's own, or one that nothing proves, is elsewhere there: then the page is stale."""
        payload = message_text.parse(message.content)
        if not isinstance(payload, Ask | Answer):
            return
        now = self._looking
        waiting = [r for r in now.open_requests() if USER in r.list_deciders(now.roster)]
        asked = next((request for request in waiting if request.id == payload.request_id), None)
        if USER in message.recipients and (asked is None or not asked.proven):
            yield "stale", "main"  # forged, or over already
            return
        card = ""
        if asked is not None:
            shown = cards.make_card(asked, asked.list_deciders(now.roster), now.roster, now.mailbox.now())
            card = self.templates.get_template("card.html").render(card=shown)
        order = [request.id for request in waiting if request.proven]
        yield "cards", codec.dumps({"order": order, "card": card})

    def _belongs_to_page(
        self, message: Message, chosen: Selection, roster: Roster, path: str, params: Mapping[str, str]
    ) -> bool:
        if message.timestamp >= views.dated_later(self._looking):
            return False
        try:
            if path == "/channel":
                return self._library.is_in(message, chosen.address, topics.topic_of_param(params.get("topic")))
            return chooses(chosen, roster)(message)
        except MailboxError:  # the page's address matches no agent, or none any more
            return False

    def _render_row(self, message: Message, home: str, opens: Callable[[str], str]) -> str:
        row = presenters.message_row(message, Reads(), self._mailbox.logs.read_roster(), home=home)
        return self.templates.get_template("row.html").render(row=row, opens=opens)
