"""A mailbox's record outside the project: what is cut, replaced, replayed or brought from elsewhere frees nobody."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.commands import confirming
from agent_mailbox.core import codec, proofs
from agent_mailbox.core.compose import Draft
from agent_mailbox.core.control import messages as m
from agent_mailbox.core.records import USER, Message
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.errors import Refused, StorageFailed
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from agent_mailbox.store.archive import roster_compaction
from agent_mailbox.store.files import paths
from agent_mailbox.store.files.lines import lines_of
from agent_mailbox.store.files.small_files import TAIL
from agent_mailbox.store.log import custody, custody_setup
from agent_mailbox.store.log.custody import Kept, LogEnd
from agent_mailbox.store.log.log import HeldLog
from agent_mailbox.store.log.proof_view import ProofView
from agent_mailbox.store.user_state import creation
from agent_mailbox.upkeep import adoption, backup, restoring
from tests.control_desk import ControlDesk
from tests.helpers import MESSAGES, READS, ROSTER, Post, record, refused
from tests.surroundings import at_terminal, line
from tests.trust.scene import DENIED, LEAD, LOGS, OTHER, WORKER, Scene

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RULE = "Bash(curl:*)"
TOUCH = {"command": "touch x"}


def emptied(scene: Scene, _: Path) -> None:
    """The Write tool with nothing to write."""
    scene.post.file(MESSAGES).write_bytes(b"")


def cut(scene: Scene, _: Path) -> None:
    """The deny line taken out."""
    scene.without(RULE, same_length=False)


def blanked(scene: Scene, _: Path) -> None:
    """The deny line overwritten by as many blanks, in the same file."""
    scene.without(RULE, same_length=True)


def replaced(scene: Scene, copy: Path) -> None:
    """Another file with the same bytes, but for the deny line."""
    scene.without(RULE, same_length=True)
    shutil.copy(scene.post.file(MESSAGES), copy / "new")
    os.replace(copy / "new", scene.post.file(MESSAGES))


def rolled_back(scene: Scene, copy: Path) -> None:
    """The log as it was before the deny line, in the same file."""
    scene.post.file(MESSAGES).write_bytes((copy / MESSAGES).read_bytes())


def deleted(scene: Scene, _: Path) -> None:
    """No log at all any more, but an empty one that an ``init`` of a program made."""
    scene.post.file(MESSAGES).unlink()
    assert scene.post.call("init", scene.post.box).rc == 0


def unled(scene: Scene, _: Path) -> None:
    """The line that gave the worker its lead blanked in the roster."""
    scene.without(WORKER, ROSTER, same_length=True)


def no_roster(scene: Scene, _: Path) -> None:
    """The roster gone."""
    scene.post.file(ROSTER).unlink()


def no_derived(scene: Scene, copy: Path) -> None:
    """The derived files gone, and the log rolled back."""
    shutil.rmtree(scene.post.file(".cache"))
    rolled_back(scene, copy)


ATTACKS = [emptied, cut, blanked, replaced, rolled_back, deleted, unled, no_roster, no_derived]


def test_a_log_that_changed_since_it_was_looked_at_is_looked_at_again(post: Post) -> None:
    """A look holds for the file and the size that it saw, and for nothing else."""
    box = OpenMailbox(str(post.box))
    for name in ("one", "another"):
        post.register(name)
    assert box.logs.broken() is None
    kept, log = box.logs.roster.kept, post.file(ROSTER)
    assert kept is not None
    assert kept.noticed is not None
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:1]))
    with log.open("rb") as file:
        assert kept.checked(file.fileno()) is None


@pytest.mark.parametrize("asked_before", [True, False], ids=["bound by a call", "bound by the order alone"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_who_was_bound_stays_bound(
    scene: Scene, tmp_path: Path, attack: Callable[[Scene, Path], None], asked_before: bool
) -> None:
    """Every call that acts is denied, reading is not, the doctor says why; until the person has looked."""
    copy = scene.copy(tmp_path / "copy")
    scene.policy(deny=(RULE,))
    scene.post.send(OTHER, LEAD)
    if asked_before:
        assert scene.asked() == "deny"
    attack(scene, copy)
    assert [scene.asked(), scene.asked(TOUCH), scene.asked({"command": "cat x"})] == ["deny", "deny", None]
    assert any("doctor --trust" in what for what in scene.problems())
    scene.forge(m.PolicyUpdate(allow=("Bash",)))
    assert (scene.asked(), scene.rules()[0]) == ("deny", ())
    assert scene.post.call("doctor", "--trust", "--yes").rc == 0
    assert not any("doctor --trust" in what for what in scene.problems())
    assert scene.rules()[0] == ()


@pytest.mark.parametrize("attack", [emptied, rolled_back, deleted])
def test_whom_an_order_alone_bound_stays_bound(
    scene: Scene, tmp_path: Path, attack: Callable[[Scene, Path], None]
) -> None:
    """It has no lead, and no call of its own came between the order and the attack on the log."""
    copy = scene.copy(tmp_path / "copy")
    scene.mailbox.register(Registration(session_id="solo", client="4711"), "solo")
    assert scene.asked(TOUCH, who="solo") is None
    scene.control.set_policy(USER, ["solo"], deny=(RULE,))
    attack(scene, copy)
    assert scene.asked(TOUCH, who="solo") == "deny"


def test_after_the_person_looked_what_is_there_counts(scene: Scene) -> None:
    """A restored log's sealed lines decide again; the lines of programs beside them do not."""
    scene.policy(allow=(RULE,))
    scene.forge(m.PolicyUpdate(allow=("Bash",)))
    content = scene.post.file(MESSAGES).read_bytes()
    scene.post.file(MESSAGES).write_bytes(b"")
    assert scene.rules()[0] == ()
    scene.post.file(MESSAGES).write_bytes(content)
    assert scene.rules()[0] == ()  # it does not become right by itself
    assert "allow Bash(curl:*)" in scene.post.call("doctor", "--trust", "--yes", "--allows").stdout
    assert scene.rules() == ((RULE,), ())


