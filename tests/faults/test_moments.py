"""What happens at the worst moment: beside another's delivery, beside the steward, between two attempts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agent_mailbox import Mailbox
from agent_mailbox.core.keeping import retention
from agent_mailbox.store.archive import rotation
from tests.faults import commands, world
from tests.faults.evidence import Evidence
from tests.faults.world import OLD_CLAIM, ROLE
from tests.helpers import MESSAGES, READS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_mailbox.core.inbox import InboxState, Item
    from agent_mailbox.core.keeping.retention import RetentionPlan
    from tests.faults.commands import Command
    from tests.faults.faults import Case


def test_role_mail_that_one_is_being_shown_goes_to_no_other(
    case_of: Callable[[Command], Case], tally: Callable[[object, str, int], None]
) -> None:
    """While bob is shown his mail, cat's hook runs: she gets her own, and not what both could claim."""
    case = case_of(commands.HOOK)
    cat = json.dumps({"session_id": "cat", "cwd": "/", "hook_event_name": "UserPromptSubmit"})

    def show(items: list[Item]) -> Sequence[Item]:
        assert ROLE in {item.message.id for item in items}
        told = case.post.run("hook", "UserPromptSubmit", stdin=cat).json["hookSpecificOutput"]["additionalContext"]
        assert world.body(world.TAG) in told
        assert world.body(ROLE) not in told
        return items

    Mailbox(str(case.post.box)).deliver("bob", show)
    standing = Evidence(case.post.box).standing()
    assert [reader for reader, number in standing if number == ROLE] == ["bob"]
    tally(commands.HOOK, "beside another", 1)


def test_what_foreign_programs_write_beside_the_steward_stays(
    case_of: Callable[[Command], Case], tally: Callable[[object, str, int], None]
) -> None:
    """They take no locks: what they append after the steward has read the logs follows in the new ones, whole."""
    case = case_of(commands.STEWARD)
    mailbox = Mailbox(str(case.post.box))
    late = {
        MESSAGES: world.message(world.message_id(300), "zed", "role:absent", 0),
        READS: world.read(world.message_id(300), "zed", 0, "role:absent"),
    }

    def decide(state: InboxState) -> RetentionPlan:
        for name, line in late.items():
            case.post.append(name, line)
        return retention.plan(state, mailbox.now(), 0)

    assert rotation.rotate(mailbox.logs, mailbox.archive, mailbox.config.ttls, decide).archived >= 3
    after = Evidence(case.post.box)
    for name, line in late.items():
        assert line.rstrip(b"\n") in after.lines(name, archived=False), name
    tally(commands.STEWARD, "beside foreign writers", len(late))


def test_a_message_repeated_after_it_was_archived_is_the_same_message(
    case_of: Callable[[Command], Case], tally: Callable[[object, str, int], None]
) -> None:
    """Its sender did not learn that it was sent; since then it was read and moved. The same id doubles nothing."""
    case = case_of(commands.SEND)
    words = ["send", "--from", "dee", "--to", "gil", "--body", commands.BODY, "--id", commands.SENT]
    assert case.post.call(*words).rc == 0
    assert case.post.check("gil") == [commands.SENT]
    assert case.post.call("steward", "run", "--max-live", "0").rc == 0
    after = Evidence(case.post.box)
    assert after.ids(live=False)[commands.SENT] == 1
    assert case.post.call(*words).rc == 0
    assert Evidence(case.post.box).ids() == after.ids()
    assert case.post.unread("gil") == []
    tally(commands.SEND, "repeated when archived", 1)


def test_a_message_that_lacks_its_newline_is_shown_once(
    case_of: Callable[[Command], Case], tally: Callable[[object, str, int], None]
) -> None:
    """Its writer died a byte too early, or is no program of ours: whether a record follows or not, it is shown once."""
    case = case_of(commands.SEND_PLAIN)
    number = world.message_id(400)
    case.post.append(MESSAGES, world.message(number, "ann", "gil", 0).rstrip(b"\n"))
    assert case.post.check("gil") == [number]
    assert case.post.unread("gil") == case.post.check("gil") == []
    another = case.post.send("ann", "gil")
    assert case.post.check("gil") == [another]
    assert case.post.unread("gil") == []
    tally("check", "newline lacking", 1)


def test_the_witness_sees_what_is_missing(case_of: Callable[[Command], Case]) -> None:
    """The claims can fail: reads that left before their message make it unread again, and the witness says so."""
    case = case_of(commands.STEWARD)
    log = case.post.file(READS)
    log.write_bytes(
        b"".join(one for one in log.read_bytes().splitlines(keepends=True) if OLD_CLAIM.encode() not in one)
    )
    assert OLD_CLAIM in case.post.unread("bob")
