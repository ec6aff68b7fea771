"""The table of control messages: a part of the fold answers as the whole does, and no attack uses what is derived."""

from __future__ import annotations

import json
import os
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.control.leasing import Leasing
from agent_mailbox.control_plane import control_log, standing
from agent_mailbox.core import codec, proofs
from agent_mailbox.core.compose import Draft
from agent_mailbox.core.control import message_text
from agent_mailbox.core.control import messages as m
from agent_mailbox.core.instant import DAY
from agent_mailbox.core.records import USER, Message
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from agent_mailbox.store.projection import control_table, index_keys
from tests.helpers import MESSAGES
from tests.trust.scene import DENIED, LEAD, OTHER, WORKER, Scene
from tests.trust.test_custody import ATTACKS, RULE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agent_mailbox.core.control.state import ControlState

HEIR = "9c1e6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed"
SENDERS = (WORKER, HEIR, LEAD, OTHER, USER)
IDS = [f"id-{n}" for n in range(40)]
LATE = 4_000_000_000_000
REQUESTS = [f"perm-{n:04}" for n in range(12)]


@pytest.fixture(autouse=True)
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is written again for every four messages."""
    monkeypatch.setattr(control_table, "MANY", 4)


def payload(chance: random.Random) -> m.Payload:
    """A payload of any flow, about few requests."""
    about, yes = chance.choice(REQUESTS), chance.random() < 0.7
    mode = chance.choice(["", "", *m.MODES])
    hosts = (chance.choice(["a.example", "b.example"]),)
    kinds: list[Callable[[], m.Payload]] = [
        lambda: m.ModeSet(mode=chance.choice(m.MODES)),
        lambda: m.PolicyUpdate(deny=(f"Bash({chance.choice('abc')}:*)",), adds=yes),
        lambda: m.TaskAssignment(request_id=about, title="t", plan_required=yes),
        lambda: m.TaskCompleted(request_id=about),
        lambda: m.TaskClaim(request_id=about, holder=chance.choice(["", WORKER])),
        lambda: m.LeasePaths(request_id=f"lease-{about}", project="/p", paths=("a",), expires=LATE),
        lambda: m.LeaseRelease(request_id=f"lease-{about}"),
        lambda: m.WatchAgent(request_id=f"watch-{about}", agent=WORKER, until=("dead",), expires=LATE),
        lambda: m.WatchEnd(request_id=f"watch-{about}"),
        lambda: m.PlanRequest(request_id=about, content="plan"),
        lambda: m.PlanResponse(request_id=about, approved=yes, mode=mode),
        lambda: m.PermissionRequest(request_id=about, tool="Bash"),
        lambda: m.PermissionResponse(request_id=about, approved=yes, mode=mode),
        lambda: m.SandboxRequest(request_id=about, capability="network", hosts=hosts),
        lambda: m.SandboxResponse(request_id=about, approved=yes, scope=chance.choice(m.SCOPES)),
        lambda: m.ShutdownRequest(request_id=about),
        lambda: m.ShutdownApproved(request_id=about),
        lambda: m.IdleNotification(reason="available"),
    ]
    return chance.choice(kinds)()


def said(scene: Scene, chance: random.Random, at: int) -> None:
    """A control message by anybody, sealed or not, perhaps under an id that was there before."""
    sender = chance.choice(SENDERS)
    to = chance.choice([(WORKER,), (HEIR,), (LEAD,), ("all",), (WORKER, OTHER)])
    content = message_text.written(payload(chance)) if chance.random() < 0.95 else "nonsense"
    about = Message(
        id=chance.choice(IDS) if chance.random() < 0.3 else f"one-{at}",
        sender=sender, recipients=to, timestamp=scene.mailbox.now() + at, content=content, type="control",
    )  # fmt: skip
    proof = (proofs.TERMINAL if sender == USER else proofs.of_session(sender)) if chance.random() < 0.7 else None
    scene.mailbox.logs.messages.append([codec.spell_message(about)], None, [proof])


PARTS: list[tuple[Callable[[OpenMailbox], ControlState], Callable[[ControlState, int], Iterable[Any]]]] = [
    (control_log.of_open, lambda fold, _: fold.open_requests()),
    (control_log.of_tasks, lambda fold, _: [task for task in fold.tasks.values() if not task.is_over]),
    (control_log.of_leases, lambda fold, now: fold.leases.live(now)),
    (control_log.of_watches, lambda fold, now: fold.watches.live(now)),
]


@pytest.mark.parametrize("seed", range(2))
def test_a_part_answers_as_the_whole_does(scene: Scene, seed: int) -> None:
    """The control table answers as the whole control log does, for every agent, message and request. It does so
    whatever was said and however far it was written."""
    chance = random.Random(seed)
    scene.mailbox.register(Registration(session_id=HEIR, lead=LEAD, continues=WORKER, client="4712"), HEIR)
    for at in range(100):
        said(scene, chance, at)
        if chance.random() < 0.1:
            scene.control.standing(chance.choice(SENDERS))
    desk, whole = scene.control, scene.control.plane()
    for agent in (WORKER, HEIR, LEAD, OTHER):
        assert desk.standing(agent) == standing.of(whole, agent)
    for message_id, verdict in whole.verdicts.items():
        assert control_log.of_messages(desk.box, [message_id]).verdicts[message_id] == verdict
    for request in (*whole.requests.values(), *whole.tasks.values()):
        found = desk.find(request.id) if request.flow != "task" or request.id not in whole.requests else request
        assert found.replace(place=0) == request.replace(place=0)
    now = desk.box.now() + 100
    for _ in range(2):  # the second time the decided are noted
        for part, ask in PARTS:
            there, found = ([one.replace(place=0) for one in ask(fold, now)] for fold in (whole, part(desk.box)))
            assert found == there
            assert there, part
    assert standing.of(whole, WORKER) != standing.of(whole, "nobody")
    assert table(scene).exists()


def table(scene: Scene) -> Path:
    """The table's file."""
    record = scene.mailbox.logs.custody
    assert record is not None
    return Path(record.path(index_keys.FILE))