def test_a_session_s_start_says_that_the_log_was_cut(scene: Scene) -> None:
    """A session's start tells the model that the log was cut, in a line of its own."""
    scene.post.send(OTHER, LEAD)
    scene.post.file(MESSAGES).write_bytes(b"")
    scene.post.call("check", "--session", OTHER)
    call = f'{{"session_id": "{WORKER}", "cwd": "{scene.post.cwd}", "source": "resume"}}'
    result = scene.post.call("hook", "SessionStart", stdin=call, env={"CLAUDE_CODE_SESSION_ID": WORKER})
    assert "doctor --trust" in result.stdout


@pytest.mark.parametrize("archived", [False, True])
def test_a_revoked_rule_that_is_appended_again_counts_for_nothing(scene: Scene, archived: bool) -> None:
    """Last month's allow, sealed by the person: live or archived since, and after a rotation beside it as well."""
    scene.policy(allow=(RULE,))
    line = scene.line(RULE)
    scene.policy()
    scene.policy(deny=("Bash(touch:*)",))
    if archived:
        for _ in range(3):
            scene.post.send(OTHER, LEAD)
        scene.post.check(WORKER)
        scene.post.ok("steward", "run", "--max-live", "0")
        assert line not in scene.post.file(MESSAGES).read_bytes()
    scene.post.append(MESSAGES, line)
    assert scene.rules() == ((), ("Bash(touch:*)",))
    other = record(OTHER, LEAD, "x")
    other["id"] = "another"
    scene.post.append(MESSAGES, line.replace(b'"timestamp"', b'"timestamp" ', 1), other)
    scene.post.send(OTHER, LEAD)
    scene.post.check(LEAD)
    assert scene.post.ok("steward", "run", "--max-live", "0")["archived"]  # else no log is replaced
    assert line in scene.post.file(MESSAGES).read_bytes()
    kept = scene.mailbox.logs.messages.kept
    assert kept is not None
    assert kept.entry().size == scene.post.file(MESSAGES).stat().st_size, "what is not written through is not noted"
    assert scene.rules() == ((), ("Bash(touch:*)",))
    scene.post.append(MESSAGES, line)
    assert scene.rules() == ((), ("Bash(touch:*)",))


def test_a_release_that_is_appended_again_gives_nothing_back(scene: Scene) -> None:
    """A release that is appended again gives nothing back. It gives nothing back even after a rotation put it below
    what is proven."""
    owed = scene.post.ok("send", "--from", USER, "--to", WORKER, "--body", "x", "--ack")["message"]["id"]
    scene.post.check(WORKER)
    scene.post.ok("release", owed, "--session", WORKER)
    line = next(one for one in scene.post.file(READS).read_bytes().splitlines(True) if b'"release"' in one)
    scene.post.send(LEAD, WORKER)
    assert len(scene.post.check(WORKER)) == 2
    scene.post.append(READS, line)
    assert scene.post.ok("status", "--session", WORKER)["unread"] == 0
    assert scene.post.ok("steward", "run", "--max-live", "0")["archived"] == 1
    assert line in scene.post.file(READS).read_bytes()
    assert scene.post.ok("status", "--session", WORKER)["unread"] == 0


def test_the_person_s_trust_counts_no_copy(scene: Scene) -> None:
    """The person's trust counts no copy of an archived allow, nor of a roster line that gives a lead back. Foreign
    lines stay what they were."""
    scene.policy(allow=(RULE,))
    allow = scene.line(RULE)
    scene.policy()
    scene.policy(deny=("Bash(touch:*)",))
    for _ in range(3):
        scene.post.send(OTHER, LEAD)
    scene.post.check(WORKER)
    scene.post.ok("steward", "run", "--max-live", "0")
    assert allow not in scene.post.file(MESSAGES).read_bytes()
    scene.mailbox.register(Registration(session_id=WORKER, event="update", lead=OTHER), USER)
    scene.post.append(ROSTER, scene.line(f'"lead":"{LEAD}"', ROSTER))
    scene.forge_event("update", continues=LEAD)
    content = scene.post.file(MESSAGES).read_bytes()
    scene.post.file(MESSAGES).write_bytes(b"")
    assert scene.rules() == ((), ())
    scene.post.file(MESSAGES).write_bytes(content + allow)
    before = [sorted(scene.post.lines(name)) for name in LOGS]
    said = scene.post.call("doctor", "--trust", "--yes")
    assert (said.rc, RULE in said.stdout) == (0, False), said
    assert [sorted(scene.post.lines(name)) for name in LOGS] == before
    assert scene.rules() == ((), ("Bash(touch:*)",))
    agent = scene.mailbox.logs.read_roster().agents[WORKER]
    assert (agent.lead, agent.continues) == (OTHER, ())
    assert scene.mailbox.logs.broken() is None
    scene.post.send(OTHER, LEAD, "goes on")
    assert not any("doctor --trust" in what for what in scene.problems())


