"""Mail that a stranger shaped to be costly costs no more than other mail: the work grows with its amount alone."""

from __future__ import annotations

import json
import tracemalloc
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from agent_mailbox import Draft, Request
from agent_mailbox.commands import exporting, fleet_view
from agent_mailbox.core import conversations
from agent_mailbox.core.inbox import InboxState
from agent_mailbox.core.instant import DAY
from agent_mailbox.core.keeping import retention
from agent_mailbox.core.message_reads import Reads
from agent_mailbox.core.roster import Roster
from agent_mailbox.mailbox.delivery import Delivery
from agent_mailbox.mailbox.mail_stream import stream
from agent_mailbox.mailbox.queries import MailQueries
from agent_mailbox.upkeep import steward
from agent_mailbox.upkeep.doctor import derived_checks
from tests.core.build import message
from tests.steps import grows_no_faster, steps
from tests.store.history import ids
from tests.store.test_index import Indexed, mailbox

if TYPE_CHECKING:
    from pathlib import Path

    from agent_mailbox import Mailbox

HEAD = "aaaaaaaa-0000-4000-8000-"


def plain(count: int) -> list[str]:
    make = ids(count)
    return [make() for _ in range(count)]


def alike(count: int) -> list[str]:
    """Ids that begin in the same way."""
    return [f"{HEAD}{n:012x}" for n in range(count)]


def same(count: int) -> list[str]:
    """One id, again and again."""
    return [HEAD + "0" * 12] * count


def colliding(count: int) -> list[str]:
    """Ids with one CRC-32: the checksum is linear, so some flips of bits cancel out (``0`` to ``7`` stay digits)."""
    start = bytearray((HEAD + "0" * 12).encode())
    zeros = b"0" * len(start)
    basis: dict[int, tuple[int, frozenset[tuple[int, int]]]] = {}
    found = []
    for place in [*range(8), *range(24, 36)]:
        for bit in (1, 2, 4):
            flipped = bytearray(zeros)
            flipped[place] ^= bit
            change, flips = zlib.crc32(flipped) ^ zlib.crc32(zeros), frozenset({(place, bit)})
            while change and (known := basis.get(change.bit_length())) is not None:
                change, flips = change ^ known[0], flips ^ known[1]
            if change:
                basis[change.bit_length()] = change, flips
            else:
                found.append(flips)
    made = []
    for number in range(count):
        one = bytearray(start)
        for place, bit in (flip for k, flips in enumerate(found) if number >> k & 1 for flip in flips):
            one[place] ^= bit
        made.append(one.decode())
    assert len({zlib.crc32(i.encode()) for i in made}) == 1
    assert len(set(made)) == count
    return made


