"""Several processes at once: every message to every reader exactly once, whoever else writes, reads or rotates."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox import Draft, Mailbox, Refused
from agent_mailbox.mailbox.queries import MailQueries
from agent_mailbox.upkeep import steward as stewards
from tests.helpers import MESSAGES, PATIENCE, READS, Post, start_at_once

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

LAST = "the last one"


def together(post: Post, *jobs: tuple[object, ...], meanwhile: Callable[[], object] = lambda: None) -> list[Any]:
    """Run the jobs in a process each, all started at the same moment; what each found."""
    with ExitStack() as stack:
        children: list[subprocess.Popen[bytes]] = []
        for job, *words in jobs:
            child = post.start(job, post.box, *words, python=("-m", "tests.store.worker"))
            stack.enter_context(child)
            stack.callback(child.kill)
            children.append(child)
        start_at_once(children)
        meanwhile()
        results = []
        for child in children:
            out, err = child.communicate(timeout=PATIENCE)
            assert child.returncode == 0, err.decode()
            results.append(json.loads(out))
        return results


def test_four_senders_and_two_readers_deliver_everything_once(post: Post) -> None:
    """4 processes × 40 messages, to each reader and to both: nothing lost, nothing twice, each sender's order kept."""
    for agent in ("r1", "r2"):
        post.register(agent)
    senders = [("send", f"s{n}", 40, "r1", "r2", "all") for n in range(4)]
    mine = {"r1": (0, 2), "r2": (1, 2)}  # of every three messages: which are for whom
    counts = {me: 4 * sum(n % 3 in turns for n in range(40)) for me, turns in mine.items()}
    *sent, first, second = together(post, *senders, *[("read", me, count) for me, count in counts.items()])
    assert len({i for ids in sent for i in ids}) == 160
    for me, shown in (("r1", first), ("r2", second)):
        wanted = [[i for n, i in enumerate(ids) if n % 3 in mine[me]] for ids in sent]
        assert sorted(shown) == sorted(i for ids in wanted for i in ids)
        for ids in wanted:
            assert [i for i in shown if i in set(ids)] == ids
    assert post.check("r1") == post.check("r2") == []
    assert len(post.lines(MESSAGES)) == 160
    assert post.doctor() == []


def test_role_mail_goes_to_exactly_one_of_several_holders(post: Post) -> None:
    """Four holders, one of them in two processes, check at the same moments: each message is shown once overall."""
    holders = [f"h{n}" for n in range(1, 5)]
    for agent in holders:
        post.register(agent, "--role", "builder")
    mailbox = Mailbox(str(post.box))
    drafts = [Draft(sender="a", to=("role:builder",), content=f"{n}") for n in range(91)]
    sent = [one.message.id for one in mailbox.send_all(drafts)]

    def more() -> None:
        sent.extend(
            mailbox.send(Draft(sender="a", to=("role:builder",), content=f"more {n}")).message.id for n in range(8)
        )
        sent.append(mailbox.send(Draft(sender="a", to=("role:builder",), content=LAST)).message.id)

    shown = together(post, *[("share", me, LAST) for me in (*holders, "h4")], meanwhile=more)
    rest = [i for me in holders for i in post.check(me)]
    assert sorted([*(i for ids in shown for i in ids), *rest]) == sorted(sent)
    for event in ("claim", "read"):
        records = [r for r in post.objects(READS) if r["event"] == event]
        assert sorted(r["message_id"] for r in records) == sorted(sent)
        assert {r["as"] for r in records} == {"role:builder"}


def test_one_session_in_two_processes_sees_each_message_once(post: Post) -> None:
    """Two checks of the same session at the same moment never both show a message."""
    post.register("me")
    sent = [post.send("a", "me", f"{n}") for n in range(12)]
    mailbox = Mailbox(str(post.box))

    def last() -> None:
        sent.append(mailbox.send(Draft(sender="a", to=("me",), content=LAST)).message.id)

    shown = together(post, ("share", "me", LAST), ("share", "me", LAST), meanwhile=last)
    assert sorted(i for ids in shown for i in ids) == sorted(sent)


def test_readers_beside_a_rotating_steward_see_everything_at_every_moment(post: Post) -> None:
    """While logs are swapped again and again: nothing vanishes, pending mail stays, a consumer gets each once."""
    for agent in ("consumer", "watcher", "done"):
        post.register(agent)
    for n in range(5):
        post.send("a", "watcher", f"pending {n}", "--ttl-hours", "1000")
    mailbox = Mailbox(str(post.box))
    wanted, archived = [], []

    def rotate() -> None:
        for n in range(12):
            for to in ("done", "consumer"):
                made = mailbox.send(Draft(sender="a", to=(to,), content=f"{to} {n}"))
                wanted.extend([made.message.id] if to == "consumer" else [])
            mailbox.deliver("done", lambda items: items)
            archived.append(stewards.run_upkeep(mailbox, 0).archived)
        mailbox.send(Draft(sender="a", to=("nobody",), content=LAST))

    (rounds,), consumed = together(post, ("watch", "watcher", LAST), ("read", "consumer", 12), meanwhile=rotate)
    assert int(rounds) > 0
    assert sum(archived) >= 12
    assert consumed == wanted
    stewards.run_upkeep(mailbox, 0)
    everything = MailQueries(mailbox).everything()
    assert len(everything.messages) == 30
    assert {i: [r.session_id for r in everything.reads.of(i)] for i in wanted} == {i: ["consumer"] for i in wanted}
    assert post.doctor() == []


def test_mail_that_is_archived_while_it_is_given_back_is_not_given_back(post: Post) -> None:
    """A release that lost the race against the steward is refused: what it acknowledges, somebody gets to read."""
    for agent in ("h1", "h2"):
        post.register(agent, "--role", "builder")
    sent = post.send("a", "role:builder", "for one of you")
    assert post.check("h1") == [sent]
    runs = []

    def clock() -> int:
        """The time, looked at between finding the message and giving it back: the moment the steward comes."""
        if not runs:
            runs.append(stewards.run_upkeep(Mailbox(str(post.box)), 0).archived)
        return time.time_ns() // 1_000_000

    with pytest.raises(Refused, match="archived"):
        Mailbox(str(post.box), clock=clock).release(sent, "h1")
    assert runs == [1]
    assert [r["event"] for r in post.ok("show", sent)["receipts"]] == ["claim", "read"]


def test_two_stewards_at_once_do_the_work_once(post: Post) -> None:
    """The second waits for the first, or is told to come again; every message is archived once."""
    post.register("b")
    sent = [post.send("a", "b", f"{n}") for n in range(5)]
    post.check("b")
    with ExitStack() as stack:
        children = [stack.enter_context(post.start("steward", "run", "--max-live", "0", "--json")) for _ in range(3)]
        codes = [child.wait(PATIENCE) for child in children]
    assert set(codes) <= {0, 4}
    assert 0 in codes
    assert [m["id"] for m in post.ok("history", "--all")["messages"]] == sent
    months = [p for p in post.file("agent-mailbox-archive").glob("[0-9]*.jsonl") if "reads" not in p.name]
    assert sum(p.read_bytes().count(b"\n") for p in months) == 5


def test_a_contested_name_goes_to_one(post: Post) -> None:
    """Four processes register under the same names at once: each name has one bearer."""
    had = together(post, *[("enrol", f"p{n}", 12) for n in range(4)])
    assert sorted(name for names in had for name in names) == sorted(f"name{n}" for n in range(12))