def filled(scene: Scene) -> None:
    """A table of some messages, the worker's orders among them."""
    for _ in range(control_table.MANY + 1):
        scene.control.set_mode(USER, [LEAD], "plan")
    scene.control.standing(LEAD)


def altered(scene: Scene, _: Path) -> None:
    """The deny line's rule changed in place, so that its seal proves nothing."""
    path = scene.post.file(MESSAGES)
    with path.open("r+b") as file:
        file.write(path.read_bytes().replace(b"Bash(curl:*)", b"Bash(cur1:*)"))


@pytest.mark.parametrize("attack", [*ATTACKS, altered])
def test_who_was_bound_stays_bound_beside_a_table(
    scene: Scene, tmp_path: Path, attack: Callable[[Scene, Path], None]
) -> None:
    """Lines that are named by a table are weighed as they stand."""
    filled(scene)
    copy = scene.copy(tmp_path / "copy")
    scene.policy(deny=(RULE,))
    filled(scene)
    assert scene.rules() == ((), (RULE,))
    attack(scene, copy)
    assert scene.asked(DENIED) == "deny"
    assert any("doctor --trust" in what for what in scene.problems())


def test_a_table_holds_places_alone(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question reads the lines it is about, and no others; a mailbox without a record has no table."""
    filled(scene)
    scene.policy(deny=(RULE,))
    filled(scene)
    read: list[int] = []
    line_at = control_table.line_at
    monkeypatch.setattr(control_table, "line_at", lambda fd, at: (read.append(at), line_at(fd, at))[1])
    assert scene.rules() == ((), (RULE,))
    assert len(read) == 1
    assert RULE.encode() not in table(scene).read_bytes()
    assert not scene.post.file(".cache/control").exists()


@pytest.mark.parametrize("wrong", ["digest", "generation", "count", "inode", "position"])
def test_a_table_of_a_wrong_count_accuses_nobody(scene: Scene, wrong: str) -> None:
    """It is made again: the log is what it was."""
    scene.policy(deny=(RULE,))
    filled(scene)
    path = table(scene)
    at = path.stat()
    db = sqlite3.connect(path)
    (counted,) = db.execute("SELECT counted FROM sources").fetchone()
    generation, count, digest = counted.split()
    said = {"digest": (generation, count, digest[::-1]), "generation": (b"9", count, digest)}
    counts = b" ".join(said.get(wrong, (generation, b"99999" if wrong == "count" else count, digest)))
    db.execute("UPDATE sources SET counted = ?", (counts,))
    if wrong in ("inode", "position"):
        db.execute(f"UPDATE sources SET {wrong} = {wrong} + 1000000")
    db.commit()
    before = db.execute("SELECT inode, position, counted FROM sources").fetchone()
    db.close()
    os.utime(path, ns=(at.st_atime_ns, at.st_mtime_ns))
    scene.control.set_mode(USER, [LEAD], "default")
    assert scene.rules() == ((), (RULE,))
    assert scene.mailbox.logs.broken() is None
    with closing(sqlite3.connect(path)) as db:
        inode, position, counted = db.execute("SELECT inode, position, counted FROM sources").fetchone()
    assert inode == scene.post.file(MESSAGES).stat().st_ino
    assert position <= scene.post.file(MESSAGES).stat().st_size
    assert counted.split()[0] == generation
    assert (inode, position, counted) != before


def test_what_an_answer_brings_is_found_by_its_asker(scene: Scene) -> None:
    """A mode in the answer to a request that the table has, and that mode when the table has it, too."""
    asked = scene.control.request(WORKER, m.PermissionRequest(tool="Bash", input=DENIED))
    filled(scene)
    scene.control.answer(USER, asked.id, True, mode="acceptEdits")
    assert scene.control.standing(WORKER).mode == "acceptEdits"
    filled(scene)
    assert scene.control.standing(WORKER).mode == "acceptEdits"


@pytest.mark.parametrize("giver", [USER, WORKER])
def test_a_task_binds_whoever_claims_it(scene: Scene, giver: str) -> None:
    """A task for a role requires a plan of its holder, which claims it or is given it."""
    scene.mailbox.register(Registration(session_id=WORKER, event="update", add_tags=("role:dev",)), WORKER)
    task = scene.control.add_task(USER, ("role:dev",), m.TaskAssignment(title="t", plan_required=True)).task
    filled(scene)
    assert not scene.control.standing(WORKER).waits_for_plan
    scene.control.claim_task(giver, task.id, WORKER)
    filled(scene)
    assert scene.control.standing(WORKER).waits_for_plan


@pytest.mark.parametrize("has_table", [False, True])
def test_mail_with_the_text_of_an_order_is_none(scene: Scene, has_table: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its subject is the word by which orders are found, and its sender may command. It binds neither of two, nor does
    it decide or end anything: only an order does, which is of that type. A table does not name it."""
    asked = [scene.control.request(WORKER, m.PermissionRequest(tool="Bash", arguments=word)).id for word in ("ls", "ü")]
    if has_table:
        filled(scene)
    before = {who: scene.control.standing(who) for who in (WORKER, OTHER)}
    texts = [
        m.PolicyUpdate(allow=("Bash",), deny=("Write",)),
        m.ModeSet(mode="plan"),
        m.ShutdownRequest(reason="over"),
        *(m.PermissionResponse(request_id=request_id, approved=True) for request_id in asked),
    ]
    for text in texts:
        draft = Draft(sender=USER, to=(WORKER, OTHER), subject="control", content=message_text.written(text))
        assert scene.mailbox.send(draft).message.type == "message"
    read, line_at = list[bytes](), control_table.line_at
    monkeypatch.setattr(control_table, "line_at", lambda fd, at: read.append(line_at(fd, at)) or read[-1])
    desk = scene.control
    assert {who: desk.standing(who) for who in before} == before
    assert [desk.find(one).state for one in asked] == ["open", "open"]
    assert [one.id for one in control_log.of_open(desk.box).open_requests()] == asked
    assert read
    assert {json.loads(line).get("type") for line in read} == {"control"}
    assert len(desk.plane().verdicts) == len(scene.post.objects(MESSAGES)) - len(texts)


def test_what_is_decided_is_read_no_more_to_tell_what_waits(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first question finds the decided ones out; whatever waits, or is asked again, is read each time."""
    asked = [scene.control.request(WORKER, m.PermissionRequest(tool="Bash", input=DENIED)) for _ in range(9)]
    for request in asked[1:]:
        scene.control.answer(USER, request.id, False)
    filled(scene)
    for _ in range(2):
        desk = scene.control
        assert [request.id for request in desk.pending(USER, everyones=True)] == [asked[0].id]
    read: list[int] = []
    line_at = control_table.line_at
    monkeypatch.setattr(control_table, "line_at", lambda fd, at: (read.append(at), line_at(fd, at))[1])
    later = scene.control.request(WORKER, m.PlanRequest(goal="g"))
    read.clear()
    assert [request.id for request in scene.control.pending(USER, everyones=True)] == [asked[0].id, later.id]
    assert len(read) < 4


def test_a_lease_by_a_clock_that_was_ahead_hides_none_that_holds(scene: Scene) -> None:
    """The clock was a month ahead once. Leases that were taken since then hold, for all who ask the table."""
    now = scene.mailbox.now()

    def leasing(at: int) -> Leasing:
        return Leasing(OpenMailbox(str(scene.post.box), clock=lambda: at))

    leasing(now + 31 * DAY).lease(WORKER, ["first"], str(scene.post.cwd), 30)
    held = [leasing(now).lease(WORKER, [f"file-{at}"], str(scene.post.cwd), 30) for at in range(6)]
    for _ in range(2):
        assert leasing(now + 1).leases() == held


def test_a_lease_brings_no_other_along_that_has_its_note(scene: Scene) -> None:
    """Each look reads the one that holds, however many were given up before it."""
    for _ in range(2 * control_table.MANY):
        over = Leasing(scene.mailbox).lease(WORKER, ["first"], str(scene.post.cwd), 30, "wip")
        Leasing(scene.mailbox).release_lease(WORKER, over.id)
    held = Leasing(scene.mailbox).lease(WORKER, ["second"], str(scene.post.cwd), 30, "wip")
    for _ in range(2):
        box = OpenMailbox(str(scene.post.box))
        assert Leasing(box).leases() == [held]
    assert [one.id for one in box.part(control_log.ControlReading).found] == [held.message_id]


def test_an_answer_that_counts_for_nothing_hides_no_request(scene: Scene) -> None:
    """A stranger's word, proven to be its own, lines in anybody's name, and one that is no message."""
    scene.post.append(MESSAGES, b'{"id":"half","type":"control"}\n')
    many = control_table.MANY + 1
    asked = [scene.control.request(WORKER, m.PermissionRequest(tool="Bash", input=DENIED)).id for _ in range(many)]
    for sender, proof in ((OTHER, proofs.of_session(OTHER)), (OTHER, None), (WORKER, proofs.of_session(WORKER))):
        for at, request_id in enumerate(asked):
            content = message_text.written(m.PermissionResponse(request_id=request_id, approved=True))
            answer = Message(
                id=f"answer-{sender[:4]}-{proof is None}-{at}", sender=sender, recipients=(WORKER,),
                timestamp=scene.mailbox.now(), content=content, type="control",
            )  # fmt: skip
            scene.mailbox.logs.messages.append([codec.spell_message(answer)], None, [proof])
        assert [request.id for request in scene.control.pending(USER, everyones=True)] == asked


def test_a_shortened_id_is_found(scene: Scene) -> None:
    """A request is found by the beginning of its id, or of its message's id."""
    filled(scene)
    asked = scene.control.request(WORKER, m.PermissionRequest(tool="Bash", input=DENIED))
    for word in (asked.id, asked.id[:9], asked.message_id, asked.message_id[:8]):
        assert scene.control.find(word).replace(place=0) == asked.replace(place=0)
