"""A search for words that most messages have finds the same in spans of time as by sorting all that match."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox import Mailbox
from agent_mailbox.mailbox.mail_pages import MailPages
from agent_mailbox.mailbox.selection import Position, Selection
from agent_mailbox.store.projection import lookup
from tests.helpers import MESSAGES, record

if TYPE_CHECKING:
    import pytest

    from tests.helpers import Post


def test_common_words_are_found_by_spans_of_time(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Page by page, newest first, also where times and the order of lines differ; and no span is read but those that
    the page needs."""
    order = [(n * 37) % 120 for n in range(120)]  # of their times; the lines stand in another one
    lines = [
        record("amy", "all", f"note {'odd' if n % 7 == 0 else 'even'} {n}", id=f"n-{n:03}",
               timestamp=f"2026-03-{1 + n // 24:02}T{n % 24:02}:00:00.000Z")
        for n in order
    ]  # fmt: skip
    post.append(MESSAGES, *lines)
    library = MailPages(Mailbox(str(post.box)))
    assert library.prepare()

    def pages(query: str) -> list[list[str]]:
        found, before = [], None
        while True:
            page = library.page(Selection(query=query), before, 25)
            found.append([m.id for m in page.messages])
            if page.before is None:
                return found
            before = Position(page.before.timestamp, page.before.id)

    queries = ("note*", '"note"', "note* odd*", "ev*", "note* 11*", "none*")
    whole = {query: pages(query) for query in queries}
    assert [len(page) for page in whole["note*"]] == [25, 25, 25, 25, 20]
    monkeypatch.setattr(lookup, "WINDOW", 3)
    assert {query: pages(query) for query in queries} == whole
    monkeypatch.setattr(lookup, "WINDOW", 30)
    spans: list[object] = []
    matching = lookup.IndexLookup._matching
    monkeypatch.setattr(lookup.IndexLookup, "_matching", lambda *at: (spans.append(at), matching(*at))[1])
    library.page(Selection(query="note*"), None, 25)
    assert len(spans) == 1


def test_the_newest_mail_of_a_short_log_is_shown_from_its_first_line_on(post: Post) -> None:
    """A page that is shown while the index is made leaves out nothing of a log that it reads whole."""
    sent = [post.send("amy", "all", text) for text in ("first", "second")]
    library = MailPages(Mailbox(str(post.box)))
    library.newest_alone = True
    assert sorted(library.everything().messages) == sorted(sent)
