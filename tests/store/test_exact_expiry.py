"""Mail that expires at an instant of its own: every reader judges it alike, those that look at bytes too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox import Draft, Mailbox, Request
from agent_mailbox.core import dead_letters, inbox, instant, proofs
from agent_mailbox.core.instant import HOUR, MINUTE
from agent_mailbox.errors import Malformed, Refused
from agent_mailbox.mailbox.queries import MailQueries
from agent_mailbox.store.log.logs import parse_messages
from agent_mailbox.store.polling import poll
from agent_mailbox.store.polling.poll import Poll
from agent_mailbox.upkeep import steward
from tests.store.history import mailbox

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_mailbox.core.records import Message

NOW = instant.parse("2026-03-16T12:00:00Z")
ID = "b1134fc7-6f1e-4997-83ed-699c6c8ae68{}"
SENT = [
    *(("bob", 30, -10 * HOUR), ("bob", 30, -MINUTE), ("role:dev", 30, -MINUTE), ("project:p", 90, -MINUTE)),
    *(
        ("bob", 1, MINUTE),
        ("role:dev", 1, MINUTE),
        ("all", 1, 0),
        ("bob", 1, None),
        ("bob", 30, None),
        ("bob", 28, None),
    ),
]
"""To whom, sent how many hours ago, expired how long ago (ms; negative: it will); None: by its mode alone."""
ENDS = [
    NOW - sent * HOUR + 2 * number + 24 * HOUR if ago is None else NOW - ago
    for number, (_, sent, ago) in enumerate(SENT)
]


class Clock:
    """A clock that is set."""

    now = NOW

    def __call__(self) -> int:
        return self.now


def _written(root: Path, clock: Clock) -> Mailbox:
    """Return a mailbox to which Ann sent all that, with mail for others between."""
    made = mailbox(str(root), clock)
    clock.now = NOW - 100 * HOUR
    for who in ("ann", "bob", "cat"):
        made.register(Request(session_id=who, roles=("dev",) * (who == "bob"), tags=("project:p",)), "user")
    for number, (to, sent, ago) in sorted(enumerate(SENT), key=lambda one: -one[1][1]):
        clock.now = NOW - sent * HOUR + 2 * number  # no two at one instant: their order would be nobody's
        ends = None if ago is None else NOW - ago
        made.send(Draft(sender="ann", to=(to,), content=f"letter {number}", expires_at=ends, id=ID.format(number)))
        clock.now += 1
        made.send(Draft(sender="ann", to=("cat",), content="between"))
    clock.now = NOW
    return made


CLOCK = Clock()


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Mailbox:
    """A mailbox with all that mail, which nobody has read."""
    return _written(tmp_path_factory.mktemp("ends"), CLOCK)


def _numbers(messages: Iterable[Message]) -> set[int]:
    ids = {message.id for message in messages}
    return {number for number in range(len(SENT)) if ID.format(number) in ids}


@pytest.mark.parametrize("large", [0, 1 << 40], ids=["looked through as bytes", "sieved"])
@pytest.mark.parametrize("after", [-20 * HOUR, -2 * HOUR, -MINUTE, 0, MINUTE, 10 * HOUR - 1, 10 * HOUR])
def test_a_poll_shows_mail_until_it_expires(
    box: Mailbox, after: int, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does so without a cursor, and from a cursor that was saved while the mail was unread."""
    monkeypatch.setattr(poll, "LARGE", large)
    now, state = NOW + after, box.state()
    for begun in (now - 2 * MINUTE, now):
        Path(box.logs.cache(poll.CURSORS, "bob")).unlink(missing_ok=True)
        for at in (begun, now):
            looking = Poll(box.logs, "bob", box.config)
            found = [item.message for item in looking.unread(at)]
            looking.save()
            assert found == [item.message for item in inbox.unread("bob", state, at)]
        assert _numbers(found) == {number for number, ends in enumerate(ENDS) if now < ends}


@pytest.mark.parametrize("after", [-2 * HOUR, -MINUTE, 0, MINUTE, 10 * HOUR])
def test_dead_letters_are_what_has_expired(box: Mailbox, after: int) -> None:
    """A later message may expire before an earlier one: the order of sending tells nothing."""
    CLOCK.now = NOW + after
    expired = {number for number, ends in enumerate(ENDS) if NOW + after >= ends}
    for who in (None, "ann", "bob"):
        found, left_out = MailQueries(box).dead_letters(who)
        assert (_numbers(message for message, _ in found), left_out) == (expired, 0)
        assert found == dead_letters.dead_letters(box.state(), NOW + after, who)
        some, more = MailQueries(box).dead_letters(who, limit=3)
        assert (some, len(some) + more) == (found[-3:], len(found))
    CLOCK.now = NOW


def test_the_steward_archives_and_tells_of_what_has_expired(tmp_path: Path) -> None:
    """Mail that still waits stays live, however old it is, and its sender is told of no other."""
    box = _written(tmp_path, Clock())
    steward.run_upkeep(
        Mailbox(box.directory, clock=Clock(), prove=lambda _: proofs.STEWARD), max_live=0, trust_clock=True
    )
    live = parse_messages(box.logs.messages.lines())
    expired = {number for number, ends in enumerate(ENDS) if ends <= NOW}
    assert _numbers(live.values()) == {*range(len(SENT))} - expired
    told = [str(message.metadata) for message in live.values() if message.sender == proofs.STEWARD]
    assert {number for number in range(len(SENT)) if any(ID.format(number) in ids for ids in told)} == expired


def test_a_frozen_reader_stops_no_instant(tmp_path: Path) -> None:
    """The clock that stops is that of a time to live."""
    clock = Clock()
    box = _written(tmp_path, clock)
    box.end("bob", "freeze", "user")
    clock.now = NOW + 100 * HOUR
    box.register(Request(session_id="bob"), "bob")
    assert _numbers(item.message for item in box.peek("bob")) == {7}


def test_an_instant_that_cannot_be_is_refused(tmp_path: Path) -> None:
    """A passed one, one beside hours to live, one far off; but the same mail may be sent again once it has passed."""
    clock = Clock()
    box = _written(tmp_path, clock)

    def send(**given: Any) -> Message:
        return box.send(Draft(**{"sender": "ann", "to": ("bob",), "content": "x", **given})).message

    for bad in ({"expires_at": NOW}, {"expires_at": NOW + HOUR, "ttl_hours": 1}, {"expires_at": 1 << 46}):
        with pytest.raises(Malformed):
            send(**bad)
        with pytest.raises(Malformed):
            send(**bad, id=ID.format("a"))
    sent = send(expires_at=NOW + HOUR, id=ID.format("a"))
    clock.now = NOW + 2 * HOUR
    assert send(expires_at=NOW + HOUR, id=ID.format("a")) == sent
    assert send(expires_at=NOW + 3 * HOUR, id=ID.format("a")) == sent, "a time from now is another instant by then"
    with pytest.raises(Refused):
        send(id=ID.format("a"))
