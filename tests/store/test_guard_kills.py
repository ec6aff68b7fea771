"""The shell guard's stamps stay true however a command ends: killed at any system call, its write whole or half."""

from __future__ import annotations

import pytest

from agent_mailbox import Draft, Mailbox
from agent_mailbox.core import inbox
from agent_mailbox.core.roster_changes import Registration
from tests.helpers import Post
from tests.store.test_crash import crashed, opened

READERS = ("ann", "bob", "cat", "dee")


@pytest.fixture
def quiet(post: Post) -> tuple[Post, str]:
    """Everyone has read everything and is stamped quiet; cat holds a role message, a role of nobody's has mail."""
    mailbox = opened(post.box)
    for name, role in zip(READERS, (None, "builder", "builder", None), strict=True):
        mailbox.register(Registration(session_id=name, roles=(role,) if role else None, tags=("project:x",)), name)
    held = mailbox.send(Draft(sender="ann", to=("role:builder",), content="x", ack=True)).message.id
    mailbox.send(Draft(sender="ann", to=("role:empty",), content="x"))
    for name in ("cat", *READERS):
        mailbox.deliver(name, lambda items: items)
    assert all(mailbox.logs.trail.is_quiet(name) for name in READERS)
    return post, held


def false_nothings(mailbox: Mailbox) -> list[str]:
    """Those of whom a stamp says that they have nothing to read, and the logs say otherwise."""
    state, now = mailbox.state(), mailbox.now()
    return [name for name in READERS if mailbox.logs.trail.is_quiet(name) and inbox.unread(name, state, now)]


@pytest.mark.parametrize("which", ["before", "within"])
@pytest.mark.parametrize(
    "command",
    [
        "send --from ann --to bob --body x",
        "send --from ann --to project:x,builder --body x",
        "send --from ann --to all --body x",
        "release {held} --session cat",
        "roster update --session-id dee --role empty",
        "roster register --session-id new --name nan",
        "roster retire cat",
        "steward run --max-live 0",
        "check --session bob",
    ],
)
def test_killed_anywhere_a_command_leaves_no_stamp_in_front_of_mail(
    quiet: tuple[Post, str], command: str, which: str
) -> None:
    """A needless "maybe" is allowed, a false "nothing" never; and run to its end the command is no exception."""
    post, held = quiet
    for place in crashed(post, which, *command.format(held=held).split()):
        assert false_nothings(opened(place / "box")) == []


def test_the_check_finds_a_forged_stamp(quiet: tuple[Post, str]) -> None:
    """The claim above can fail: a stamp in front of mail is found."""
    mailbox = opened(quiet[0].box)
    mailbox.send(Draft(sender="ann", to=("bob",), content="x"))
    assert false_nothings(mailbox) == []
    mailbox.logs.trail.stamp("bob", mailbox.now())
    assert false_nothings(mailbox) == ["bob"]