def test_a_replacement_noted_while_a_writer_looks_is_no_damage(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The steward's note comes between the writer's look at the entry and its look for an announcement."""
    kept = scene.mailbox.logs.messages.kept
    assert kept is not None
    for body in ("read", "pending"):
        scene.post.send(LEAD, OTHER, body)
    scene.post.ok("check", "--session", OTHER, "--limit", "1")
    before = kept.entry()
    assert scene.post.ok("steward", "run", "--max-live", "0")["archived"] == 1
    seen = [before]  # what the writer read in the moment before that
    look = Kept.entry
    monkeypatch.setattr(Kept, "entry", lambda self: seen.pop() if seen else look(self))
    with scene.mailbox.logs.messages.held() as log:
        assert kept.checked(log.fd) == look(kept) != before
    assert scene.mailbox.logs.broken() is None
    monkeypatch.setattr(Kept, "look_at", lambda *_: False)  # it met the log before its replacement was noted
    assert scene.mailbox.logs.broken() is None


def test_a_reader_that_a_writer_overtakes_misses_no_line(scene: Scene) -> None:
    """It read up to where the log ended as it looked; an order that came since is none that the log lost."""
    scene.policy(deny=(RULE,))
    log = scene.mailbox.logs.messages
    view, fd = log.view(), log.open()
    assert view is not None
    assert fd is not None
    try:
        assert view.follows(fd)
        end = os.fstat(fd).st_size
        scene.policy()
        for at, line in lines_of(fd, 0, end):
            view.read(line, at)
        assert view.is_whole()
    finally:
        os.close(fd)


def test_a_writer_that_notes_its_end_after_the_log_was_replaced_by_an_empty_one_damages_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was slow between its sync and its note; the steward archived everything meanwhile."""
    late: list[tuple[Kept, Callable[..., LogEnd], int, tuple[int, ...]]] = []

    def slow(kept: Kept, how: Callable[..., LogEnd], fd: int, *given: int) -> bool:
        late.append((kept, how, os.dup(fd), given))
        return True

    scene.post.send(LEAD, OTHER)
    with monkeypatch.context() as patch:
        patch.setattr(Kept, "change", slow)
        assert scene.mailbox.deliver(OTHER, lambda items: items) == 1
    ((kept, how, fd, given),) = late
    assert kept.name == "agent-mailbox-reads"
    assert scene.post.ok("steward", "run", "--max-live", "0")["archived"] == 1
    assert scene.post.file(READS).read_bytes() == b""
    assert kept.change(how, fd, *given)
    os.close(fd)
    assert not any("doctor --trust" in what for what in scene.problems())
    scene.post.send(LEAD, OTHER)
    assert len(scene.post.check(OTHER)) == 1
    assert scene.mailbox.logs.broken() is None


@pytest.mark.parametrize("what", ["plain", "control", "person"])
def test_a_line_that_a_foreign_one_displaced_is_written_again_if_more_than_mail_hangs_on_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """A program without the lock wrote between our look at the log's end and our write. Plain mail is there once."""
    write = HeldLog._write
    foreign = [record(OTHER, LEAD, "in between")]

    def late(log: HeldLog, data: bytes, size: int) -> None:
        while foreign:
            scene.post.append(MESSAGES, foreign.pop())
        write(log, data, size)

    with monkeypatch.context() as patch:
        patch.setattr(HeldLog, "_write", late)
        if what == "control":
            scene.policy(deny=(RULE,), who=LEAD)
        else:
            scene.mailbox.send(Draft(sender=USER if what == "person" else LEAD, to=(OTHER,), content="ours"))
    ours = [line for line in scene.post.lines(MESSAGES) if b"in between" not in line]
    assert len(ours) == (1 if what == "plain" else 2)
    assert foreign == []
    view = scene.mailbox.logs.messages.view()
    assert view is not None
    places = [(line, at) for at, line in scene.mailbox.logs.messages.lines() if line in ours]
    assert [view.proof(line, at) is not None for line, at in places] == ([False] if what == "plain" else [False, True])
    assert scene.rules()[1] == ((RULE,) if what == "control" else ())
    assert scene.mailbox.logs.broken() is None


def test_lines_of_another_mailbox_prove_nothing(scene: Scene, tmp_path: Path) -> None:
    """Sealed by the same person with the same key, for the same agents, in another mailbox."""
    elsewhere = creation.create(str(tmp_path / "elsewhere"), scene.post.env)
    other = ControlDesk(OpenMailbox(elsewhere))
    type(scene.mailbox)(elsewhere).register(Registration(session_id=WORKER, client="1"), WORKER)
    other.set_policy(USER, [WORKER], allow=(RULE,))
    (line,) = (tmp_path / "elsewhere" / MESSAGES).read_bytes().splitlines(keepends=True)
    assert b'"seal":"' in line
    scene.post.file(MESSAGES).write_bytes(line)
    assert scene.rules() == ((), ())


def test_a_line_of_one_log_proves_nothing_in_another(scene: Scene) -> None:
    """The MAC covers the log's name, and no white space behind the line."""
    record_ = custody.find(str(scene.post.box), paths.state_directory(scene.post.env))
    assert record_ is not None
    sealed = custody.Kept(record_, ROSTER).sealed([b"{}\n"], [proofs.TERMINAL], 0, 0)[0].strip()
    for white in (b"", b"\n", b" \t\r\n"):  # an editor may leave some behind the last line
        assert ProofView(custody.Kept(record_, ROSTER)).proof(sealed + white, 0) == "user@terminal"
    assert ProofView(custody.Kept(record_, MESSAGES)).proof(sealed, 0) is None
    assert ProofView(custody.Kept(record_, ROSTER)).proof(sealed, 1 << 20) is None


@pytest.mark.parametrize(
    ("of", "at", "counts"),
    [
        (2, 7, True),
        (2, 8, False),
        (1, 7, True),
        (1, 8, True),
        (1, 9, True),
        (1, 10, False),
        (3, 7, False),
        (20, 7, False),
    ],
)
def test_a_seal_counts_at_its_place_or_ahead_of_what_was_moved(scene: Scene, of: int, at: int, counts: bool) -> None:
    """A seal of this writing of the log counts where it was made. An earlier one counts wherever the steward moved it.
    One of a later writing counts nowhere: the log was put back."""
    record_ = custody.find(str(scene.post.box), paths.state_directory(scene.post.env))
    assert record_ is not None
    kept = custody.Kept(record_, ROSTER)
    sealed = kept.sealed([b"{}\n"], [proofs.TERMINAL], 7, of)[0].strip()
    view = ProofView(kept, LogEnd(generation=2, base=10))
    assert (view.proof(sealed, at) is not None) == counts
    assert view.is_misplaced(sealed, at) == (not counts)


def test_a_proven_message_counts_before_a_forged_one_of_its_id(scene: Scene) -> None:
    """A reader of all of the mail is given what was proven, and the first of several."""
    scene.post.append(MESSAGES, record(USER, WORKER, "forged", id="twin"))
    for text in ("true", "later"):
        mail = Message("twin", USER, (WORKER,), scene.mailbox.now(), text)
        scene.mailbox.logs.messages.append([codec.spell_message(mail)], (), [proofs.TERMINAL])
    assert scene.mailbox.state().messages["twin"].content == "true"
    exported = [json.loads(line) for line in scene.post.call("export").stdout.splitlines()]
    assert [one["content"] for one in exported if one["id"] == "twin"] == ["true"]


def test_any_changed_byte_ends_a_seal(scene: Scene) -> None:
    """Each byte of a sealed line, changed, leaves nothing proven."""
    scene.policy(deny=(RULE,))
    line = scene.line(RULE).rstrip(b"\n")
    kept = custody.find(str(scene.post.box), paths.state_directory(scene.post.env))
    assert kept is not None
    view = ProofView(custody.Kept(kept, MESSAGES))
    assert view.proof(line) == "user@terminal"
    for place in range(len(line)):
        for bit in (1, 64):  # a digit becomes another one, or none
            changed = line[:place] + bytes([line[place] ^ bit]) + line[place + 1 :]
            assert view.proof(changed) is None, (place, bit)


# -- crashes ----------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("is_first", [True, False])
def test_a_writer_killed_before_it_counts_leaves_nothing_broken(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, is_first: bool
) -> None:
    """Its line is, counts, and is counted by who writes next; from then on it is missed."""
    if not is_first:
        scene.control.set_mode(USER, [OTHER], "safe")

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Kept, "change", killed)
        with pytest.raises(Killed):
            scene.policy(deny=(RULE,))
    assert scene.rules() == ((), (RULE,))
    assert scene.problems() == []
    scene.post.send(OTHER, LEAD, "x" * 2 * TAIL)  # else the checksum of the log's end alone tells
    assert scene.rules() == ((), (RULE,))
    assert scene.asked() == "deny"
    assert scene.problems() == []
    blanked(scene, scene.post.box)
    assert any("doctor --trust" in what for what in scene.problems())
    assert scene.asked(TOUCH) == "deny"


