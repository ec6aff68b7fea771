"""Channels as conversations: the index gives what a scan gives; topics stay together; a step is bounded."""

from __future__ import annotations

import random
import uuid
from typing import TYPE_CHECKING

from agent_mailbox.console import topics
from agent_mailbox.core import conversations
from agent_mailbox.core.compose import Draft
from agent_mailbox.mailbox import mail_pages
from agent_mailbox.mailbox.mail_pages import Digest, MailPages
from agent_mailbox.mailbox.mailbox import Mailbox

if TYPE_CHECKING:
    import pytest

    from agent_mailbox.core.records import Message
    from tests.helpers import Post

WHERE = ("project:x", "role:r", "all", "ada", "bo")


class Scanning(MailPages):
    """The same queries without an index."""

    def _ask(self, question: object) -> None:  # type: ignore[override]
        """There is none."""


def filled(post: Post, seed: int, count: int) -> tuple[Mailbox, list[Message]]:
    """A mailbox with random threads: some messages have subjects, some answers leave their channel."""
    chance, at = random.Random(seed), [1_700_000_000_000]
    for name in ("ada", "bo"):
        post.register(name, "--tags", "project:x")
    mailbox = Mailbox(str(post.box), clock=lambda: at[0])
    sent: list[Message] = []
    for number in range(count):
        at[0] += chance.choice((0, 1, 1000))
        parent = chance.choice(sent).id if sent and chance.random() < 0.6 else None
        subject = chance.choice((None, None, "Plan", "re: plan", "Other"))
        to = (chance.choice(WHERE),)
        draft = Draft(
            sender=chance.choice(("ada", "bo", "user")), to=to, content=f"{number}", subject=subject, thread=parent
        )
        sent.append(mailbox.send(draft).message)
    return mailbox, sent


def test_the_index_and_a_scan_give_the_same_channel(post: Post) -> None:
    """Page by page, with and without a topic; answers that went elsewhere are there."""
    mailbox, sent = filled(post, 5, 90)
    by_id = {m.id: m for m in sent}
    roster = mailbox.logs.read_roster()
    for address in WHERE[:3]:
        for topic in (None, "PLAN", ""):
            pages: list[list[list[str]]] = []
            for queries in (MailPages(mailbox), Scanning(mailbox)):
                before, found = None, list[list[str]]()
                while True:
                    page = queries.channel(address, before, 7, topic)
                    found.append([m.id for m in page.messages])
                    before = page.before
                    if before is None:
                        break
                pages.append(found)
            assert pages[0] == pages[1]
            whole = {m.id for m in sent if conversations.belongs(m, address, roster, by_id.get)}
            for queries in (MailPages(mailbox), Scanning(mailbox)):
                inside = {m.id for m in sent if queries.is_in(m, address, topic)}
                assert inside == {i for page in pages[0] for i in page}
            if topic is None:
                assert {i for page in pages[0] for i in page} == whole
                assert any(address not in by_id[i].recipients for i in whole)
        digests = [queries.newest(address) for queries in (MailPages(mailbox), Scanning(mailbox))]
        assert sorted(d.id for d in digests[0]) == sorted(d.id for d in digests[1])
        assert set(digests[0]) == set(digests[1])


def test_an_answer_that_comes_first_gets_its_topic_once_that_is_known(post: Post) -> None:
    """It may come from elsewhere, ahead of what it answers. Whoever looked meanwhile looks again."""
    mailbox = Mailbox(str(post.box))
    for queries in (MailPages(mailbox), Scanning(mailbox)):
        asked = str(uuid.uuid4())
        post.send("ada", "project:x", "yes", "--thread", asked)
        assert queries.newest("project:x")[0].topic == ""
        post.send("ada", "project:x", "Shall we?", "--subject", "Plan", "--id", asked)
        assert [one.topic for one in queries.newest("project:x")[:2]] == ["Plan", "Plan"]
        page = queries.channel("project:x", None, 9, "plan")
        assert [one.content for one in page.messages[-2:]] == ["yes", "Shall we?"]


def test_a_look_is_bounded_and_goes_on_behind_a_link(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic whose last word is far back is found page by page; no page reads more than its part."""
    monkeypatch.setattr(mail_pages, "LOOK", 10)
    mailbox, _ = filled(post, 1, 1)
    drafts = [
        Draft(sender="ada", to=("project:x",), content=f"{n}", subject="Old" if n < 2 else "New") for n in range(35)
    ]
    mailbox.send_all(drafts)
    queries = MailPages(mailbox)
    page, looks = queries.channel("project:x", None, 50, "old"), 1
    while page.before is not None and not page.messages:
        page, looks = queries.channel("project:x", page.before, 50, "old"), looks + 1
    assert [m.content for m in page.messages] == ["0", "1"]
    assert looks == 4


def test_a_circular_or_endless_thread_ends(post: Post) -> None:
    """Neither one that is its own ancestor nor one that is endless."""
    post.register("ada", "--tags", "project:x")
    ids = [f"00000000-0000-4000-8000-{n:012}" for n in range(200)]
    for number, message_id in enumerate(ids):
        above = ids[(number + 1) % len(ids)]
        post.append(
            "agent-mailbox.jsonl",
            {
                "id": message_id,
                "sender": "ada",
                "recipient": "bo",
                "timestamp": "2026-03-16T14:30:00Z",
                "content": "x",
                "thread": above,
            },
        )
    mailbox = Mailbox(str(post.box))
    for queries in (MailPages(mailbox), Scanning(mailbox)):
        assert queries.channel("project:x", None, 50).messages == ()
        assert queries.channel("all", None, 50, "t").messages == ()


def test_a_page_of_an_old_topic_is_that_topic_s_however_many_there_are() -> None:
    """Without it in the list the page has no name, and what one writes there begins elsewhere."""
    digests = [
        Digest(f"m{number}", "ada", number, f"Topic {number}") for number in range(topics.MOST_TOPICS + 5, 0, -1)
    ]
    for chosen in ("Topic 1", "of none"):
        listed = topics.list_topics("project:x", digests, (), chosen)
        assert [one.title for one in listed if one.is_chosen] == [chosen]
        assert len(listed) == topics.MOST_TOPICS + 1


def test_a_topic_is_a_subject_and_its_answers() -> None:
    """However it is spelt; an answer with a subject of its own begins another."""
    assert conversations.folded("Re:  RE: Schema   4") == conversations.folded("schema 4") == "schema 4"


def test_a_tag_that_is_no_address_hinders_no_page(post: Post) -> None:
    """Another program may have written it into the roster."""
    mailbox, _ = filled(post, 2, 5)
    assert set(MailPages(mailbox).newer({"team:x/": -1, "all": -1}, mailbox.now(), 9)) == {"all"}
    assert MailPages(mailbox).newest("team:x/") == []