def chain(names: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Each answers the one before."""
    yield from zip(names, [None, *names[:-1]], strict=True)


def star(names: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """All answer the first."""
    yield from ((name, names[0] if k else None) for k, name in enumerate(names))


def ring(names: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Each answers the one before, and the first the last."""
    yield from zip(names, [names[-1], *names[:-1]], strict=True)


def written(directory: Path, talk: Sequence[tuple[str, str | None]], text: str = "alpha") -> Mailbox:
    """A mailbox into which another program wrote these messages, each with one reader."""
    box = mailbox(str(directory))
    box.register(Request(session_id="bob"), "user")
    with open(box.logs.messages.path, "ab") as file:
        for name, parent in talk:
            line = {"id": name, "sender": "amy", "recipient": "bob", "timestamp": "2026-03-16T12:00:00.000Z"}
            file.write(json.dumps({**line, "content": text, "thread": parent}).encode() + b"\n")
    with open(box.logs.reads.path, "ab") as file:
        for name in dict(talk):
            read = {"message_id": name, "reader_session_id": "bob", "timestamp": "2026-03-16T12:00:00.000Z"}
            file.write(json.dumps(read).encode() + b"\n")
    return box


Shape = Callable[[Sequence[str]], Iterator[tuple[str, str | None]]]


@pytest.mark.parametrize("shape", [chain, star, ring])
@pytest.mark.parametrize("names", [plain, alike, colliding])
def test_a_thread_costs_as_much_as_it_is_long(tmp_path: Path, names: Callable[[int], list[str]], shape: Shape) -> None:
    """However its ids are chosen and however its messages answer each other: through the index."""

    def make(count: int) -> Callable[[], object]:
        talk = list(shape(names(count)))
        asked = Indexed(written(tmp_path / str(count), talk))
        asked.search("nothing", 1)  # the index is there
        assert [m.id for m in asked.thread(talk[-1][0])[0]] == [name for name, _ in talk]
        return lambda: asked.thread(talk[0][0])

    grows_no_faster(make)


@pytest.mark.parametrize("names", [alike, colliding, same])
def test_search_and_history_cost_as_much_as_they_find(tmp_path: Path, names: Callable[[int], list[str]]) -> None:
    """Search and history cost as much as they find, even if ids begin alike, share a checksum, or are equal."""

    def make(count: int) -> Callable[[], object]:
        made = names(count)
        asked = Indexed(written(tmp_path / str(count), [(name, None) for name in made]))
        assert len(asked.search("alpha", 0)[0]) == len(set(made))
        return lambda: (asked.search("alpha", 0), asked.history(None))

    grows_no_faster(make)


@pytest.mark.parametrize("names", [plain, alike, colliding, same])
def test_the_index_follows_moved_mail_in_as_many_steps(tmp_path: Path, names: Callable[[int], list[str]]) -> None:
    """After the steward each line is found again at its new place."""

    def make(count: int) -> Callable[[], object]:
        made = names(count)
        box = written(tmp_path / str(count), [(name, None) for name in made])
        asked = Indexed(box)
        asked.search("nothing", 1)
        assert steward.run_upkeep(box, 0).archived == len(set(made))
        return lambda: asked.search("nothing", 1)

    grows_no_faster(make)


@pytest.mark.parametrize("shape", [chain, star, ring])
def test_a_thread_without_the_index_costs_as_much_as_it_is_long(shape: Shape) -> None:
    """A search without the index finds a thread at the cost of its length, from either end."""

    def make(count: int) -> Callable[[], object]:
        talk = {name: message(name, thread=parent) for name, parent in shape(plain(count))}
        first, *_, last = talk
        assert conversations.thread_of(last, talk) == list(talk.values())
        return lambda: (conversations.thread_of(first, talk), conversations.thread_of(last, talk))

    grows_no_faster(make)


def test_the_steward_decides_about_a_chain_of_requests_in_as_many_steps() -> None:
    """Each answer asks in its turn; the first request is still open, so all of them stay."""

    def make(count: int) -> Callable[[], object]:
        talk = {
            name: message(name, thread=parent, ack=True, to="bob" if parent else "role:dev")
            for name, parent in chain(plain(count))
        }
        finished = set(talk) - {next(iter(talk))}
        state = InboxState(messages=talk, reads=Reads(), roster=Roster(), ttls={})
        assert retention._without_settling_replies(finished, state) == set()
        return lambda: retention._without_settling_replies(finished, state)

    grows_no_faster(make)


def test_a_ring_of_answers_is_one_thread_with_what_hangs_on_it(tmp_path: Path) -> None:
    """Another program can write one; every member shows the whole of it, with the index and without."""
    talk = [*ring(plain(3)), ("11111111-0000-4000-8000-000000000000", plain(3)[1])]
    box = written(tmp_path, talk)
    box.send(Draft(sender="cat", to=("amy",), content="elsewhere"))

    class Scanning(MailQueries):
        def _ask(self, _: object) -> None:
            return None

    for queries in (Indexed(box), Scanning(box)):
        for name, _ in talk:
            assert [m.id for m in queries.thread(name)[0]] == [other for other, _ in talk]


def test_an_export_holds_a_few_messages_at_a_time(tmp_path: Path) -> None:
    """However many there are, live or archived: here 12 MB of them, in each form."""
    talk = [(name, None) for name in plain(200)]
    box = written(tmp_path, talk, "long " * 12_000)
    assert steward.run_upkeep(box, 100).archived == 200
    with open(box.archive.log("2026-03").path, "rb") as archived, open(box.logs.messages.path, "ab") as live:
        live.writelines(line for k, line in enumerate(archived) if k < 100)  # in both
    roster = box.logs.read_roster()
    for form, export in exporting.FORMATS.items():
        list(export(islice(stream(box), 1), roster, 0))  # what is imported then counts not
        tracemalloc.start()
        try:
            count = sum(len(part) for part in export(stream(box), roster, 0))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert count > 12_000_000, form
        assert peak < 8_000_000, form


def test_the_steward_sees_many_deaths_in_one_look_at_the_mail(tmp_path: Path) -> None:
    """Each session that it retires has read mail which it owes, and as much as any other."""

    def make(count: int) -> Callable[[], object]:
        box = mailbox(str(tmp_path / str(count)))
        for number in range(count):
            box.register(Request(session_id=f"worker-{number}", roles=(f"part-{number}",)), "user")
            box.send(Draft("user", (f"role:part-{number}",), "Please look.", ack=True))
            box.deliver(f"worker-{number}", lambda items: items)
            box.end(f"worker-{number}", "freeze", "user")
        start = box.now()
        box.now = lambda: start + 30 * DAY

        def sweep() -> None:
            assert steward.run_upkeep(box, trust_clock=True).retired == count

        return sweep

    grows_no_faster(make, 20)


def test_a_doctor_spends_nothing_on_cursors_that_the_steward_outdated(tmp_path: Path) -> None:
    """Each session has one, and a poll from its beginning would read all that is live."""

    def make(count: int) -> Callable[[], object]:
        box = mailbox(str(tmp_path / str(count)))
        box.send_all([Draft("user", ("role:nobody",), "Please look.") for _ in range(count)])
        for number in range(count):
            box.register(Request(session_id=f"worker-{number}"), "user")
            box.send(Draft("user", (f"worker-{number}",), "Please look."))
            box.deliver(f"worker-{number}", lambda items: items)
        assert steward.run_upkeep(box, 0).archived == count

        def check() -> None:
            assert not list(derived_checks._check_cursors(box, derived_checks.UnreadToCheck(box)))

        return check

    grows_no_faster(make, 20)


def test_a_death_is_settled_without_a_fold_of_the_mail_of_others(tmp_path: Path) -> None:
    """A session that begins under the name of a dead one waits for it."""
    box = mailbox(str(tmp_path))
    for name in ("worker", "other"):
        box.register(Request(session_id=name), "user")
    box.send(Draft("user", ("worker",), "Please look.", ack=True))
    box.send_all([Draft("user", ("other",), "Please look.", ack=True) for _ in range(400)])
    for name in ("worker", "other"):
        box.deliver(name, lambda items: items)
    whole = steps(box.state)
    assert steps(lambda: box.end("worker", "retire", "user")) < whole / 2


def test_a_name_with_many_bearers_is_looked_up_once_a_line(tmp_path: Path) -> None:
    """A session has the mail of all who had its name before: of each line one look tells whose it is."""

    def make(count: int) -> Callable[[], object]:
        box = mailbox(str(tmp_path / str(count)))
        for number in range(count):
            box.register(Request(session_id=f"bearer-{number}", name="Bo"), "user")
            box.end(f"bearer-{number}", "retire", "user")
        box.register(Request(session_id="me", name="Bo"), "user")
        box.send_all([Draft("user", ("role:nobody",), "Please look.") for _ in range(count)])
        return lambda: Delivery(box).peek("me")

    grows_no_faster(make)


def test_a_look_at_all_agents_folds_the_mail_once(tmp_path: Path) -> None:
    """After the steward archived no cursor holds, and a poll for each agent would read everything each time."""
    box, workers = mailbox(str(tmp_path)), [f"worker-{number}" for number in range(20)]
    for worker in workers:
        box.register(Request(session_id=worker), "user")
        box.send(Draft("user", (worker,), "Please look."))
    box.send_all([Draft("user", ("all",), "Please look.") for _ in workers])
    for worker in workers:
        box.deliver(worker, lambda items: items)
    assert steward.run_upkeep(box, 0).archived == len(workers)
    box.send(Draft("user", ("all",), "Please look."))
    app = SimpleNamespace(mailbox=box)
    whole = steps(lambda: [box.peek(worker) for worker in workers])
    assert [row.unread for row in fleet_view.FleetView(app, 50).list_rows()[0]] == [1] * len(workers)
    assert steps(fleet_view.FleetView(app, 50).list_rows) < whole / 2