@pytest.mark.parametrize("at", [("follow",), ("rename",), ("follow", "rename")], ids="-".join)
def test_a_steward_killed_as_it_replaces_a_log_leaves_nothing_broken(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, at: tuple[str, ...]
) -> None:
    """Before the new log is in its place, and after that but before it is noted: both are what we left. So is a log
    that nobody noted, of which the next steward was killed, too."""
    scene.policy(deny=(RULE,))
    for _ in range(3):
        scene.post.send(OTHER, LEAD)
    scene.post.check(LEAD)
    scene.post.send(OTHER, LEAD)

    def killed(*_: object) -> None:
        raise Killed

    for step in at:
        with monkeypatch.context() as patch:
            if step == "follow":
                patch.setattr(Kept, "follow", killed)
            else:
                patch.setattr("agent_mailbox.store.files.system.rename", killed_but_for_small_files)
            with pytest.raises(Killed):
                rotation_run(scene)
        assert scene.rules() == ((), (RULE,))
        assert scene.mailbox.logs.broken() is None
        scene.post.check(LEAD)  # the next steward has mail to move, and nobody wrote any
    scene.post.send(OTHER, LEAD)
    rotation_run(scene)
    scene.policy(deny=(RULE, "Bash(touch:*)"))
    assert (scene.asked(TOUCH), scene.mailbox.logs.broken()) == ("deny", None)


