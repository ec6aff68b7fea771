"""Leafing through mail: each page the next, whatever is archived, with the index and without."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.errors import NotFound
from agent_mailbox.mailbox import mail_pages
from agent_mailbox.mailbox.mail_pages import MailPages
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.mailbox.open_mailbox import wall_clock
from agent_mailbox.mailbox.selection import Position, Selection, chooses
from agent_mailbox.store.projection.index_keys import Doubt
from agent_mailbox.store.projection.lookup import IndexLookup
from tests.helpers import MESSAGES, record, stamp

if TYPE_CHECKING:
    from agent_mailbox.core.records import Message
    from agent_mailbox.store.projection.index_keys import Row
    from tests.helpers import Post

NOW = wall_clock() - 1_800_000


def fill(post: Post) -> None:
    """60 messages, several at the same instant, half of them archived, some answered, one twice."""
    post.register("ada", "--name", "Ada", "--tags", "project:inscription")
    post.register("bo")
    lines = []
    for n in range(60):
        to = ("ada", "project:inscription", "all", "user")[n % 4]
        sender = "user" if n % 5 == 0 and to != "user" else "bo"
        lines.append(record(sender, to, f"number {n} of all", timestamp=stamp(NOW + n // 7 * 1000)))
    post.append(MESSAGES, *lines[:30])
    post.check("ada")
    post.ok("steward", "run", "--max-live", "0")
    post.append(MESSAGES, *lines[30:], {**lines[40], "content": "a twin"})
    post.append(MESSAGES, *(record("ada", "bo", f"answer {n}", thread=lines[45]["id"]) for n in range(2)))


SELECTIONS = {
    "all": Selection(),
    "channel": Selection(address="project:inscription"),
    "direct": Selection(address="ada", person=True),
    "reader": Selection(reader="ada"),
    "words": Selection(query="number all"),
    "time": Selection(since=NOW + 2000, until=NOW + 5000),
    "everything": Selection(address="bo", query="number", since=NOW + 1000, until=NOW + 7000),
}


@pytest.mark.parametrize("indexed", [True, False], ids=["index", "scan"])
@pytest.mark.parametrize("name", SELECTIONS)
def test_the_pages_together_are_the_whole_selection(
    post: Post, name: str, indexed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None missing, none twice, newest last; what a selection chooses is what its pages show. With the index no page
    looks through everything."""
    fill(post)
    mailbox = Mailbox(str(post.box))
    mailbox.logs.derives = indexed
    library, selection = MailPages(mailbox), SELECTIONS[name]
    chosen = chooses(selection, mailbox.logs.read_roster())
    wanted = {m.id for m in library.everything().messages.values() if chosen(m)}
    assert len(wanted) > 7 or name == "direct"
    if indexed:
        monkeypatch.setattr(library, "everything", None)
    found: list[str] = []
    before, rounds = None, 0
    while True:
        page = library.page(selection, before, 7)
        ids = [m.id for m in page.messages]
        assert [m.timestamp for m in page.messages] == sorted(m.timestamp for m in page.messages)
        found = ids + found
        before, rounds = page.before, rounds + 1
        if before is None:
            break
        assert len(ids) == 7
        assert rounds < 30
    assert len(found) == len({*found})
    assert {*found} == wanted


@pytest.mark.parametrize("mends", [True, False])
def test_a_page_is_the_same_if_the_index_turns_out_wrong_within_it(
    post: Post, mends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index is built and asked again from the newest message on; if it is wrong once more, all mail is."""
    fill(post)
    library = MailPages(Mailbox(str(post.box)))
    *_, oldest, before, _ = [m for m in library.everything().messages.values() if m.timestamp == NOW + 3000]
    position = Position(before.timestamp, before.id)
    page = library.page(Selection(), position, 7)
    assert page.messages[-1] == oldest
    asked, read = list[str](), IndexLookup._message

    def damaged(view: IndexLookup, row: Row) -> Message:
        found = read(view, row)
        if found == oldest and (not mends or not asked):
            asked.append(found.id)
            raise Doubt("the line is another")
        return found

    monkeypatch.setattr(IndexLookup, "_message", damaged)
    assert library.page(Selection(), position, 7).messages == page.messages
    assert len(asked) == 2 - mends


def test_a_stretch_and_what_is_known_are_the_same_with_the_index_and_without(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest of a time with everything recorded about them; messages by their ids, by the hour and within a time;
    where so many end; how many answer one. The index answers by itself."""
    fill(post)
    post.check("ada")
    answers = []
    for indexed in (True, False):
        mailbox = Mailbox(str(post.box))
        mailbox.logs.derives = indexed
        library = MailPages(mailbox)
        assert library.prepare() is indexed
        if indexed:
            monkeypatch.setattr(library, "everything", None)
        stretch = library.stretch(NOW + 3000, 20)
        ids = [m["id"] for m in post.objects(MESSAGES)][:5]
        known, reads = library.known([*ids, "none"])
        stages = {m.id: reads.stages(m.id) for m in known}
        within, hours = library.within(NOW, NOW + 4999), library.hours(NOW, NOW + 4999)  # behind them is a twin
        records = {(r.message_id, r.session_id) for r in stretch.records}
        answers.append((stretch.messages, records, stretch.whole, known, stages, within, hours))
        assert (len(known), len(within), sum(hours.values())) == (5, 35, 35)
        lines = [*post.file(MESSAGES).read_bytes().splitlines(), *mailbox.archive.lines()]
        assert library.stored_line(ids[0]) == lines[0]
        assert library.stored_line(json.loads(lines[-1])["id"]) == lines[-1]
        with pytest.raises(NotFound, match="no message 'none'"):
            library.stored_line("none")
        end = library.end_after(Selection(), NOW - 1, 20)
        assert end is not None
        assert len(library.within(NOW, end)) in (14, 21)  # several are of one instant
    assert answers[0] == answers[1]
    assert not answers[0][2]
    assert answers[0][1]
    page = MailPages(Mailbox(str(post.box))).page(Selection(query="number 45"), None, 5)
    assert [*page.replies.values()] == [2]


def test_the_newest_are_remembered_within_a_bound(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """A console that runs for months keeps no more, and says the same."""
    fill(post)
    monkeypatch.setattr(mail_pages, "REMEMBERED", 3)
    library = MailPages(Mailbox(str(post.box)))
    assert library.prepare()
    found = [library.newest("project:inscription") for _ in range(2)]
    assert found[0] == found[1]
    assert len(found[0]) > 3 >= len(library._digests)


def test_before_the_index_is_there_a_thread_is_looked_for_in_the_newest_mail(post: Post) -> None:
    """The search finds a single message there, too, and says what is not there."""
    fill(post)
    library = MailPages(Mailbox(str(post.box)))
    first = post.objects(MESSAGES)[-1]["thread"]
    whole = [message.id for message in library.thread(first)[0]]
    library.newest_alone = True
    assert len(whole) == 3
    assert [message.id for message in library.thread(first)[0]] == whole
    with pytest.raises(NotFound, match="in the newest mail"):
        library.thread("none")
