"""A selection of mail: each filter alone, at its borders, and all of them together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_mailbox import Mailbox, NotFound, Registration
from agent_mailbox.core.records import USER, Message
from agent_mailbox.mailbox import selection
from agent_mailbox.mailbox.selection import OlderSelection, Position, Selection

if TYPE_CHECKING:
    from tests.helpers import Post

AT = 1_700_000_000_000
MAIL = {
    "direct": Message("direct", "ann", ("bob",), AT, "a green word"),
    "asks": Message("asks", "bob", ("ann",), AT + 1, "green", ack=True),
    "role": Message("role", "bob", ("role:dev",), AT + 2, "word"),
    "all": Message("all", "cat", ("all",), AT + 3, "x"),
    "to person": Message("to person", "ann", (USER,), AT + 4, "x"),
    "of person": Message("of person", USER, ("bob", "cat"), AT + 5, "x"),
    "control": Message("control", USER, ("ann",), AT + 6, "{}", type="control"),
}


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        ({}, [*MAIL]),
        ({"since": AT + 5}, ["of person", "control"]),
        ({"until": AT + 1}, ["direct", "asks"]),
        ({"since": AT + 2, "until": AT + 2}, ["role"]),
        ({"person": True}, ["to person", "of person", "control"]),
        ({"asks": True}, ["asks"]),
        ({"kind": "control"}, ["control"]),
        ({"kind": "mail"}, [name for name in MAIL if name != "control"]),
        ({"sender": "ann"}, ["direct", "to person"]),
        ({"sender": "Ann"}, ["direct", "to person"]),
        ({"recipient": "bob"}, ["direct", "of person"]),
        ({"recipient": "role:dev"}, ["role"]),
        ({"recipient": "dev"}, ["role"]),
        ({"recipient": "all"}, ["all"]),
        ({"address": "cat"}, ["all", "of person"]),
        ({"query": "green"}, ["direct", "asks"]),
        ({"query": "green word"}, ["direct"]),
        ({"query": "green", "asks": True}, ["asks"]),
        ({"query": "green", "sender": "ann", "recipient": "bob", "kind": "mail"}, ["direct"]),
        ({"sender": "ann", "kind": "control"}, []),
        ({"reader": "cat"}, ["all", "of person"]),
        ({"reader": "dora"}, ["role", "all"]),
    ],
)
def test_a_filter_narrows_as_it_says(post: Post, given: dict[str, object], chosen: list[str]) -> None:
    """An instant at either end belongs to it. A role is found with its prefix and without, an agent by its name."""
    box = Mailbox(str(post.box))
    for who, roles in (("ann", ()), ("bob", ()), ("cat", ()), ("dora", ("dev",))):
        box.register(Registration(session_id=who, name=who.title(), roles=roles), who)
    roster = box.logs.read_roster()
    is_chosen = selection.chooses(Selection().replace(**given), roster)
    assert [name for name, message in MAIL.items() if is_chosen(message)] == chosen


def test_mail_to_an_agent_is_looked_for_by_its_name_too(post: Post) -> None:
    """Other programs write names, where we write ids; a role they write with its prefix and without."""
    box = Mailbox(str(post.box))
    box.register(Registration(session_id="cat", name="Cat"), "cat")
    roster = box.logs.read_roster()
    assert {"cat", "Cat"} <= selection.parties("cat", roster)
    assert selection.parties("role:dev", roster) >= {"dev", "role:dev"}


def test_an_address_that_nobody_has_is_told(post: Post) -> None:
    """A person who mistypes a name is not told that there is no mail."""
    roster = Mailbox(str(post.box)).logs.read_roster()
    for given in ({"address": "zoe"}, {"sender": "zoe"}):
        with pytest.raises(NotFound):
            selection.chooses(Selection(**given), roster)


def test_a_page_goes_on_behind_the_message_of_the_whole_id() -> None:
    """One of a longer id may stand before it or behind it, at one instant."""
    older = OlderSelection(Position(AT, "m1"))
    names = [name for name in ("m11", "m1", "m10", "m0") if older(Message(name, "ann", ("bob",), AT, "x"))]
    assert (names, older(Message("m2", "ann", ("bob",), AT - 1, "x"))) == (["m10", "m0"], True)