def test_an_order_right_behind_a_replacement_that_nobody_noted_counts(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its writer notes the new log first, and seals the order for a place in that one."""
    scene.post.send(OTHER, LEAD)
    scene.post.check(LEAD)

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Kept, "follow", killed)
        with pytest.raises(Killed):
            rotation_run(scene)
    scene.policy(allow=(RULE,))
    assert (scene.rules(), scene.mailbox.logs.broken()) == (((RULE,), ()), None)


def test_a_log_whose_replacement_nobody_noted_is_read_as_it_is(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mail that was given back is unread, though its release is elsewhere in the new log."""
    desk = Mailbox(str(scene.post.box), prove=proofs.of_session)
    desk.register(Registration(session_id=WORKER, event="update", roles=("x",)), WORKER)
    sent = desk.send(Draft(sender=OTHER, to=("role:x",), content="to be given back", ack=True)).message.id
    for _ in range(2):  # the first run leaves claim and read below its base
        desk.send(Draft(sender=OTHER, to=("role:x",), content="done"))
        rotation_run(scene)
        desk.deliver(WORKER, list)
    desk.release(sent, WORKER)
    follow = Kept.follow

    def killed(kept: Kept, entry: LogEnd) -> None:
        if kept.name == "agent-mailbox-reads":
            raise Killed
        follow(kept, entry)

    with monkeypatch.context() as patch:
        patch.setattr(Kept, "follow", killed)
        with pytest.raises(Killed):
            rotation_run(scene)
    assert [item.message.id for item in scene.mailbox.peek(WORKER)] == [sent]


@pytest.mark.parametrize("unnoted", [MESSAGES, READS])
def test_a_steward_whose_disk_cannot_keep_what_a_killed_one_left_moves_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, unnoted: str
) -> None:
    """It names the mailbox, and leaves every log and month as it is: a new log may not outlive a failure of power yet.
    The next steward, whose disk can, moves all, and what was proven stays proven. None notes a log of a broken mailbox,
    which the person is to see as it was left."""
    scene.policy(deny=(RULE,))
    sent = [scene.post.send(OTHER, to, "für dich") for to in (LEAD, WORKER)]
    scene.post.check(LEAD), scene.post.check(WORKER)
    scene.post.send(OTHER, LEAD)
    follow = Kept.follow

    def killed(kept: Kept, entry: LogEnd) -> None:
        if f"{kept.name}.jsonl" == unnoted:
            raise Killed
        follow(kept, entry)

    with monkeypatch.context() as patch:
        patch.setattr(Kept, "follow", killed)
        with pytest.raises(Killed):
            rotation_run(scene)
    old = [record(OTHER, to, "expired", timestamp="2026-01-02T00:00:00Z", ttl_hours=1) for to in (LEAD, WORKER)]
    scene.post.append(MESSAGES, *old)  # whoever writes with us would note the new log

    def files() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted(scene.post.box.rglob("*.jsonl"))}

    before = files()
    kept = scene.mailbox.logs.custody
    assert kept is not None
    noted = Kept(kept, unnoted).entry()
    kept.note_broken("somebody wrote in it")
    with pytest.raises(Refused, match="somebody wrote in it"):
        rotation_run(scene)
    assert (files(), Kept(kept, unnoted).entry()) == (before, noted)
    kept.forget_broken()
    kept.note_broken("/no text/\udcff was cut")
    assert kept.broken() == "/no text/? was cut", "a path may be no text"
    kept.forget_broken()

    def fails(directory: str) -> None:
        raise OSError(errno.EIO, "the disk is ill", directory)

    with monkeypatch.context() as patch:
        patch.setattr("agent_mailbox.store.files.system.sync_directory", fails)
        with pytest.raises(StorageFailed, match=f"note the new logs of {scene.post.box}"):
            rotation_run(scene)
    assert files() == before
    rotation_run(scene)
    assert scene.rules() == ((), (RULE,))
    assert scene.problems() == []
    live = {one["id"] for one in scene.post.objects(MESSAGES)}
    assert live.isdisjoint([*sent, *(one["id"] for one in old)])


def killed_but_for_small_files(before: str, after: str) -> None:
    """A rename that is not come to where it is a log's."""
    if after.endswith(".jsonl"):
        raise Killed
    os.rename(before, after)


def rotation_run(scene: Scene) -> None:
    """A steward's run within this process."""
    from agent_mailbox.upkeep import steward

    steward.run_upkeep(scene.mailbox, 0)


def test_a_roster_told_in_fewer_events_still_proves_who_leads(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compaction keeps the sealed lines of the living as they were written."""
    monkeypatch.setattr(roster_compaction, "COMPACT_ABOVE", 4)
    for _ in range(12):
        scene.post.register("short-lived")
        scene.post.ok("roster", "retire", "short-lived")
    lines = scene.post.lines(ROSTER)
    before = scene.mailbox.logs.read_roster().agents[WORKER]
    rotation_run(scene)
    assert len(scene.post.lines(ROSTER)) < len(lines)
    assert scene.mailbox.logs.read_roster().agents[WORKER] == before
    assert before.proven_leads[-1][1] == LEAD
    assert scene.mailbox.logs.broken() is None


def test_a_roster_that_fewer_events_cannot_tell_is_not_folded(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """After years most agents are dead, at two lines each. The steward does not tell them again to find that out."""
    monkeypatch.setattr(roster_compaction, "COMPACT_ABOVE", 4)
    monkeypatch.setattr(roster_compaction, "compacted", None)
    for number in range(20):
        scene.post.register(f"short-{number}")
        scene.post.ok("roster", "retire", f"short-{number}")
    lines = scene.post.lines(ROSTER)
    rotation_run(scene)
    assert scene.post.lines(ROSTER) == lines


# -- from elsewhere ---------------------------------------------------------------------------------------------------


def unsealed(path: Path) -> None:
    """A log as an earlier version wrote it."""
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"".join(line.partition(b',"seal":"')[0] + b"}\n" for line in lines))


def test_lines_of_a_backup_are_told_as_such_until_the_person_confirms_all_of_them(scene: Scene) -> None:
    """They are not from before seals; reads and acks of what the person asked are confirmed, too."""
    scene.policy(deny=(RULE,))
    asked = scene.post.send(USER, WORKER, "done?", "--ack")
    scene.post.check(WORKER)
    scene.post.ok("ack", asked, "--session", WORKER)
    place = scene.post.scratch / "again"
    scene.post.ok("backup", scene.post.scratch / "b.tar")
    scene.post.ok("restore", scene.post.scratch / "b.tar", place)

    def told() -> str:
        return scene.post.call("doctor", "--dir", place).stdout

    assert "sealed in another mailbox" in told()
    assert "before seals" not in told()
    assert f"`agent-mailbox init --adopt {place}`" in told()
    assert scene.post.call("init", place, "--adopt", "--yes").rc == 0
    assert told() == "no problems found\n"
    assert scene.post.call("status", "--dir", place, "--session", WORKER, "--json").json["obligations"] == []


def seen_messages(told: str) -> list[str]:
    """The messages that a question lists."""
    listed = told.replace("\r", "").partition(":\n")[2].partition("then:\n")[0]
    return [line for line in listed.splitlines() if line.startswith("  ")]


@pytest.mark.parametrize("word", ["y", "n", ""])
def test_what_would_count_is_shown_before_the_person_says_so(post: Post, word: str) -> None:
    """Allows first and by name; without a yes, and without a terminal, nothing changes."""
    scene, denied = Scene(post), ("Bash(rm:*)",)
    scene.policy(allow=("Bash(ls:*)",), deny=denied)
    scene.mailbox.register(Registration(session_id=OTHER, event="update", lead=LEAD), USER)
    unsealed(post.file(MESSAGES))
    unsealed(post.file(ROSTER))
    shutil.rmtree(post.file(".cache"))
    shutil.rmtree(post.user_state / "boxes")
    assert scene.rules() == ((), denied)
    asked = refused(post.call("init", post.box, "--adopt"), 1, "asked at a terminal", "allow Bash(ls:*)")
    assert "unsealed lines would count; then: " in asked.stderr  # the messages would not fit on its line
    assert scene.rules() == ((), denied)
    asking = at_terminal(post, f"sh -c '{line('init', post.box, '--adopt', '--yes')}; exit $?'", answer=f"{word}\n")
    told = asking.stdout.replace("\r\n", "\n")
    assert "allow Bash(ls:*), lead boss, deny Bash(rm:*)" in told
    counted, of_these = told.splitlines()[:2]
    assert ("unsealed lines would count" in counted, of_these.startswith("of these, ")) == (True, True)
    assert (of_these, len(seen_messages(told))) == ("of these, 1 message:", 1)
    assert told.index("allow Bash(ls:*)") < told.index("lead boss")
    if word == "y":
        assert (asking.rc, scene.rules()) == (0, (("Bash(ls:*)",), denied)), asking
    else:
        assert (asking.rc, scene.rules()) == (1, ((), denied))
        assert "nothing changed" in told


@pytest.mark.parametrize(("end", "marked"), [("freeze", ""), ("retire", " (dead, if it comes back)")])
def test_the_rules_of_who_is_away_are_shown_as_well(scene: Scene, end: str, marked: str) -> None:
    """The person confirms them, too: a session that comes back goes on with them. Only such are shown of the dead."""
    scene.policy(allow=("Bash(ls:*)",), deny=(RULE,))
    scene.control.set_policy(USER, [OTHER], deny=(RULE,))
    for who in (WORKER, OTHER) if end == "retire" else (WORKER,):
        scene.mailbox.end(who, end, USER)
    for log in (MESSAGES, ROSTER):
        unsealed(scene.post.file(log))
    shutil.rmtree(scene.post.user_state / "boxes")
    told = adoption.trust_logs(scene.mailbox, adopt=True).standing
    assert told[0].endswith(f"{marked}: allow Bash(ls:*), lead boss, deny {RULE}")
    assert len(told) == (1 if end == "retire" else 2)
    if end == "freeze":
        scene.mailbox.check_in(WORKER)
    else:
        scene.mailbox.register(Registration(session_id=WORKER), WORKER)
    assert scene.rules() == (("Bash(ls:*)",), (RULE,))


def test_what_changed_since_the_person_looked_does_not_count(scene: Scene) -> None:
    """A line that a program appends between the question and the answer is not what they agreed to."""
    seen = confirming.preview_trust(scene.mailbox.directory, adopt=True)
    scene.post.send(OTHER, LEAD, "plain mail goes on")
    adoption.trust_logs(scene.mailbox, adopt=True, seen=seen)
    seen = confirming.preview_trust(scene.mailbox.directory, adopt=True)
    for order in (
        m.TaskAssignment(request_id="task-t", title="t"),
        m.PolicyUpdate(allow=("Bash",)),
        m.PlanResponse(request_id="plan-p", approved=True),
        m.ModeSet(mode="acceptEdits"),
    ):
        scene.forge(order)
    with pytest.raises(Refused, match="changed since"):
        adoption.trust_logs(scene.mailbox, adopt=True, seen=seen)
    after = confirming.preview_trust(scene.mailbox.directory, adopt=True)
    assert after.messages == (  # what allows something comes first
        "user → 1b9d6bcd: team_permission_update: allow Bash",
        "user → 1b9d6bcd: plan_approval_response plan-p: approved",
        "user → 1b9d6bcd: mode_set_request: acceptEdits",
        "user → 1b9d6bcd: task_assignment task-t: t",
    )
    assert scene.rules() == ((), ())


def test_who_comes_second_with_a_record_leaves_the_first_and_nothing_beside_it(scene: Scene) -> None:
    """Two processes that find none may make one at once."""
    custody_of = scene.mailbox.logs.custody
    assert custody_of is not None
    record = Path(custody_of.directory)
    before = {path.name: path.read_bytes() for path in record.iterdir()}
    custody_setup._begin(str(record), scene.mailbox.directory)
    assert {path.name: path.read_bytes() for path in record.iterdir()} == before
    assert [path.name for path in record.parent.iterdir()] == [record.name]


def test_of_plain_mail_only_the_person_s_own_is_confirmed(scene: Scene) -> None:
    """An id that begins like the person's word is another's."""
    words = ("user", "user-2", "use", WORKER)
    for sender in words:
        scene.post.send(sender, LEAD, f"from {sender}")
    unsealed(scene.post.file(MESSAGES))
    shown = confirming.preview_trust(scene.mailbox.directory, adopt=True).messages
    assert [one.partition(": ")[2] for one in shown] == ["from user"]


def test_an_upgrade_frees_nobody_and_the_person_confirms(scene: Scene) -> None:
    """A mailbox of an earlier version works on: its rules deny, allow nothing, its lead binds, until ``--adopt``."""
    scene.policy(allow=("Bash(ls:*)",), deny=(RULE,))
    request = scene.control.request(WORKER, m.PermissionRequest(tool="Bash", input=DENIED))
    mail = scene.post.send(OTHER, LEAD, "hello")
    for name in (MESSAGES, ROSTER):
        unsealed(scene.post.file(name))
    shutil.rmtree(scene.post.file(".cache"))
    shutil.rmtree(scene.post.user_state / "boxes")
    shutil.rmtree(scene.post.user_state / "bound")
    assert scene.rules() == ((), (RULE,))
    assert (scene.asked(), scene.problems()) == ("deny", [])
    assert scene.mailbox.logs.read_roster().agents[WORKER].lead == LEAD
    assert scene.post.call("control", "approve", request.id, "--session", LEAD).rc == 1
    assert scene.post.unread(LEAD)[-1] == mail
    assert any("init --adopt" in note and "from before seals" in note for note in scene.notes())
    adoption.trust_logs(scene.mailbox)  # trust alone adopts nothing, and old lines stay old
    assert (scene.rules(), scene.mailbox.logs.read_roster().agents[WORKER].lead) == (((), (RULE,)), LEAD)
    assert any("init --adopt" in note for note in scene.notes())
    adopted = scene.post.call("init", scene.post.box, "--adopt", "--yes")
    assert adopted.rc == 0
    assert "allow Bash(ls:*)" in adopted.stdout
    assert scene.rules() == (("Bash(ls:*)",), (RULE,))
    assert "unverified" not in scene.post.call("check", "--session", WORKER, "--peek").stdout
    assert scene.post.call("control", "approve", request.id, "--session", LEAD).rc == 0
    assert scene.notes() == []


def test_what_was_adopted_counts_at_its_place_alone(scene: Scene) -> None:
    """An adopted allow that was revoked since is not revived by being appended again."""
    scene.policy(allow=(RULE,))
    unsealed(scene.post.file(MESSAGES))
    adoption.trust_logs(scene.mailbox, adopt=True)
    assert scene.rules()[0] == (RULE,)
    line = scene.line(RULE)
    scene.policy()
    scene.post.append(MESSAGES, line.replace(b'"id":"', b'"id":"x', 1))
    scene.post.append(MESSAGES, line)
    assert scene.rules()[0] == ()


def test_a_restored_mailbox_frees_nobody(scene: Scene, tmp_path: Path) -> None:
    """Its sealed lines are of another mailbox: what they deny holds, what they allow waits for the person."""
    scene.policy(allow=("Bash(ls:*)",), deny=(RULE,))
    backup.write_backup(scene.mailbox, str(tmp_path / "b.tar"), force=False)
    place = tmp_path / "restored"
    restoring.restore_backup(str(tmp_path / "b.tar"), str(place), scene.post.env)
    restored = ControlDesk(OpenMailbox(str(place)))
    found = restored.standing(WORKER).policy
    assert (found.allow, found.deny) == ((), (RULE,))
    assert restored.plane().roster.agents[WORKER].lead == LEAD
    adoption.trust_logs(type(scene.mailbox)(str(place)), adopt=True)
    assert ControlDesk(OpenMailbox(str(place))).standing(WORKER).policy.allow == ("Bash(ls:*)",)


def test_a_mailbox_that_nobody_s_init_made_proves_nothing(scene: Scene, tmp_path: Path) -> None:
    """Named outright it is mail; nothing in it is sealed, and nothing decides."""
    place = scene.copy(tmp_path / "clone")
    strange = ControlDesk(OpenMailbox(str(place)))
    assert strange.box.logs.custody is None
    assert strange.standing(WORKER).policy.allow == ()
    sent = scene.post.call("--dir", place, "send", "--from", "user", "--to", WORKER, "--body", "x", "--json")
    assert b'"seal"' not in (place / MESSAGES).read_bytes().splitlines()[-1]
    assert sent.rc == 0
    assert (place / READS).exists() == scene.post.file(READS).exists()
    told = refused(scene.post.call("--dir", place, "doctor", "--trust", "--json"), 1, f"init --adopt {place}")
    assert told.json["error"]["code"] == "not_yours"


@pytest.mark.parametrize(
    ("words", "rc"),
    [
        (("policy", "--allow", "Bash"), 1),
        (("policy", "--clear"), 1),
        (("policy", "--deny", "Bash(z)"), 0),
        (("policy", "--add", "--host", "example.org"), 0),
        (("mode", "acceptEdits"), 1),
        (("mode", "plan"), 0),
    ],
    ids=str,
)
def test_an_order_without_effect_is_an_error(scene: Scene, words: tuple[str, ...], rc: int) -> None:
    """A broken mailbox proves nothing. An order that loosens does nothing there, and is not said to be done."""
    scene.policy(deny=("Bash(curl:*)",))
    assert scene.mailbox.logs.custody is not None
    scene.mailbox.logs.custody.note_broken("it was cut")
    done = scene.post.call("control", words[0], WORKER, *words[1:], "--session", "user")
    assert done.rc == rc, done
    assert ("has no effect" in done.stderr) is bool(rc)
    assert scene.rules()[0] == ()


@pytest.mark.parametrize(("words", "rc"), [(("--allow", "Bash"), 1), (("--clear",), 0)], ids=str)
def test_where_no_rules_are_a_broken_mailbox_clears_them_and_adds_none_that_allow(
    scene: Scene, words: tuple[str, ...], rc: int
) -> None:
    """An order that changes nothing needs no proof."""
    assert scene.mailbox.logs.custody is not None
    scene.mailbox.logs.custody.note_broken("it was cut")
    done = scene.post.call("control", "policy", WORKER, *words, "--session", "user")
    assert (done.rc, "has no effect" in done.stderr) == (rc, bool(rc)), done


def test_a_broken_mailbox_keeps_the_limit_to_hosts(scene: Scene) -> None:
    """It restricts, as a deny rule does. It is neither widened nor removed, and no such order is said to be done."""
    scene.control.set_policy(USER, [WORKER], hosts=("example.org",))
    assert scene.mailbox.logs.custody is not None
    scene.mailbox.logs.custody.note_broken("it was cut")
    for words in (("--add", "--host", "example.com"), ("--host", "example.com"), ("--clear",)):
        done = scene.post.call("control", "policy", WORKER, *words, "--session", "user")
        assert (done.rc, "has no effect" in done.stderr) == (1, True), done
        assert scene.control.standing(WORKER).policy.hosts == ("example.org",)
